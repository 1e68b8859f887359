/* SPDX-License-Identifier: Apache-2.0
 * The checks that every operator passes, from nothing but its row: its examples are run against
 * finite differences (first and, where given, second derivatives), split along each of its factors
 * against unsplit, and on a device against the reference. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/random.h"
#include "exec/opcheck.h"
#include "exec/run.h"
#include "plan/factors.h"

#define MAX_INPUTS 16
#define STEP 1e-2 /* of finite differences */

struct example {
    const tri_op *op;
    const char *text;  /* as in the row */
    const char *attrs; /* "{axis=1}" or "" */
    int n;
    tri_spec spec[MAX_INPUTS];
    double low[MAX_INPUTS], high[MAX_INPUTS];
};

static tri_status differs(const struct example *e, const char *fmt, ...) TRI_PRINTF(2, 3);
static tri_status differs(const struct example *e, const char *fmt, ...) {
    char what[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return base_fail(TRI_FAILED, "operator %s, example \"%s\": %s", e->op->name, e->text, what);
}

/* ---- examples ---- */

/* "f32[2,3]@0.5:2"; null if it is not one. */
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
    *low = strtod(p + 1, &end);
    if (*end != ':') return NULL;
    *high = strtod(end + 1, &end);
    return end;
}

static tri_status read_example(const tri_op *op, const char *text, struct example *e) {
    *e = (struct example){.op = op, .text = text, .attrs = ""};
    const char *p = text;
    while (*p && *p != '{') {
        if (*p == ' ' || *p == ',') {
            p++;
            continue;
        }
        if (e->n == MAX_INPUTS) return differs(e, "it has more than %d inputs", MAX_INPUTS);
        p = read_spec(p, &e->spec[e->n], &e->low[e->n], &e->high[e->n]);
        if (!p) return differs(e, "it is not of the form \"f32[2,3]@-1:1, i64[4]@0:9 {axis=1}\"");
        e->n++;
    }
    e->attrs = p;
    return TRI_OK;
}

/* ---- values: every tensor as doubles, named by its place ---- */

struct values {
    int n;
    tri_spec spec[2 * MAX_INPUTS];
    double *at[2 * MAX_INPUTS];
};

static void values_free(struct values *v) {
    for (int i = 0; i < v->n; i++) free(v->at[i]);
    *v = (struct values){0};
}

static double *values_add(struct values *v, const tri_spec *spec) {
    if (v->n == 2 * MAX_INPUTS) return NULL;
    v->spec[v->n] = *spec;
    return v->at[v->n++] = calloc((size_t)tri_shape_count(&spec->shape) + 1, sizeof(double));
}

/* Draws what the type can hold, so that what is compared saw the same numbers. */
static bool draw(const struct example *e, struct values *v) {
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

/* ---- a graph of the example, run ---- */

struct trial {
    struct example e; /* with the shapes of this trial */
    tri_graph *g;
    tri_tensor *in[MAX_INPUTS];
    tri_node *node;
    struct store store;
    struct machine machine;
};

static void trial_free(struct trial *t) {
    machine_free(&t->machine);
    store_free(&t->store);
    tri_graph_free(t->g);
    *t = (struct trial){0};
}

/* The inputs are states, so that they can be written; a parameter is there to be updated, so that
 * the compiler takes the graph as it is, in training mode. */
static tri_status trial_begin(const struct example *e, int64_t lanes, struct trial *t) {
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

static tri_status trial_compile(struct trial *t, const struct dev *dev) {
    tri_options o = {.lanes = 1};
    tri_status status = tri_graph_status(t->g);
    return status ? status : machine_make(t->g, &o, dev, &t->store, &t->machine);
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

/* Runs on these inputs; adds every output of the graph to `out`. */
static tri_status trial_run(struct trial *t, const struct values *in, struct values *out) {
    struct tri_fault fault = {0};
    tri_status status = TRI_OK;
    for (int i = 0; i < t->e.n && !status; i++) status = write_input(t, i, in->at[i]);
    if (status) return status;
    if (!machine_step(&t->machine, &t->store, 1, 1, &fault))
        return differs(&t->e, "%s", fault.text);
    for (int i = 0; i < t->machine.n_outputs; i++) {
        const struct run_output *o = &t->machine.output[i];
        char *host = malloc(base_spec_bytes(&o->spec) + 1);
        double *to = values_add(out, &o->spec);
        if (!host || !to) {
            free(host);
            return base_no_memory("an example");
        }
        t->machine.dev->copy_out(host, o->memory, base_spec_bytes(&o->spec));
        for (int64_t k = 0; k < tri_shape_count(&o->spec.shape); k++)
            to[k] = convert_load(o->spec.type, host, (size_t)k);
        free(host);
    }
    return TRI_OK;
}

static void put_all(tri_tensor *const *outs, int n) {
    char name[24];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "y%d", i);
        tri_output(outs[i], name);
    }
}

/* The example's outputs on a device. */
static tri_status run_plain(const struct example *e, const struct dev *dev, int64_t lanes,
                            const struct values *in, struct values *out) {
    struct trial t;
    tri_tensor *outs[TRI_MAX_OUTPUTS];
    tri_status status = trial_begin(e, lanes, &t);
    if (!status) {
        for (int i = 0; i < t.node->n_out; i++) outs[i] = &t.node->out[i];
        put_all(outs, t.node->n_out);
        status = trial_compile(&t, dev);
    }
    if (!status) status = trial_run(&t, in, out);
    trial_free(&t);
    return status;
}

/* ---- comparing ---- */

static tri_status compare(const struct example *e, const char *what, const struct values *a,
                          const struct values *b, double tolerance) {
    if (a->n != b->n) return differs(e, "%s: %d results, not %d", what, b->n, a->n);
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
            return differs(e, "%s: element %lld of result %d is %.9g, not %.9g", what,
                           (long long)k, i, y, x);
        }
    }
    return TRI_OK;
}

