/* SPDX-License-Identifier: Apache-2.0
 * Data sets: made by the caller, or opened by name. */
#include "data/data.h"
#include "data/pictures.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/cifar.h"
#include "data/idx.h"
#include "data/images.h"
#include "data/npy.h"
#include "data/tar.h"
#include "data/text.h"

/* ---- making and asking ---- */

static tri_status check_field(const char *name, const tri_field *fields, int i) {
    const tri_field *f = &fields[i];
    if (!f->name || !*f->name)
        return base_fail(TRI_USAGE, "data '%s': field %d has no name", name, i);
    for (int j = 0; j < i; j++)
        if (!strcmp(fields[j].name, f->name))
            return base_fail(TRI_USAGE, "data '%s': two fields have the name '%s'", name, f->name);
    if ((unsigned)f->type > TRI_BOOL)
        return base_fail(TRI_USAGE, "data '%s': field '%s' has the unknown type %d", name, f->name,
                         (int)f->type);
    if (f->shape.rank < 0 || f->shape.rank >= TRI_MAX_RANK)
        return base_fail(TRI_USAGE, "data '%s': field '%s' has %d dimensions; a sample has 0 to %d",
                         name, f->name, f->shape.rank, TRI_MAX_RANK - 1);
    int64_t bytes = (int64_t)tri_type_size(f->type);
    for (int k = 0; k < f->shape.rank; k++)
        if (f->shape.dim[k] < 1 || __builtin_mul_overflow(bytes, f->shape.dim[k], &bytes))
            return base_fail(TRI_USAGE, "data '%s': field '%s': its dimension %d is %lld: below 1, "
                             "or too large", name, f->name, k, (long long)f->shape.dim[k]);
    return TRI_OK;
}

static tri_status check(const char *name, int64_t size, const tri_field *fields, int n,
                        tri_fill *fill) {
    if (!fill) return base_fail(TRI_USAGE, "data '%s': there is no fill function", name);
    if (size < 1 || size > DATA_MAX_SIZE)
        return base_fail(TRI_USAGE, "data '%s': size is %lld; 1 to 2^48 samples are possible", name,
                         (long long)size);
    if (n < 1 || !fields)
        return base_fail(TRI_USAGE, "data '%s': at least one field is needed", name);
    if (n > TRI_MAX_FIELDS)
        return base_fail(TRI_USAGE, "data '%s': %d fields; there can be %d", name, n,
                         TRI_MAX_FIELDS);
    tri_status status = TRI_OK;
    for (int i = 0; !status && i < n; i++) status = check_field(name, fields, i);
    return status;
}

static tri_data *copy(const char *name, const tri_field *fields, int n) {
    tri_data *d = calloc(1, sizeof *d);
    if (!d) return NULL;
    d->name = arena_copy(&d->arena, name);
    tri_field *own = arena_alloc(&d->arena, (size_t)n * sizeof *own);
    for (int i = 0; own && i < n; i++) {
        own[i] = fields[i];
        own[i].name = arena_copy(&d->arena, fields[i].name);
    }
    d->fields = own;
    d->n_fields = n;
    if (!d->arena.failed) return d;
    arena_free(&d->arena);
    free(d);
    return NULL;
}

tri_data *data_make(const char *name, int64_t size, const tri_field *fields, int n, tri_fill *fill,
                    void *user, bool sequential, void (*free_user)(void *user)) {
    if (!name) name = "unnamed";
    tri_data *d = NULL;
    if (!check(name, size, fields, n, fill)) {
        d = copy(name, fields, n);
        if (!d) base_no_memory(name);
    }
    if (!d) {
        if (free_user) free_user(user);
        return NULL;
    }
    d->size = size;
    d->fill = fill;
    d->user = user;
    d->free_user = free_user;
    d->sequential = sequential;
    return d;
}

tri_data *tri_data_new(const char *name, int64_t size, const tri_field *fields, int n,
                       tri_fill *fill, void *user, bool sequential) {
    return data_make(name, size, fields, n, fill, user, sequential, NULL);
}

void tri_data_concurrent(tri_data *d) {
    if (d) d->concurrent = true;
}

int64_t tri_data_size(const tri_data *d) { return d ? d->size : 0; }

int tri_data_fields(const tri_data *d, const tri_field **fields) {
    *fields = d ? d->fields : NULL;
    return d ? d->n_fields : 0;
}

tri_status data_check_labels(const tri_data *d) {
    for (int64_t i = 0; i < d->size; i++) {
        int64_t label = d->about.label(d->user, i);
        if (label < 0 || label >= d->about.classes)
            return base_fail(TRI_FAILED, "data %s, sample %lld: its label is %lld; there are %lld classes", d->name,
                             (long long)i, (long long)label, (long long)d->about.classes);
    }
    return TRI_OK;
}

