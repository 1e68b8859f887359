/* SPDX-License-Identifier: Apache-2.0
 * One step of two runs, operator by operator: the first run's results go to a temporary file, and
 * the second run's are compared with them as soon as they are computed. */
#include "cli/compare.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"

bool compare_equal(struct compare_values *v, tri_type type, const void *a, const void *b,
                   int64_t n) {
    size_t size = tri_type_size(type);
    v->at = -1;
    v->largest = 0;
    v->same = !memcmp(a, b, (size_t)n * size);
    if (v->same) return true;
    for (int64_t i = 0; i < n && v->tolerance >= 0; i++) {
        double x = fabs(convert_load(type, a, (size_t)i));
        if (isfinite(x)) v->largest = fmax(v->largest, x);
    }
    for (int64_t i = 0; i < n && v->at < 0; i++) {
        const char *x = (const char *)a + (size_t)i * size, *y = (const char *)b + (size_t)i * size;
        if (!memcmp(x, y, size)) continue;
        v->a = convert_load(type, a, (size_t)i);
        v->b = convert_load(type, b, (size_t)i);
        bool finite = isfinite(v->a) && isfinite(v->b);
        if (v->tolerance < 0 || !finite || fabs(v->a - v->b) > v->tolerance * v->largest) v->at = i;
    }
    return v->at < 0;
}

bool compare_same_spec(const tri_spec *a, const tri_spec *b) {
    return a->type == b->type && base_shape_equal(&a->shape, &b->shape);
}

const char *compare_unlike(bool both, int which) {
    return both    ? "another shape or type"
           : which ? "only in the second"
                   : "only in the first";
}

void compare_print(const struct compare_values *v, struct text *out) {
    text_add(out, "element %lld: %.9g and %.9g", (long long)v->at, v->a, v->b);
    if (v->tolerance >= 0)
        text_add(out, ", beyond %g of the largest value, %.6g", v->tolerance, v->largest);
}

/* ---- recording ---- */

struct record {
    const char *name; /* of the node; owned by the graph */
    int output;
    int64_t lane; /* -1: of all lanes together */
    tri_spec spec;
    off_t at; /* in the file */
};

struct trace {
    tri_run *run;
    FILE *file;
    bool compares; /* with what the file has; else it writes the file */
    bool lanes;    /* lanes of both runs are the same samples */
    double tolerance;
    struct record *record;
    size_t n, capacity, next;
    int64_t lane[2]; /* of phases count and lane: how many have begun */
    size_t compared; /* results */
    tri_status status;
    struct text *out;
};

/* Which lane the program works on; -1: all. Lanes come in order, as there is one thread. */
static int64_t lane_of(struct trace *t, const struct program *p, size_t item) {
    const struct machine *m = t->run->machine; /* of this step's shape */
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 2; i++) {
            const struct program *of = k ? &m->thread->lane[i] : &m->thread->count[i];
            if (p != of) continue;
            t->lane[k] += item == 0;
            return t->lane[k] - 1;
        }
    return m->lanes == 1 ? 0 : -1;
}

static bool is_of(const struct record *r, const tri_tensor *x, int64_t lane) {
    return r->lane == lane && r->output == x->index && !strcmp(r->name, x->node->name);
}

/* A part or a move of what the node of this name computes, which another plan divides otherwise. */
static bool is_part(const tri_node *n) {
    bool owned = n->move != 0;
    for (int a = 0; a < MESH_MOST_AXES; a++) owned |= n->owner[a] >= 0;
    return owned;
}

/* The record of the tensor; null: the other run has none. Both runs compute in a similar order. */
static const struct record *find(struct trace *t, const tri_tensor *x, int64_t lane) {
    for (size_t i = 0; i < t->n; i++) {
        const struct record *r = &t->record[(t->next + i) % t->n];
        if (!is_of(r, x, lane)) continue;
        t->next = (t->next + i + 1) % t->n;
        return r;
    }
    return NULL;
}

static void keep(struct trace *t, const tri_tensor *x, int64_t lane, const void *value) {
    size_t bytes = base_spec_bytes(&x->spec);
    off_t at = ftello(t->file);
    if (!ARRAY_GROW(t->record, t->n, t->capacity)) {
        t->status = base_no_memory("the results of operators");
        return;
    }
    t->record[t->n++] = (struct record){x->node->name, x->index, lane, x->spec, at};
    if (fwrite(value, 1, bytes, t->file) != bytes)
        t->status = base_fail(TRI_FAILED, "cannot write a temporary file: %s", strerror(errno));
}

static void differ(struct trace *t, const tri_tensor *x, int64_t lane,
                   const struct compare_values *v) {
    text_add(t->out, "step %lld, ", (long long)t->run->done + 1);
    if (lane >= 0) text_add(t->out, "lane %lld, ", (long long)lane);
    node_describe(x->node, t->out);
    if (x->index) text_add(t->out, ", output %d", x->index);
    text_add(t->out, ", ");
    compare_print(v, t->out);
    text_add(t->out, "\n");
}