/* ---- derivatives against finite differences ---- */

/* The tensors whose weighted sum is differentiated, and what it is differentiated by. */
struct derivative {
    struct trial t;
    int order;
    tri_tensor *of[TRI_MAX_OUTPUTS], *by[MAX_INPUTS];
    int n_of, n_by, input[MAX_INPUTS];
};

static double weight(int output, int64_t k) {
    return 0.25 + random_uniform(11, (uint64_t)output, (uint64_t)k);
}

/* The scalar sum over all elements of weight * tensor. */
static tri_tensor *project(tri_graph *g, tri_tensor *const *of, int n) {
    tri_tensor *sum = NULL;
    for (int i = 0; i < n; i++) {
        int64_t count = tri_shape_count(&of[i]->spec.shape);
        float *w = calloc((size_t)count + 1, sizeof *w);
        if (!w) return NULL;
        for (int64_t k = 0; k < count; k++) w[k] = (float)weight(i, k);
        tri_tensor *c = tri_array(g, TRI_F32, of[i]->spec.shape, w);
        free(w);
        tri_tensor *part = tri_sum_(tri_mul(of[i], c), TRI_ALL, (tri_reduce_options){0});
        sum = sum ? tri_add(sum, part) : part;
    }
    return sum;
}

static double projected(const struct values *v, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int64_t k = 0; k < tri_shape_count(&v->spec[i].shape); k++)
            sum += (double)(float)weight(i, k) * v->at[i][k];
    return sum;
}

static void choose(struct derivative *d, bool all_outputs) {
    const tri_node *n = d->t.node;
    d->n_of = d->n_by = 0;
    for (int i = 0; i < n->n_out && (i == 0 || all_outputs); i++)
        if (n->out[i].spec.type == TRI_F32) d->of[d->n_of++] = &n->out[i];
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]->spec.type == TRI_F32 &&
            !(i < 32 && d->t.e.op->shape_only >> i & 1)) {
            d->input[d->n_by] = i;
            d->by[d->n_by++] = n->in[i];
        }
}

/* The graph whose outputs are the projected tensors, then the derivatives. A refusal sticks to the
 * graph. */
static tri_status differentiate(const struct example *e, int order, bool all_outputs,
                                struct derivative *d) {
    tri_status status = trial_begin(e, 1, &d->t);
    d->order = order;
    if (status) return status;
    choose(d, all_outputs);
    for (int o = 0; o < order && d->n_of && d->n_by; o++) {
        tri_tensor *dx[MAX_INPUTS];
        tri_tensor *y = project(d->t.g, d->of, d->n_of);
        if (!y) return tri_graph_status(d->t.g) ? TRI_USAGE : base_no_memory("an example");
        tri_grad(y, d->by, d->n_by, dx);
        if (o + 1 == order) {
            if (d->t.g->status) break;
            put_all(d->of, d->n_of);
            for (int i = 0; i < d->n_by; i++) {
                char name[24];
                snprintf(name, sizeof name, "d%d", i);
                tri_output(dx[i], name);
            }
        } else {
            d->n_of = d->n_by;
            memcpy(d->of, dx, sizeof *dx * (size_t)d->n_by);
        }
    }
    return tri_graph_status(d->t.g);
}

