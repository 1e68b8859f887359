/* SPDX-License-Identifier: Apache-2.0 */
#include "check/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/random.h"

tri_status example_differs(const struct example *e, const char *fmt, ...) {
    char what[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return base_fail(TRI_FAILED, "operator %s, example \"%s\": %s", e->op->name, e->text, what);
}

/* ---- examples ---- */

/* Parses "f32[2,3]@0.5:2". Returns its end, or null if it has another form. */
static const char *read_spec(const char *p, tri_spec *spec, double *low, double *high) {
    int t = TRI_F32;
    char *end;
    size_t length = strcspn(p, "[");
    while (t <= TRI_BOOL && (strlen(tri_type_name((tri_type)t)) != length ||
                             memcmp(tri_type_name((tri_type)t), p, length)))
        t++;
    if (t > TRI_BOOL || p[length] != '[') return NULL;
    *spec = (tri_spec){.type = (tri_type)t};
    *low = t == TRI_BOOL || t == TRI_U8 ? 0 : t == TRI_I32 || t == TRI_I64 ? 0 : -1;
    *high = t == TRI_BOOL ? 2 : 1;
    for (p += length + 1; *p && *p != ']'; p = *end == ',' ? end + 1 : end) {
        if (spec->shape.rank == TRI_MAX_RANK) return NULL;
        spec->shape.dim[spec->shape.rank++] = strtoll(p, &end, 10);
        if (end == p) return NULL;
    }
    if (*p++ != ']') return NULL;
    if (*p != '@') return p;
    *low = base_number(p + 1, &end);
    if (*end != ':') return NULL;
    *high = base_number(end + 1, &end);
    return end;
}

tri_status example_read(const tri_op *op, const char *text, struct example *e) {
    *e = (struct example){.op = op, .text = text, .attrs = "", .seed = 1};
    const char *p = text;
    while (*p && *p != '{') {
        if (*p == ' ' || *p == ',') {
            p++;
            continue;
        }
        if (e->n == MAX_INPUTS) return example_differs(e, "it has more than %d inputs", MAX_INPUTS);
        p = read_spec(p, &e->spec[e->n], &e->low[e->n], &e->high[e->n]);
        if (!p)
            return example_differs(e, "it is not of the form \"f32[2,3]@-1:1, i64[4]@0:9 "
                                   "{axis=1}\"");
        e->n++;
    }
    e->attrs = p;
    return TRI_OK;
}

/* ---- values: tensors as doubles, identified by position ---- */

void values_free(struct values *v) {
    for (int i = 0; i < v->n; i++) free(v->at[i]);
    *v = (struct values){0};
}

double *values_add(struct values *v, const tri_spec *spec) {
    if (v->n == 2 * MAX_INPUTS) return NULL;
    v->spec[v->n] = *spec;
    return v->at[v->n++] = calloc((size_t)tri_shape_count(&spec->shape) + 1, sizeof(double));
}

bool values_draw(const struct example *e, struct values *v) {
    for (int i = 0; i < e->n; i++) {
        double *x = values_add(v, &e->spec[i]);
        if (!x) return false;
        uint64_t key = random_key(7, base_hash_text(e->text));
        for (int64_t k = 0; k < tri_shape_count(&e->spec[i].shape); k++) {
            char cell[8];
            double u = random_uniform(key, (uint64_t)i, (uint64_t)k);
            double drawn = e->low[i] + (e->high[i] - e->low[i]) * u;
            if (!type_is_float(e->spec[i].type)) drawn = floor(drawn);
            convert_store(e->spec[i].type, cell, 0, drawn);
            x[k] = convert_load(e->spec[i].type, cell, 0);
        }
    }
    return true;
}

/* ---- building and running the graph of an example ---- */

void trial_free(struct trial *t) {
    machine_free(&t->machine);
    store_free(&t->store);
    tri_graph_free(t->g);
    *t = (struct trial){0};
}

/* The graph updates a parameter, so that the compiler adds no update and uses training mode. */
tri_status trial_begin(const struct example *e, int64_t lanes, struct trial *t) {
    struct text s = {0};
    char spec[SPEC_TEXT];
    *t = (struct trial){.e = *e};
    text_add(&s, "graph {batch=1, lanes=%lld}\n%%p = param() {name=\"p\", shape=[]}\n"
                 "assign %%p %%p\n", (long long)lanes);
    for (int i = 0; i < e->n; i++)
        text_add(&s, "%%i%d = state() {name=\"i%d\", type=%s, shape=%s}\n", i, i,
                 tri_type_name(e->spec[i].type),
                 strchr(base_spec_text(&e->spec[i], spec), '['));
    text_add(&s, "%%y = %s(", e->op->name);
    for (int i = 0; i < e->n; i++) text_add(&s, "%s%%i%d", i ? ", " : "", i);
    text_add(&s, ") %s @ \"example\"\n", e->attrs);
    t->g = s.failed ? NULL : tri_graph_parse(s.data, s.size, e->text);
    text_free(&s);
    tri_status status = t->g ? tri_graph_status(t->g) : base_no_memory("an example");
    for (int i = 0; i < e->n && !status; i++) t->in[i] = t->g->node[2 + i]->out;
    if (!status) t->node = t->g->node[t->g->n_nodes - 1];
    return status;
}

tri_status trial_compile(struct trial *t, struct dev *dev, struct team *team) {
    tri_options o = {.lanes = 1};
    struct machine_place place = {.dev = dev, .team = team, .store = &t->store};
    tri_status status = tri_graph_status(t->g);
    return status ? status : machine_make(t->g, &o, &place, &t->machine);
}

static tri_status write_input(struct trial *t, int i, const double *from) {
    char name[16];
    snprintf(name, sizeof name, "i%d", i);
    const struct stored *s = store_find(&t->store, name);
    char *host = malloc(base_spec_bytes(&s->spec) + 1);
    if (!host) return base_no_memory("an example");
    for (int64_t k = 0; k < tri_shape_count(&s->spec.shape); k++)
        convert_store(s->spec.type, host, (size_t)k, from[k]);
    store_write(&t->store, s, host);
    free(host);
    return TRI_OK;
}

/* Fills the arenas with NaNs, so that results computed from unwritten memory are wrong. */
static void poison(struct machine *m) {
    for (int i = 0; i < m->n_threads && m->dev->kind->space == SPACE_HOST; i++)
        memset(m->thread[i].arena, 0xff, m->thread[i].arena_bytes);
}

tri_status trial_run(struct trial *t, const struct values *in, struct values *out) {
    struct tri_fault fault = {0};
    tri_status status = TRI_OK;
    for (int i = 0; i < t->e.n && !status; i++) status = write_input(t, i, in->at[i]);
    if (status) return status;
    poison(&t->machine);
    if (!machine_step(&t->machine, t->e.seed, 1, &fault))
        return example_differs(&t->e, "%s", fault.text);
    for (int i = 0; i < t->machine.n_outputs; i++) {
        const struct run_output *o = &t->machine.output[i];
        char *host = malloc(base_spec_bytes(&o->spec) + 1);
        double *to = values_add(out, &o->spec);
        if (!host || !to) {
            free(host);
            return base_no_memory("an example");
        }
        dev_copy_out(t->machine.dev, host, o->memory, base_spec_bytes(&o->spec));
        for (int64_t k = 0; k < tri_shape_count(&o->spec.shape); k++)
            to[k] = convert_load(o->spec.type, host, (size_t)k);
        free(host);
    }
    return TRI_OK;
}

void trial_outputs(tri_tensor *const *outs, int n) {
    char name[24];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "y%d", i);
        tri_output(outs[i], name);
    }
}