void data_give_up(tri_data *d, bool (*over)(void *arg), void *arg) {
    for (; d; d = d->under) {
        d->over = over;
        d->over_arg = arg;
    }
}

bool data_unwanted(const tri_data *d) { return d->over && d->over(d->over_arg); }

void data_tell(const tri_data *d, bool quiet) {
    if (d && d->about.warning) fprintf(stderr, "trireme: %s\n", d->about.warning);
    if (d && d->about.note && !quiet) fprintf(stderr, "trireme: %s\n", d->about.note);
}

/* ---- a sample's memory ---- */

#define FIELD_ALIGN 64

size_t data_field_at(const tri_data *d, int field) {
    size_t at = 0;
    for (int i = 0; i < field; i++) {
        size_t bytes = base_spec_bytes(&(tri_spec){d->fields[i].type, d->fields[i].shape});
        at += (bytes + FIELD_ALIGN - 1) / FIELD_ALIGN * FIELD_ALIGN;
    }
    return at;
}

size_t data_sample_bytes(const tri_data *d) { return data_field_at(d, d->n_fields); }

void *data_room(const tri_data *d, void **out) {
    char *memory = malloc(data_sample_bytes(d) + 1);
    for (int i = 0; i < d->n_fields && memory; i++) out[i] = memory + data_field_at(d, i);
    return memory;
}

/* ---- samples ---- */

/* Samples come in order; the rest of an epoch may be left out. What was asked for counts as drawn
 * even if filling fails, since the source has moved on. */
static tri_status advance(tri_data *d, int64_t index, int64_t epoch) {
    bool next = epoch == d->next_epoch && index == d->next_index;
    bool new_epoch = epoch == d->next_epoch + 1 && index == 0 && d->next_index > 0;
    if (!next && !new_epoch)
        return base_fail(TRI_USAGE, "data '%s' is sequential: its next sample is %lld of epoch "
                         "%lld, not %lld of epoch %lld; it can be neither shuffled nor read twice",
                         d->name, (long long)d->next_index, (long long)d->next_epoch,
                         (long long)index, (long long)epoch);
    d->next_index = index + 1;
    d->next_epoch = epoch;
    if (d->next_index == d->size) {
        d->next_index = 0;
        d->next_epoch++;
    }
    return TRI_OK;
}

tri_status tri_data_get(tri_data *d, int64_t index, int64_t epoch, uint64_t seed,
                        void *const *out) {
    if (!d) return base_fail(TRI_USAGE, "tri_data_get: there is no data (null)");
    if (index < 0 || index >= d->size || epoch < 0)
        return base_fail(TRI_USAGE, "data '%s': there is no sample %lld of epoch %lld; samples are "
                         "0 to %lld, epochs count from 0", d->name, (long long)index,
                         (long long)epoch, (long long)d->size - 1);
    if (d->sequential && advance(d, index, epoch)) return TRI_USAGE;
    int code = d->fill(d->user, index, epoch, seed, out);
    if (!code) return TRI_OK;
    if (code == DATA_TOLD) return TRI_FAILED;
    return base_fail(TRI_FAILED, "data '%s': the fill function returned %d for sample %lld of "
                     "epoch %lld", d->name, code, (long long)index, (long long)epoch);
}

void tri_data_free(tri_data *d) {
    if (!d) return;
    if (d->free_user) d->free_user(d->user);
    arena_free(&d->arena);
    free(d);
}

/* ---- options ---- */

static tri_status unknown_key(const char *spec, const char *key, const struct data_option *known,
                              int n) {
    struct text list = {0};
    for (int i = 0; i < n; i++) text_add(&list, "%s%s", i ? ", " : "", known[i].key);
    tri_status status = list.failed
        ? base_no_memory(spec)
        : base_fail(TRI_USAGE, "data '%s': unknown option '%s'; known: %s", spec, key,
                    n ? list.data : "none");
    text_free(&list);
    return status;
}

static tri_status set_option(const char *spec, const struct data_option *o, char *value) {
    char *end = value;
    const int kind = (int)(o->kind % DATA_PREPARES);
    errno = 0;
    if (kind == DATA_TEXT) {
        *(const char **)o->value = value;
        if (*value) return TRI_OK;
        return base_fail(TRI_USAGE, "data '%s': %s is empty", spec, o->key);
    }
    if (kind == DATA_INT) {
        long long number = strtoll(value, &end, 10);
        *(int64_t *)o->value = number;
        if (end != value && !*end && !errno) return TRI_OK;
        return base_fail(TRI_USAGE, "data '%s': %s=%s is not a whole number", spec, o->key, value);
    }
    double number = base_number(value, &end);
    *(double *)o->value = number;
    if (end != value && !*end && isfinite(number)) return TRI_OK;
    return base_fail(TRI_USAGE, "data '%s': %s=%s is not a number", spec, o->key, value);
}