static tri_status difference_at(struct derivative *d, struct values *in, int input, int64_t k,
                                double *slope) {
    double *x = &in->at[input][k], kept = *x, sums[2];
    tri_status status = TRI_OK;
    for (int side = 0; side < 2 && !status; side++) {
        struct values out = {0};
        *x = (double)(float)(kept + (side ? STEP : -STEP));
        status = trial_run(&d->t, in, &out);
        if (!status) sums[side] = projected(&out, d->n_of);
        values_free(&out);
    }
    double width = (double)(float)(kept + STEP) - (double)(float)(kept - STEP);
    *x = kept;
    if (!status) *slope = (sums[1] - sums[0]) / width;
    return status;
}

static tri_status compare_slopes(struct derivative *d, struct values *in) {
    struct values out = {0};
    tri_status status = trial_run(&d->t, in, &out);
    for (int j = 0; j < d->n_by && !status; j++) {
        const double *dx = out.at[d->n_of + j];
        double scale = 1e-3;
        int64_t n = tri_shape_count(&d->by[j]->spec.shape);
        for (int64_t k = 0; k < n; k++) scale = fmax(scale, fabs(dx[k]));
        for (int64_t k = 0; k < n && !status; k++) {
            double slope = 0;
            status = difference_at(d, in, d->input[j], k, &slope);
            if (!status && !(fabs(slope - dx[k]) <= 5e-3 * scale))
                status = differs(&d->t.e, "derivative %d by element %lld of input %d is %.7g, by "
                                 "finite differences %.7g", d->order, (long long)k, d->input[j],
                                 dx[k], slope);
        }
    }
    values_free(&out);
    return status;
}

/* `given`: whether the row provides this derivative at all. */
static tri_status check_derivative(const struct example *e, struct values *in, int order,
                                   bool *given) {
    struct derivative d = {0};
    tri_status status = differentiate(e, order, true, &d);
    if (status && order == 1 && e->op->gradient != tri_grad_refused) {
        trial_free(&d.t); /* outputs such as statistics may give none */
        d = (struct derivative){0};
        status = differentiate(e, order, false, &d);
    } else if (status && order == 2) {
        trial_free(&d.t);
        d = (struct derivative){0};
        status = differentiate(e, order, false, &d);
    }
    *given = !status && d.n_of && d.n_by;
    bool refused = status == TRI_USAGE && strstr(tri_message(), "has no derivative");
    if (*given) {
        status = trial_compile(&d.t, dev_find("ref"));
        if (!status) status = compare_slopes(&d, in);
    } else if (refused && (order == 2 || e->op->gradient == tri_grad_refused)) {
        status = TRI_OK;
    }
    trial_free(&d.t);
    return status;
}

/* ---- split against unsplit ---- */

/* The dimension of an operand that the factor leads, or -1; -2: it is inside a dimension. */
static int leads(const struct factor_operand *o, uint8_t f, const int64_t *extent) {
    for (int d = 0; d < o->rank; d++)
        for (int i = 0; i < o->dim[d].n; i++) {
            if (o->dim[d].f[i] == f) return d;
            if (extent[o->dim[d].f[i]] != 1) {
                for (int k = i + 1; k < o->dim[d].n; k++)
                    if (o->dim[d].f[k] == f) return -2;
                break;
            }
        }
    return -1;
}

/* Copies the share [begin, end) of `parts` equal ones of dimension dim between a whole tensor and
 * its part; to the whole if `back`, adding if dim < 0. */
static void move_part(const tri_shape *whole, int dim, int64_t begin, int64_t length, double *all,
                      double *part, bool back) {
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < whole->rank; i++) {
        if (i < dim) outer *= whole->dim[i];
        if (i > dim) inner *= whole->dim[i];
    }
    if (dim < 0) {
        for (int64_t i = 0; i < tri_shape_count(whole); i++) all[i] += part[i];
        return;
    }
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < length * inner; i++) {
            double *a = &all[(o * whole->dim[dim] + begin) * inner + i];
            double *p = &part[o * length * inner + i];
            *(back ? a : p) = *(back ? p : a);
        }
}

struct split {
    const struct example *e;
    const struct factors *f;
    const tri_node *node; /* the whole */
    uint8_t factor;
    int64_t extent;
};

