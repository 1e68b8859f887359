/* SPDX-License-Identifier: Apache-2.0 */
#include "run/weights.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "checkpoint/checkpoint.h"
#include "data/data.h"
#include "run/run.h"

#define MODEL "trireme.model"
#define PREPARED "trireme.data"

size_t weights_metadata(const tri_run *run, struct safetensors_pair pair[WEIGHTS_PAIRS]) {
    size_t n = 0;
    pair[n++] = (struct safetensors_pair){"format", "pt"}; /* readers of this format look for it */
    if (run->model->spec) pair[n++] = (struct safetensors_pair){MODEL, run->model->spec};
    if (run->model->spec && run->data && run->data->about.prepared)
        pair[n++] = (struct safetensors_pair){PREPARED, run->data->about.prepared};
    return n;
}

static tri_status copy(const struct safetensors *file, const char *key, char **out) {
    const char *value = safetensors_metadata(file, key);
    *out = value ? strdup(value) : NULL;
    return value && !*out ? base_no_memory("the metadata of weights") : TRI_OK;
}

tri_status weights_about(const tri_options *o, struct weights_about *out) {
    struct seal_key *key = NULL;
    struct safetensors *file = NULL;
    struct stat st;
    struct text passed_over = {0}; /* reported when the weights are read */
    char within[4096];
    const char *path = o->load;
    *out = (struct weights_about){0};
    tri_status status = o->ckpt_key ? seal_key_open(o->ckpt_key, &key) : TRI_OK;
    if (!status && !stat(path, &st) && S_ISDIR(st.st_mode)) {
        status = checkpoint_model(path, key, within, &passed_over);
        path = within;
    }
    if (!status)
        status = safetensors_open(path, &(struct seal){.key = key, .step = -1}, true, &file);
    if (!status) status = copy(file, MODEL, &out->model);
    if (!status) status = copy(file, PREPARED, &out->prepared);
    safetensors_close(file);
    seal_key_free(key);
    text_free(&passed_over);
    return status;
}

void weights_about_free(struct weights_about *a) {
    free(a->model);
    free(a->prepared);
    *a = (struct weights_about){0};
}

/* Whether an argument of a spec is the n bytes at `item`, or continues after them with `end`. */
static bool has(const char *spec, const char *item, size_t n, char end) {
    for (const char *at = spec + strcspn(spec, ":"); *at; at += 1 + strcspn(at + 1, ",")) {
        if (strncmp(at + 1, item, n)) continue;
        if (!at[1 + n] || at[1 + n] == end) return true;
    }
    return false;
}

/* Adds `word` and the arguments of one spec that the other lacks. With `names`, only the names of
 * arguments are compared. */
static void add_lacking(const char *of, const char *other, bool names, const char *word,
                        struct text *out) {
    const char *before = word;
    for (const char *at = of + strcspn(of, ":"); *at;) {
        const char *item = at + 1;
        const size_t all = strcspn(item, ","), n = names ? strcspn(item, "=") : all;
        at = item + all;
        if (has(other, item, n, names ? '=' : ',')) continue;
        text_add(out, "%s %.*s", before, (int)all, item);
        before = ",";
    }
}

void weights_differ(const struct safetensors *file, const tri_graph *g, struct text *out) {
    const char *theirs = safetensors_metadata(file, MODEL), *ours = g->spec;
    struct text how = {0};
    if (!theirs || !ours || !strcmp(theirs, ours)) return;
    const size_t name = strcspn(theirs, ":");
    if (name != strcspn(ours, ":") || memcmp(theirs, ours, name)) {
        text_add(out, "it was made as %s; the network is %s", theirs, ours);
        return;
    }
    add_lacking(theirs, ours, false, " with", &how);
    add_lacking(ours, theirs, true, " without", &how);
    text_add(out, "it was made%s", how.failed ? " in another way" : how.data);
    text_free(&how);
}