static void print_option(const struct data_option *o, struct text *out) {
    char number[NUMBER_TEXT];
    const int kind = (int)(o->kind % DATA_PREPARES);
    if (kind == DATA_INT)
        text_add(out, "%lld", (long long)*(const int64_t *)o->value);
    else if (kind == DATA_FLOAT)
        text_add(out, "%s", base_number_text(*(const double *)o->value, number));
    else
        text_add(out, "%s", *(const char *const *)o->value);
}

/* What an earlier run's data were prepared with, where nothing else is said. */
static tri_status take_prepared(const struct data_source *s, const struct data_option *known, int n,
                                uint32_t given) {
    tri_status status = TRI_OK;
    for (char *next, *key = s->prepared; key && *key && !status; key = next) {
        if ((next = strchr(key, ','))) *next++ = 0;
        char *value = strchr(key, '=');
        if (!value) return base_fail(TRI_FAILED, "weights: '%s' is not of the form key=value", key);
        *value++ = 0;
        int i = 0;
        while (i < n && !((known[i].kind & DATA_PREPARES) && !strcmp(known[i].key, key))) i++;
        if (i == n) continue; /* of a source of another kind */
        struct text now = {0};
        if (given >> i & 1) print_option(&known[i], &now);
        if (now.failed)
            status = base_no_memory(s->spec);
        else if (!now.data)
            status = set_option(s->spec, &known[i], value);
        else if (strcmp(now.data, value))
            fprintf(stderr, "trireme: data '%s': %s=%s, but the weights were trained with %s=%s\n", s->spec, key,
                    now.data, key, value);
        text_free(&now);
    }
    return status;
}

tri_data *data_prepared(tri_data *d, const struct data_option *known, int n) {
    struct text all = {0};
    for (int i = 0; i < n && d; i++) {
        if (!(known[i].kind & DATA_PREPARES)) continue;
        text_add(&all, "%s%s=", all.size ? "," : "", known[i].key);
        print_option(&known[i], &all);
    }
    if (d) d->about.prepared = all.failed ? NULL : arena_copy(&d->arena, all.data);
    if (d && !d->about.prepared) {
        base_no_memory(d->name);
        tri_data_free(d);
        d = NULL;
    }
    text_free(&all);
    return d;
}

tri_status data_parse_options(const struct data_source *s, const struct data_option *known, int n) {
    CHECK(n <= 32);
    const char *spec = s->spec;
    uint32_t seen = 0;
    for (char *next, *key = s->options; key && *key; key = next) {
        if ((next = strchr(key, ','))) *next++ = 0;
        char *value = strchr(key, '=');
        if (!value)
            return base_fail(TRI_USAGE, "data '%s': '%s' is not of the form key=value", spec, key);
        *value++ = 0;
        int i = 0;
        while (i < n && strcmp(known[i].key, key)) i++;
        if (i == n) return unknown_key(spec, key, known, n);
        if (seen >> i & 1)
            return base_fail(TRI_USAGE, "data '%s': %s is given twice", spec, key);
        seen |= UINT32_C(1) << i;
        tri_status status = set_option(spec, &known[i], value);
        if (status) return status;
    }
    return take_prepared(s, known, n, seen);
}

tri_status data_choose(const char *spec, const char *key, const char *text, const char *no,
                       const char *yes, bool *out) {
    if (!text) return TRI_OK;
    *out = !strcmp(text, yes);
    if (*out || !strcmp(text, no)) return TRI_OK;
    return base_fail(TRI_USAGE, "data '%s': %s=%s is neither %s nor %s", spec, key, text, no, yes);
}

/* ---- opening by name ---- */

static tri_data *synthetic_open(const struct data_source *s) {
    int64_t size = DATA_SYNTHETIC_SIZE;
    const struct data_option known[] = {{"size", DATA_INT, &size}};
    if (data_parse_options(s, known, (int)COUNT(known))) return NULL;
    if (size < 1 || size > DATA_MAX_SIZE) {
        base_fail(TRI_USAGE, "data '%s': size is %lld; 1 to 2^48 samples are possible", s->spec,
                  (long long)size);
        return NULL;
    }
    if (!s->graph) {
        base_fail(TRI_USAGE, "data '%s': it is made for the inputs of a graph; give the graph",
                  s->spec);
        return NULL;
    }
    return data_synthetic_for_graph(s->graph, size, s->seed);
}

bool data_is_fed(const char *spec) { return spec && !strcmp(spec, "feed"); }

tri_status data_refuse_fed(const char *spec) {
    if (!data_is_fed(spec)) return TRI_OK;
    return base_fail(TRI_USAGE, "data 'feed': a program feeds the samples, with tri_feed in its own "
                     "loop of tri_step; tri_train and the commands of trireme do not");
}