/* A part's attributes: shapes cut, divisors frozen. */
static bool part_attrs(const struct split *s, int64_t share, struct text *out) {
    const struct op_entry *entry = s->node->entry;
    int dim = leads(&s->f->out[0], s->factor, s->f->extent), shown = 0;
    for (int i = 0; i < entry->n_attrs; i++) {
        tri_attr a = s->node->attr[i];
        if (entry->op->count && !strcmp(a.name, "count")) a.i = entry->op->count(s->node);
        if (entry->attr[i].kind == ATTR_SHAPE && dim >= 0)
            a.list.dim[dim] = a.list.dim[dim] / s->extent * share;
        text_add(out, "%s%s=", shown++ ? ", " : "{", a.name);
        switch (entry->attr[i].kind) {
        case ATTR_INT: text_add(out, "%lld", (long long)a.i); break;
        case ATTR_FLOAT: text_add(out, "%.17g", a.f); break;
        case ATTR_TEXT: text_add(out, "\"%s\"", a.text); break;
        case ATTR_TYPE: text_add(out, "%s", tri_type_name((tri_type)a.i)); break;
        default:
            text_add(out, "[");
            for (int k = 0; k < a.list.rank; k++)
                text_add(out, "%s%lld", k ? "," : "", (long long)a.list.dim[k]);
            text_add(out, "]");
        }
    }
    if (shown) text_add(out, "}");
    return !out->failed;
}

static tri_status run_part(const struct split *s, const struct values *in, int64_t begin,
                           int64_t share, struct values *sum) {
    struct example e = *s->e;
    struct values part = {0}, out = {0};
    struct text attrs = {0};
    int64_t at[MAX_INPUTS];
    tri_status status = TRI_OK;
    for (int i = 0; i < e.n; i++) {
        int dim = leads(&s->f->in[i], s->factor, s->f->extent);
        int64_t each = dim < 0 ? 0 : e.spec[i].shape.dim[dim] / s->extent, length = each * share;
        at[i] = each * begin;
        if (dim >= 0 && e.spec[i].shape.dim[dim] == 1) {
            dim = -1; /* broadcast */
        } else if (dim >= 0 && e.spec[i].shape.dim[dim] % s->extent) {
            length = e.spec[i].shape.dim[dim] / 2; /* statistics: a half of the rows for each */
            at[i] = begin ? length : 0;
        }
        if (dim >= 0) e.spec[i].shape.dim[dim] = length;
        double *to = values_add(&part, &e.spec[i]);
        if (!to) return base_no_memory("an example");
        if (dim >= 0)
            move_part(&s->e->spec[i].shape, dim, at[i], length, in->at[i], to, false);
        else
            memcpy(to, in->at[i], sizeof *to * (size_t)tri_shape_count(&e.spec[i].shape));
    }
    if (!part_attrs(s, share, &attrs)) status = base_no_memory("an example");
    e.attrs = attrs.data ? attrs.data : "";
    if (!status) status = run_plain(&e, dev_find("ref"), 1, &part, &out);
    for (int i = 0; i < out.n && !status; i++) {
        int dim = leads(&s->f->out[i], s->factor, s->f->extent);
        const tri_shape *whole = &sum->spec[i].shape;
        int64_t length = dim < 0 ? 0 : out.spec[i].shape.dim[dim];
        int64_t place = dim < 0 ? 0 : begin * (whole->dim[dim] / s->extent);
        if (dim >= 0 && whole->dim[dim] % s->extent) /* statistics: one row for each part */
            place = begin ? whole->dim[dim] - length : 0;
        move_part(whole, dim, place, length, sum->at[i], out.at[i], true);
    }
    text_free(&attrs);
    values_free(&part);
    values_free(&out);
    return status;
}

/* An example that is given the statistics of one group says nothing of two lanes. */
static bool fits_two_lanes(const struct example *e) {
    struct trial t;
    bool fits = trial_begin(e, 2, &t) == TRI_OK;
    trial_free(&t);
    return fits;
}

static tri_status check_split(const struct split *s, const struct values *in) {
    struct values whole = {0}, sum = {0};
    char what[64];
    /* Along the samples the parts are lanes, which have batch statistics of their own. */
    bool samples = s->node->n_in && leads(&s->f->in[0], s->factor, s->f->extent) == 0;
    int64_t first = samples ? s->extent / 2 : (s->extent + 1) / 2;
    if (samples && s->extent % 2) return TRI_OK;
    if (samples && !fits_two_lanes(s->e)) return TRI_OK;
    tri_status status = run_plain(s->e, dev_find("ref"), samples ? 2 : 1, in, &whole);
    for (int i = 0; i < whole.n && !status; i++)
        if (!values_add(&sum, &whole.spec[i])) status = base_no_memory("an example");
    if (!status) status = run_part(s, in, 0, first, &sum);
    if (!status) status = run_part(s, in, first, s->extent - first, &sum);
    snprintf(what, sizeof what, "split along factor '%c'", s->factor < 128 ? s->factor : '.');
    if (!status) status = compare(s->e, what, &whole, &sum, 1e-6);
    values_free(&whole);
    values_free(&sum);
    return status;
}