static void compare(struct trace *t, const tri_tensor *x, int64_t lane, const void *value,
                    void *other) {
    const struct record *r = find(t, x, lane);
    struct compare_values v = {.tolerance = t->tolerance};
    size_t bytes = base_spec_bytes(&x->spec);
    bool fits = r && compare_same_spec(&r->spec, &x->spec) &&
                (t->tolerance < 0 || (type_is_float(x->spec.type) && !is_part(x->node)));
    if (!fits) return;
    t->compared++;
    if (fseeko(t->file, r->at, SEEK_SET) || fread(other, 1, bytes, t->file) != bytes)
        t->status = base_fail(TRI_FAILED, "cannot read a temporary file: %s", strerror(errno));
    else if (!compare_equal(&v, x->spec.type, other, value, tri_shape_count(&x->spec.shape)))
        differ(t, x, lane, &v);
}

static void watch(const struct program *p, size_t item) {
    struct trace *t = p->user;
    const struct unit *u = p->item[item].unit;
    int64_t lane = lane_of(t, p, item);
    if (lane != -1 && !t->lanes) return;
    for (int k = 0; k < u->n_out && !t->status && !t->out->size; k++) {
        size_t bytes = base_spec_bytes(&u->out[k]->spec);
        char *value = malloc(2 * bytes + 1);
        if (!value) {
            t->status = base_no_memory("the results of operators");
            return;
        }
        dev_copy_out(t->run->dev, value, program_value(p, u->out[k]->id), bytes);
        if (t->compares)
            compare(t, u->out[k], lane, value, value + bytes);
        else
            keep(t, u->out[k], lane, value);
        free(value);
    }
}

/* t null: no longer. The next step may have any of the run's shapes. */
static void set_watch(tri_run *run, struct trace *t) {
    for (int e = 0; e < run->n_executables; e++) {
        struct program *p;
        for (int i = 0; (p = machine_program(&run->executable[e], i)); i++) {
            p->watch = t ? watch : NULL;
            p->user = t;
        }
    }
}

static tri_status watched_step(struct trace *t) {
    set_watch(t->run, t);
    bool done = tri_step(t->run);
    set_watch(t->run, NULL);
    if (!done) return tri_run_status(t->run) ? tri_run_status(t->run)
                                             : base_fail(TRI_FAILED, "there is no further step");
    return t->status;
}

tri_status compare_step(tri_run *const run[2], double tolerance, size_t *compared,
                        struct text *out) {
    struct trace t = {.run = run[0],
                      .file = tmpfile(),
                      .tolerance = tolerance,
                      .lanes = run_lanes(run[0]) == run_lanes(run[1]),
                      .out = out};
    if (!t.file)
        return base_fail(TRI_FAILED, "cannot make a temporary file: %s", strerror(errno));
    tri_status status = watched_step(&t);
    t.run = run[1];
    t.compares = true;
    t.lane[0] = t.lane[1] = 0;
    if (!status) status = watched_step(&t);
    if (!status && !out->size) status = compare_stores(run, tolerance, out);
    *compared += t.compared;
    free(t.record);
    fclose(t.file);
    return status;
}

/* ---- after a step ---- */

static const char *kind_of(const struct stored *s) { return s->param ? "parameter" : "state"; }

static void compare_stored(tri_run *const run[2], const struct stored *a, double tolerance,
                           void *host[2], struct text *out) {
    const struct stored *b = store_find(&run[1]->store, a->name);
    struct compare_values v = {.tolerance = tolerance};
    if (!b || !compare_same_spec(&a->spec, &b->spec)) return; /* compare_skipped says so */
    store_read(&run[0]->store, a, host[0]);
    store_read(&run[1]->store, b, host[1]);
    if (compare_equal(&v, a->spec.type, host[0], host[1], tri_shape_count(&a->spec.shape))) return;
    text_add(out, "step %lld, %s %s, ", (long long)run[0]->done, kind_of(a), a->name);
    compare_print(&v, out);
    text_add(out, "\n");
}

void compare_skipped(tri_run *const run[2], struct text *out) {
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < run[k]->store.n; i++) {
            const struct stored *a = &run[k]->store.entry[i];
            const struct stored *b = store_find(&run[1 - k]->store, a->name);
            if (b && (k || compare_same_spec(&a->spec, &b->spec))) continue;
            text_add(out, "%s %s is not compared: %s\n", kind_of(a), a->name,
                     compare_unlike(b, k));
        }
}

tri_status compare_stores(tri_run *const run[2], double tolerance, struct text *out) {
    const struct store *s = &run[0]->store;
    for (size_t i = 0; i < s->n && !out->size; i++) {
        size_t bytes = base_spec_bytes(&s->entry[i].spec);
        void *host[2] = {malloc(bytes + 1), malloc(bytes + 1)};
        bool ok = host[0] && host[1];
        if (ok) compare_stored(run, &s->entry[i], tolerance, host, out);
        free(host[0]);
        free(host[1]);
        if (!ok) return base_no_memory(s->entry[i].name);
    }
    for (int i = 0; i < run_output_count(run[0]) && !out->size; i++) {
        const char *name = run_output_name(run[0], i);
        double a = tri_value(run[0], name), b = tri_value(run[1], name);
        struct compare_values v = {.tolerance = tolerance};
        if (!run_output_is_scalar(run[0], i)) continue;
        float x = (float)a, y = (float)b;
        if (compare_equal(&v, TRI_F32, &x, &y, 1)) continue;
        text_add(out, "step %lld, output %s, ", (long long)run[0]->done, name);
        compare_print(&v, out);
        text_add(out, "\n");
    }
    return out->failed ? base_no_memory("a comparison") : TRI_OK;
}
