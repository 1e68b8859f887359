/* SPDX-License-Identifier: Apache-2.0
 * The table of sources, and opening data by name. */
#include <string.h>
#include <sys/stat.h>

#include "data/source.h"

extern const struct data_source source_idx, source_images, source_tar, source_cifar, source_npy,
    source_synthetic, source_text;

bool data_is_usual(const char *tokenizer) { return !tokenizer || !strcmp(tokenizer, "bytes"); }
bool data_is_fed(const char *spec) { return spec && !strcmp(spec, "feed"); }

tri_status data_refuse_fed(const char *spec) {
    if (!data_is_fed(spec)) return TRI_OK;
    return base_fail(TRI_USAGE,
                     "data 'feed': a program feeds the samples, with tri_feed in its own "
                     "loop of tri_step; tri_train and the commands of trireme do not");
}

static tri_data *feed_open(const struct data_spec *s) {
    if (!data_refuse_fed(s->spec))
        base_fail(TRI_USAGE, "data '%s': feed takes no options", s->spec);
    return NULL;
}

static const struct data_source source_feed = {"feed", NULL, "feed (of a program's own loop)",
                                               feed_open, false};

static const struct data_source *const sources[] = {
    &source_idx, &source_images, &source_tar, &source_cifar, &source_npy, &source_synthetic,
    &source_text, &source_feed};

static void unknown_source(const char *spec) {
    struct stat s;
    struct text list = {0};
    bool path = (*spec && strchr("/.~", *spec)) || (!stat(spec, &s) && S_ISDIR(s.st_mode));
    for (size_t i = 0; i < COUNT(sources); i++) {
        const char *rest = sources[i]->rest, *comma = list.size ? ", " : "";
        if (!path)
            text_add(&list, "%s%s", comma, sources[i]->help);
        else if (rest && !strcmp(rest, "directory"))
            text_add(&list, "%s%s:%s", comma, sources[i]->name, spec);
    }
    if (list.failed)
        base_no_memory(spec);
    else if (path)
        base_fail(TRI_USAGE, "data '%s': a directory needs the kind of its data: %s", spec,
                  list.data);
    else
        base_fail(TRI_USAGE, "data '%s': unknown kind; known: %s", spec, list.data);
    text_free(&list);
}

/* text: a copy of the spec after the name and colon; is cut into rest and options. */
static tri_data *open_source(const struct data_source *source, struct data_spec *s, char *text) {
    s->rest = "";
    s->options = text;
    if (source->rest) {
        char *comma = strchr(text, ',');
        s->options = comma ? comma + 1 : text + strlen(text);
        if (comma) *comma = 0;
        s->rest = text;
        if (!*text) {
            base_fail(TRI_USAGE, "data '%s': the %s is missing; %s", s->spec, source->rest,
                      source->help);
            return NULL;
        }
    }
    return source->open(s);
}

tri_data *data_open(const char *spec, const tri_graph *g, uint64_t seed, const char *tokenizer,
                    const char *prepared) {
    if (!spec) spec = "";
    size_t length = strcspn(spec, ":");
    struct data_spec s = {.spec = spec, .graph = g, .seed = seed, .tokenizer = tokenizer};
    for (size_t i = 0; i < COUNT(sources); i++) {
        const struct data_source *source = sources[i];
        if (strlen(source->name) != length || memcmp(source->name, spec, length)) continue;
        if (!data_is_usual(tokenizer) && !source->takes_tokenizer) {
            base_fail(TRI_USAGE,
                      "data '%s': a tokenizer (--tokenizer %s) applies only to text", spec,
                      tokenizer);
            return NULL;
        }
        struct arena texts = {0};
        char *text = arena_copy(&texts, spec + length + (spec[length] == ':'));
        s.prepared = prepared ? arena_copy(&texts, prepared) : NULL;
        if (texts.failed) base_no_memory(spec);
        tri_data *d = texts.failed ? NULL : open_source(source, &s, text);
        tri_data_concurrent(d); /* all sources are */
        arena_free(&texts);
        return d;
    }
    unknown_source(spec);
    return NULL;
}

tri_data *tri_data_open(const char *spec, const tri_graph *g, uint64_t seed) {
    return data_open(spec, g, seed, NULL, NULL);
}