/* Every factor that may be split and leads all its dimensions. */
static tri_status check_splits(const struct example *e, const struct values *in, int *splits) {
    struct trial t;
    struct factors f;
    tri_status status = trial_begin(e, 1, &t);
    bool rule = e->op->factors || e->op->factor_fn || e->op->samplewise;
    if (!status && rule && !e->op->random) {
        if (!factors_of(t.node, &f)) status = TRI_USAGE;
        for (int c = 1; c < MAX_FACTORS && !status; c++) {
            bool inside = false;
            if (f.fixed[c] || f.extent[c] < 2) continue;
            for (int i = 0; i < f.n_in; i++) inside |= leads(&f.in[i], (uint8_t)c, f.extent) == -2;
            for (int i = 0; i < f.n_out; i++)
                inside |= leads(&f.out[i], (uint8_t)c, f.extent) == -2;
            if (inside) continue;
            ++*splits;
            status = check_split(&(struct split){e, &f, t.node, (uint8_t)c, f.extent[c]}, in);
        }
        factors_free(&f);
    }
    trial_free(&t);
    return status;
}

/* ---- all of it ---- */

static tri_status check_device(const struct example *e, const struct dev *dev,
                               const struct values *in) {
    struct values a = {0}, b = {0};
    struct trial t;
    tri_status status = trial_begin(e, 1, &t);
    const char *declined = status ? NULL : dev->declines(t.node);
    bool only_f32 = true;
    for (int i = 0; i < e->n; i++)
        only_f32 &= e->spec[i].type != TRI_BF16 && e->spec[i].type != TRI_F16;
    trial_free(&t);
    if (!status && declined)
        return only_f32 ? differs(e, "device %s declines it: %s", dev->name, declined) : TRI_OK;
    if (!status) status = run_plain(e, dev_find("ref"), 1, in, &a);
    if (!status) status = run_plain(e, dev, 1, in, &b);
    if (!status) status = compare(e, dev->name, &a, &b, 1e-5);
    values_free(&a);
    values_free(&b);
    return status;
}

static tri_status check_on_ref(const struct example *e, struct values *in,
                               struct opcheck_report *report) {
    bool given = false;
    tri_status status = TRI_OK;
    for (int order = 1; order <= 2 && !status; order++) {
        if (e->op->gradient == tri_grad_none || (order == 2 && !given)) break;
        status = check_derivative(e, in, order, &given);
        report->derivatives[order - 1] += !status && given;
    }
    if (!status) status = check_splits(e, in, &report->splits);
    struct values out = {0};
    if (!status) status = run_plain(e, dev_find("ref"), 1, in, &out);
    values_free(&out);
    return status;
}

static tri_status check_example(const tri_op *op, const char *text, const struct dev *dev,
                                struct opcheck_report *report) {
    struct example e;
    struct values in = {0};
    tri_status status = read_example(op, text, &e);
    if (status || !e.n) return status; /* sources have no inputs to try */
    if (!draw(&e, &in))
        status = base_no_memory("an example");
    else
        status = dev == dev_find("ref") ? check_on_ref(&e, &in, report)
                                        : check_device(&e, dev, &in);
    values_free(&in);
    return status;
}

tri_status opcheck_run(const tri_op *op, const char *device, struct opcheck_report *report) {
    const struct dev *dev = dev_find(device ? device : "ref");
    if (!dev) return base_fail(TRI_USAGE, "there is no device \"%s\"", device);
    tri_status status = dev->open ? dev->open() : TRI_OK;
    *report = (struct opcheck_report){0};
    if (!op->examples[0]) return base_fail(TRI_USAGE, "operator %s has no examples", op->name);
    for (int i = 0; op->examples[i] && !status; i++, report->examples++)
        status = check_example(op, op->examples[i], dev, report);
    return status;
}

tri_status tri_op_check(const tri_op *op, const char *device) {
    struct opcheck_report report;
    return opcheck_run(op, device, &report);
}
