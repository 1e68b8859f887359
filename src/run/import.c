/* SPDX-License-Identifier: Apache-2.0 */
#include "run/import.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "plan/estimates.h"
#include "run/weights.h"

#define NAME 1024

/* Prefixes of names: of a model that was wrapped, or saved without its heads, or is the body of one
 * that was saved with them. */
static const char *const prefixes[] = {"module.", "_orig_mod.", "model.", "bert.", "transformer."};

static const struct {
    const char *ours, *theirs; /* suffixes of names */
} ends[] = {
    {".weight", ".gamma"},
    {".bias", ".beta"},
    {".running_mean", ".moving_mean"},
    {".running_var", ".moving_variance"},
    {".weight", ".embedding_table"},
};

/* Others store them, but they can be computed, or are not needed. */
static const char *const ignored[] = {"*num_batches_tracked", "*position_ids", "*.attn.bias",
                                      "*.attn.masked_bias"};

static const struct safetensors_entry *find_end(const struct safetensors *file, const char *name) {
    const struct safetensors_entry *e = safetensors_find(file, name);
    size_t n = strlen(name);
    for (size_t i = 0; i < COUNT(ends) && !e; i++) {
        size_t end = strlen(ends[i].ours);
        char other[NAME];
        if (n < end || strcmp(name + n - end, ends[i].ours)) continue;
        base_format(other, sizeof other, "%.*s%s", (int)(n - end), name, ends[i].theirs);
        e = safetensors_find(file, other);
    }
    return e;
}

/* Finds an entry by its name, or with one prefix added or removed. */
static const struct safetensors_entry *find(const struct safetensors *file, const char *name) {
    const struct safetensors_entry *e = find_end(file, name);
    for (size_t i = 0; i < COUNT(prefixes) && !e; i++) {
        size_t n = strlen(prefixes[i]);
        char longer[NAME];
        base_format(longer, sizeof longer, "%s%s", prefixes[i], name);
        e = find_end(file, longer);
        if (!e && !strncmp(name, prefixes[i], n)) e = find_end(file, name + n);
    }
    return e;
}

/* A tied parameter has several names. */
static const struct safetensors_entry *find_any(const struct safetensors *file, const tri_run *run,
                                                const char *name) {
    const struct safetensors_entry *e = find(file, name);
    for (size_t i = 0; i < run->model->n_settings && !e; i++) {
        const struct graph_setting *s = &run->model->setting[i];
        if (s->kind == SETTING_TIE && !strcmp(source_name(s->param->node), name))
            e = find(file, s->pattern);
    }
    return e;
}

/* Whether the network has that entry. The file may have a tied parameter under both names. */
static bool is_known(const tri_run *run, const struct import *in, const struct safetensors *file,
                     const struct safetensors_entry *t) {
    if (in->fresh && estimate_is(t->name)) return true;
    for (size_t i = 0; i < COUNT(ignored); i++)
        if (!fnmatch(ignored[i], t->name, 0)) return true;
    for (size_t i = 0; i < run->store.n; i++)
        if (in->of[i] == t) return true;
    for (size_t i = 0; i < run->model->n_settings; i++) {
        const struct graph_setting *s = &run->model->setting[i];
        if (s->kind == SETTING_TIE && find(file, s->pattern) == t) return true;
    }
    return false;
}

#define LISTED 5 /* differences; the others are counted */

/* "; missing: fc.weight f32[10,84]" */
static void add_wrong(struct import *out, const char *what, const char *name, const char *is,
                      const tri_spec *spec) {
    char text[SPEC_TEXT];
    if (out->n_wrong++ < LISTED || out->exact)
        text_add(&out->wrong, "; %s: %s %s%s", what, name, is, base_spec_text(spec, text));
}

static void match_entry(const struct safetensors *file, const tri_run *run, size_t i,
                        struct import *out) {
    const struct stored *e = &run->store.entry[i];
    if (out->fresh && estimate_is(e->name)) return;
    const struct safetensors_entry *t = out->of[i] =
        out->exact ? safetensors_find(file, e->name) : find_any(file, run, e->name);
    if (!t) add_wrong(out, "missing", e->name, "", &e->spec);
}

/* Called after all entries are matched, so that is_known finds those of another shape too. */
static void check_shape(const tri_run *run, size_t i, struct import *out) {
    const struct stored *e = &run->store.entry[i];
    const struct safetensors_entry *t = out->of[i];
    char theirs[SPEC_TEXT], is[SPEC_TEXT + 32];
    if (!t) return;
    bool type = out->exact ? e->spec.type == t->spec.type
                           : type_is_float(e->spec.type) == type_is_float(t->spec.type);
    if (type && base_shape_equal(&e->spec.shape, &t->spec.shape)) {
        out->taken++;
        return;
    }
    base_format(is, sizeof is, "is %s, the network has ", base_spec_text(&t->spec, theirs));
    add_wrong(out, "of another shape or type", t->name, is, &e->spec);
    out->of[i] = NULL;
}

tri_status import_match(const struct safetensors *file, const tri_run *run, bool optimizer,
                        bool exact, bool fresh, struct import *out) {
    *out = (struct import){.exact = exact, .fresh = fresh,
                           .of = calloc(run->store.n + 1, sizeof *out->of)};
    if (!out->of) return base_no_memory("the names of tensors");
    for (size_t i = 0; i < run->store.n; i++)
        if (run->store.entry[i].of_optimizer == optimizer) match_entry(file, run, i, out);
    for (size_t i = 0; i < file->n; i++)
        if (!is_known(run, out, file, &file->entry[i]))
            add_wrong(out, "unexpected", file->entry[i].name, "", &file->entry[i].spec);
    for (size_t i = 0; i < run->store.n; i++) check_shape(run, i, out);
    if (out->n_wrong > LISTED && !exact)
        text_add(&out->wrong, "; and %zu more", out->n_wrong - LISTED);
    if (out->n_wrong) weights_differ(file, run->model, &out->reason);
    if (out->reason.size) text_add(&out->reason, "; ");
    bool failed = out->wrong.failed || out->reason.failed;
    return failed ? base_no_memory("the list of what does not fit") : TRI_OK;
}

void import_free(struct import *i) {
    free(i->of);
    text_free(&i->wrong);
    text_free(&i->reason);
    *i = (struct import){0};
}