static tri_data *feed_open(const struct data_source *s) {
    if (!data_refuse_fed(s->spec))
        base_fail(TRI_USAGE, "data '%s': feed takes no options", s->spec);
    return NULL;
}

static const struct kind {
    const char *prefix;
    const char *rest; /* what the part before the options is; null: there is none */
    tri_data *(*open)(const struct data_source *s);
    const char *help;
} kinds[] = {
    {"idx", "directory", idx_open, "idx:DIR[,split=train|test][,mean=X][,std=X]"},
    {"images", "directory", images_open,
     "images:DIR[,split=train|val][,size=N][,augment=random|centre][,max-bad=N]..."},
    {"tar", "pattern", tar_open, "tar:PATTERN[,size=N][,augment=random|centre][,max-bad=N]..., or "
     "tar:-,samples=N[,window=N]..., tar:pipe:COMMAND,samples=N..."},
    {"cifar", "directory", cifar_open,
     "cifar:DIR[,split=train|test][,augment=random|none][,label=fine|coarse]..."},
    {"npy", "file", npy_open, "npy:FILE[;FILE]..."},
    {"synthetic", NULL, synthetic_open, "synthetic[:size=N]"},
    {"text", "file", text_open,
     "text:FILE[:FILE...][,tokenizer=KIND][,for=lm|bert][,length=N][,predictions=N]"},
    {"feed", NULL, feed_open, "feed (of a program's own loop)"},
};

static void unknown_kind(const char *spec) {
    struct stat s;
    struct text list = {0};
    for (size_t i = 0; i < COUNT(kinds); i++) text_add(&list, "%s%s", i ? ", " : "", kinds[i].help);
    if (list.failed)
        base_no_memory(spec);
    else if (*spec == '/' || *spec == '.' || *spec == '~' || (!stat(spec, &s) && S_ISDIR(s.st_mode)))
        base_fail(TRI_USAGE, "data '%s': a kind stands before the directory: images:%s, idx:%s, cifar:%s", spec, spec,
                  spec, spec);
    else
        base_fail(TRI_USAGE, "data '%s': unknown kind; known: %s", spec, list.data);
    text_free(&list);
}

/* text: a copy of the spec behind the kind, without the colon; is cut up. */
static tri_data *open_kind(const struct kind *kind, struct data_source *s, char *text) {
    s->rest = "";
    s->options = text;
    if (kind->rest) {
        char *comma = strchr(text, ',');
        s->options = comma ? comma + 1 : text + strlen(text);
        if (comma) *comma = 0;
        s->rest = text;
        if (!*text) {
            base_fail(TRI_USAGE, "data '%s': the %s is missing; %s", s->spec, kind->rest,
                      kind->help);
            return NULL;
        }
    }
    return kind->open(s);
}

tri_data *data_open(const char *spec, const tri_graph *g, uint64_t seed, const char *tokenizer,
                    const char *prepared) {
    if (!spec) spec = "";
    size_t length = strcspn(spec, ":");
    struct data_source s = {.spec = spec, .graph = g, .seed = seed, .tokenizer = tokenizer};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        if (strlen(kinds[i].prefix) != length || memcmp(kinds[i].prefix, spec, length)) continue;
        if (tokenizer && kinds[i].open != text_open) {
            base_fail(TRI_USAGE, "data '%s': a tokenizer (--tokenizer %s) has a meaning for text alone",
                      spec, tokenizer);
            return NULL;
        }
        struct arena texts = {0}; /* which are cut up */
        char *text = arena_copy(&texts, spec + length + (spec[length] == ':'));
        s.prepared = prepared ? arena_copy(&texts, prepared) : NULL;
        if (texts.failed) base_no_memory(spec);
        tri_data *d = texts.failed ? NULL : open_kind(&kinds[i], &s, text);
        tri_data_concurrent(d); /* all kinds are */
        arena_free(&texts);
        return d;
    }
    unknown_kind(spec);
    return NULL;
}

tri_data *tri_data_open(const char *spec, const tri_graph *g, uint64_t seed) {
    return data_open(spec, g, seed, NULL, NULL);
}

void data_name_file(const tri_data *d, int64_t index, struct text *out) {
    struct pictures_file file = {0};
    if (d->about.file && !d->about.file(d->user, index, &file) && file.name.size)
        text_add(out, "%s", file.name.data);
    free(file.bytes);
    text_free(&file.name);
}

void data_name_sample(const tri_data *d, int64_t index, struct text *out) {
    struct text file = {0};
    data_name_file(d, index, &file);
    text_add(out, "sample %lld of data %s", (long long)index, d->name);
    if (file.size) text_add(out, " (%s)", file.data);
    text_free(&file);
}