tri_status trial_plain(const struct example *e, struct dev *dev, int64_t lanes, int threads,
                       const struct values *in, struct values *out) {
    struct trial t;
    struct team *team = NULL;
    tri_tensor *outs[TRI_MAX_OUTPUTS];
    tri_status status = trial_begin(e, lanes, &t);
    if (!status) {
        for (int i = 0; i < t.node->n_out; i++) outs[i] = &t.node->out[i];
        trial_outputs(outs, t.node->n_out);
        status = team_make(threads, &team);
    }
    if (!status) status = trial_compile(&t, dev, team);
    if (!status) status = trial_run(&t, in, out);
    trial_free(&t);
    team_free(team);
    return status;
}

/* ---- comparing ---- */

tri_status values_same(const struct example *e, const char *what, const struct values *a,
                       const struct values *b) {
    if (a->n != b->n) return example_differs(e, "%s: %d results, not %d", what, b->n, a->n);
    for (int i = 0; i < a->n; i++)
        for (int64_t k = 0; k < tri_shape_count(&a->spec[i].shape); k++)
            if (memcmp(&a->at[i][k], &b->at[i][k], sizeof(double)))
                return example_differs(e, "%s: element %lld of result %d is %.17g, not %.17g", what,
                                       (long long)k, i, b->at[i][k], a->at[i][k]);
    return TRI_OK;
}

tri_status values_compare(const struct example *e, const char *what, const struct values *a,
                          const struct values *b, double tolerance) {
    if (a->n != b->n) return example_differs(e, "%s: %d results, not %d", what, b->n, a->n);
    for (int i = 0; i < a->n; i++) {
        double scale = 0, limit = tolerance;
        int64_t n = tri_shape_count(&a->spec[i].shape);
        if (a->spec[i].type == TRI_BF16) limit = fmax(limit, 1.0 / 64);
        if (a->spec[i].type == TRI_F16) limit = fmax(limit, 1.0 / 512);
        if (!type_is_float(a->spec[i].type)) limit = 0;
        for (int64_t k = 0; k < n; k++)
            if (isfinite(a->at[i][k])) scale = fmax(scale, fabs(a->at[i][k]));
        for (int64_t k = 0; k < n; k++) {
            double x = a->at[i][k], y = b->at[i][k];
            if (x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= limit * (scale + fabs(x)))
                continue;
            return example_differs(e, "%s: element %lld of result %d is %.9g, not %.9g", what,
                           (long long)k, i, y, x);
        }
    }
    return TRI_OK;
}

