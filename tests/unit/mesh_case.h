/* SPDX-License-Identifier: Apache-2.0
 * Random small networks, meshes and strategies made from bytes: the expanded graph must compute
 * what the network computes. */
#ifndef MESH_CASE_H
#define MESH_CASE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "check/opcheck.h"
#include "unit/mesh_trial.h"

#define CASE_POOL 24
#define CASE_ASKS 12
#define CASE_NEAR 1e-4

/* The bytes of a case; after the last they are 0. */
struct bytes {
    const uint8_t *at, *end;
};

static inline int64_t pick(struct bytes *b, int64_t n) { return b->at < b->end ? *b->at++ % n : 0; }

struct net_case {
    tri_graph *g;
    struct bytes b;
    tri_tensor *pool[CASE_POOL]; /* f32 tensors so far */
    int n, sources;
    int64_t batch; /* of a network that is trained; else 0: all its sources are states */
};

enum source { DATA, WEIGHT, STATISTIC };

static inline tri_tensor *case_source(struct net_case *c, enum source kind, tri_type type,
                                      tri_shape s) {
    char name[16];
    const tri_init normal = {.kind = TRI_NORMAL, .a = 0, .b = 0.5};
    if (c->sources == MAX_INPUTS || (c->batch && kind == DATA && s.dim[0] != c->batch)) return NULL;
    snprintf(name, sizeof name, "i%d", c->sources++);
    if (c->batch && kind == DATA) return tri_input(c->g, name, type, s);
    if (c->batch && kind == WEIGHT) return (tri_param)(c->g, name, s, normal);
    return (tri_state)(c->g, name, type, s, (tri_init){TRI_CONSTANT, kind == STATISTIC, 0});
}

static inline tri_tensor *weight_of(struct net_case *c, tri_shape s) {
    return case_source(c, WEIGHT, TRI_F32, s);
}

static inline void keep(struct net_case *c, tri_tensor *t) {
    if (t && t->spec.type == TRI_F32 && c->n < CASE_POOL && tri_shape_count(&t->spec.shape) <= 4096)
        c->pool[c->n++] = t;
}

/* ---- operators; null if they do not fit x ---- */

static inline tri_tensor *case_unary(struct net_case *c, tri_tensor *x) {
    switch (pick(&c->b, 6)) {
    case 0: return tri_neg(x);
    case 1: return tri_tanh(x);
    case 2: return tri_gelu(x);
    case 3: return tri_sigmoid(x);
    case 4: return tri_scale(x, 0.5);
    default: return tri_dropout(x, 0.5);
    }
}

static inline tri_tensor *case_binary(struct net_case *c, tri_tensor *x) {
    tri_tensor *y = NULL;
    int64_t kind = pick(&c->b, 3), other = pick(&c->b, c->n + 1);
    if (other < c->n && base_shape_equal(&c->pool[other]->spec.shape, &x->spec.shape))
        y = c->pool[other];
    tri_shape s = x->spec.shape;
    if (!y && s.rank && other % 3 == 0) s = TRI_SHAPE(s.dim[s.rank - 1]);
    if (!y && s.rank && other % 3 == 1) s.dim[0] = 1;
    if (!y) y = weight_of(c, s);
    if (!y) return NULL;
    return kind == 0 ? tri_add(x, y) : kind == 1 ? tri_mul(x, y) : tri_sub(y, x);
}

static inline tri_tensor *case_matmul(struct net_case *c, tri_tensor *x) {
    static const int64_t out[] = {3, 4, 6, 8, 5};
    int rank = x->spec.shape.rank;
    if (rank < 2) return NULL;
    tri_tensor *w = weight_of(c, TRI_SHAPE(x->spec.shape.dim[rank - 1], out[pick(&c->b, 5)]));
    return w ? tri_matmul(x, w) : NULL;
}

/* Joins two dimensions or divides one. */
static inline tri_tensor *case_reshape(struct net_case *c, tri_tensor *x) {
    tri_shape from = x->spec.shape, s = {.rank = 0};
    if (!from.rank) return NULL;
    int at = (int)pick(&c->b, from.rank), join = (int)pick(&c->b, 2), by = 2 + (int)pick(&c->b, 2);
    if (!join && (from.dim[at] % by || from.rank > 4)) return NULL;
    for (int i = 0; i < from.rank; i++) {
        if (join && i == at + 1) {
            s.dim[s.rank - 1] *= from.dim[i];
        } else if (!join && i == at) {
            s.dim[s.rank++] = by;
            s.dim[s.rank++] = from.dim[i] / by;
        } else {
            s.dim[s.rank++] = from.dim[i];
        }
    }
    return tri_reshape(x, s);
}

static inline tri_tensor *case_transpose(struct net_case *c, tri_tensor *x) {
    tri_shape order = {.rank = x->spec.shape.rank};
    if (order.rank < 2) return NULL;
    int a = (int)pick(&c->b, order.rank), b = (int)pick(&c->b, order.rank);
    for (int i = 0; i < order.rank; i++) order.dim[i] = i == a ? b : i == b ? a : i;
    return tri_transpose(x, order);
}

static inline tri_tensor *case_cut(struct net_case *c, tri_tensor *x) {
    const tri_shape *s = &x->spec.shape;
    if (!s->rank) return NULL;
    int axis = (int)pick(&c->b, s->rank), kind = (int)pick(&c->b, 4);
    tri_tensor *parts[3] = {x, NULL, x};
    tri_shape before = {.rank = s->rank}, after = before;
    before.dim[axis] = 1;
    after.dim[axis] = 2;
    if (kind == 0) return tri_slice(x, axis, pick(&c->b, 2) && s->dim[axis] > 2, s->dim[axis]);
    if (kind == 1) return tri_pad(x, before, after, 0.25);
    if (kind == 2 && s->dim[axis] % 2 == 0) {
        tri_split(x, 2, axis, parts);
        keep(c, parts[1]);
        return parts[0];
    }
    parts[1] = tri_tanh(x);
    return tri_concat(parts, kind == 3 ? 3 : 2, axis);
}

static inline tri_tensor *case_reduce(struct net_case *c, tri_tensor *x) {
    if (!x->spec.shape.rank) return NULL;
    int axis = (int)pick(&c->b, x->spec.shape.rank);
    bool keeps = pick(&c->b, 2);
    switch (pick(&c->b, 3)) {
    case 0: return tri_sum(x, TRI_SHAPE(axis), .keep = keeps);
    case 1: return tri_mean(x, TRI_SHAPE(axis), .keep = keeps);
    default: return tri_max(x, TRI_SHAPE(axis), .keep = keeps);
    }
}

static inline tri_tensor *case_softmax(struct net_case *c, tri_tensor *x) {
    if (!x->spec.shape.rank) return NULL;
    int axis = (int)pick(&c->b, x->spec.shape.rank);
    return pick(&c->b, 2) ? tri_softmax(x, axis) : tri_log_softmax(x, axis);
}

static inline tri_tensor *case_norm(struct net_case *c, tri_tensor *x) {
    const tri_shape *s = &x->spec.shape;
    if (s->rank < 2) return NULL;
    bool layer = s->rank == 3 || pick(&c->b, 2);
    tri_shape one = TRI_SHAPE(s->dim[layer ? s->rank - 1 : 1]);
    tri_tensor *gamma = weight_of(c, one), *beta = weight_of(c, one);
    if (!gamma || !beta) return NULL;
    if (layer) return tri_layer_norm(x, gamma, beta, .eps = 0.1);
    tri_tensor *mean = case_source(c, STATISTIC, TRI_F32, one);
    tri_tensor *var = case_source(c, STATISTIC, TRI_F32, one);
    return mean && var ? tri_batch_norm(x, gamma, beta, mean, var, .eps = 0.1) : NULL;
}

/* Rows of a tensor of the pool as a table; of weights if the network is trained, because rows of
 * samples cannot be in a lane. */
static inline tri_tensor *case_gather(struct net_case *c, tri_tensor *x) {
    const tri_shape *s = &x->spec.shape;
    if (!s->rank || s->rank > 2 || s->dim[0] < 3) return NULL;
    tri_shape of = pick(&c->b, 2) ? TRI_SHAPE(4, 3) : TRI_SHAPE(5);
    if (c->batch) of.dim[0] = c->batch;
    tri_tensor *ids = case_source(c, DATA, TRI_I64, of);
    tri_tensor *table = c->batch ? weight_of(c, *s) : x;
    return ids && table ? tri_gather(table, ids) : NULL;
}

static inline tri_tensor *case_pool(struct net_case *c, tri_tensor *x) {
    const int64_t size = 1 + pick(&c->b, 3), stride = 1 + pick(&c->b, 3), flags = pick(&c->b, 8);
    tri_pool_options o = {.size = size, .stride = stride, .pad = flags & 1 ? size / 2 : 0,
                          .ceil_mode = flags & 2, .exclude_pad = flags & 4};
    return pick(&c->b, 2) ? tri_max_pool_(x, o) : tri_avg_pool_(x, o);
}

static inline tri_tensor *case_image(struct net_case *c, tri_tensor *x) {
    const tri_shape *s = &x->spec.shape;
    if (s->rank != 4 || s->dim[2] < 3 || s->dim[3] < 3) return NULL;
    const int64_t kind = pick(&c->b, 4), out = 2 * (1 + pick(&c->b, 3)), flags = pick(&c->b, 16);
    const int64_t groups = flags & 1 && s->dim[1] % 2 == 0 ? 2 : 1, kernel = flags & 2 ? 3 : 1;
    if (kind == 0) return case_pool(c, x);
    if (kind == 1) {
        tri_shape channels = TRI_SHAPE(s->dim[1]);
        tri_tensor *gamma = weight_of(c, channels), *beta = weight_of(c, channels);
        return gamma && beta ? tri_group_norm(x, groups, gamma, beta, .eps = 0.1) : NULL;
    }
    tri_tensor *w = weight_of(c, TRI_SHAPE(out, s->dim[1] / groups, kernel, kernel)), *bias = NULL;
    if (kind == 3) bias = weight_of(c, TRI_SHAPE(out));
    return w ? tri_conv2d(x, w, .pad = flags & 4 ? kernel / 2 : 0, .stride = 1 + pick(&c->b, 3),
                          .dilation = flags & 8 && kernel == 3 && s->dim[2] > 4 && s->dim[3] > 4
                                          ? 2 : 1,
                          .groups = groups, .bias = bias)
             : NULL;
}

static inline tri_tensor *case_top(struct net_case *c, tri_tensor *x) {
    const tri_shape *s = &x->spec.shape;
    tri_tensor *values = NULL;
    if (!s->rank || s->dim[s->rank - 1] < 3) return NULL;
    tri_top_k(x, 1 + pick(&c->b, 3), &values, NULL);
    return values;
}

static inline tri_tensor *case_attention(struct net_case *c, tri_tensor *x) {
    const tri_shape *s = &x->spec.shape;
    if (s->rank != 3 || s->dim[2] % 3) return NULL;
    int64_t features = s->dim[2] / 3, heads = 1 + pick(&c->b, 4);
    if (features % heads) return NULL;
    return tri_attention(x, NULL, NULL, .heads = heads, .causal = pick(&c->b, 2));
}

static inline tri_tensor *case_loss(struct net_case *c, tri_tensor *x) {
    tri_shape s = x->spec.shape;
    if (s.rank < 2 || s.dim[s.rank - 1] < 3) return NULL;
    s.rank--;
    tri_tensor *labels = case_source(c, DATA, TRI_I64, s);
    return labels ? tri_cross_entropy(x, labels, .reduction = (tri_reduction)pick(&c->b, 3)) : NULL;
}

/* ---- a network ---- */

/* Makes the graph with its first tensor. */
static inline void case_begin(struct net_case *c, bool trains) {
    static const tri_shape start[] = {TRI_SHAPE(6, 8), TRI_SHAPE(4, 5, 12), TRI_SHAPE(3, 4, 5, 6),
                                      TRI_SHAPE(7, 9), TRI_SHAPE(2, 6, 24), TRI_SHAPE(8, 6, 4, 4)};
    const tri_shape s = start[pick(&c->b, COUNT(start))];
    c->batch = trains ? s.dim[0] : 0;
    c->g = tri_graph_new(trains ? c->batch : 1);
    keep(c, case_source(c, DATA, TRI_F32, s));
}

/* Tries up to 10 operators. */
static inline void case_grow(struct net_case *c) {
    static tri_tensor *(*const op[])(struct net_case *, tri_tensor *) = {
        case_unary, case_binary, case_matmul, case_reshape, case_transpose, case_cut, case_reduce,
        case_softmax, case_norm, case_gather, case_image, case_image, case_attention, case_loss,
        case_top};
    const int steps = 1 + (int)pick(&c->b, 10);
    for (int i = 0; i < steps; i++) {
        tri_tensor *x = c->pool[pick(&c->b, 2) || c->n < 2 ? c->n - 1 : pick(&c->b, c->n)];
        keep(c, op[pick(&c->b, COUNT(op))](c, x));
    }
}

static inline tri_graph *case_network(struct bytes *b) {
    struct net_case c = {.b = *b};
    tri_tensor *out[2 * MAX_INPUTS], *in[MAX_INPUTS], *dx[MAX_INPUTS];
    int n = 0, n_in = 0;
    case_begin(&c, false);
    tri_tensor *p = (tri_param)(c.g, "p", (tri_shape){.rank = 0}, (tri_init){.kind = TRI_CONSTANT});
    (tri_assign)(p, p);
    case_grow(&c);
    out[n++] = c.pool[c.n - 1];
    if (c.n > 2 && c.n % 2) out[n++] = c.pool[c.n - 2];
    for (size_t i = 0; i < c.g->n_nodes && !c.g->status; i++)
        if (node_is(c.g->node[i], "state") && c.g->node[i]->out->spec.type == TRI_F32)
            in[n_in++] = c.g->node[i]->out;
    tri_tensor *y = c.g->status ? NULL : opcheck_project(c.g, out, n);
    if (y && pick(&c.b, 4)) {
        tri_grad(y, in, n_in, dx);
        for (int i = 0; i < n_in; i++) out[n++] = dx[i];
    }
    trial_outputs(out, n);
    *b = c.b;
    return c.g;
}

/* ---- strategies ---- */

static inline void case_layout(tri_tensor *t, int64_t axis, struct bytes *b) {
    char text[2 * TRI_MAX_RANK + 1] = "";
    int rank = t->spec.shape.rank;
    if (!rank) return;
    for (int d = 0; d < rank; d++) memcpy(text + 2 * d, "-,", 2);
    text[2 * rank - 1] = 0;
    text[2 * pick(b, rank)] = (char)('a' + axis);
    (tri_layout)(t, text);
}

/* Asks up to CASE_ASKS forward nodes for splits, of which the first `most` are really asked; if
 * `lines` is set, by its lines, which need not be followed. */
static inline enum unset case_strategies(tri_graph *g, struct bytes *b, int most,
                                         struct text *lines) {
    static const char *const mesh[] = {"a=2", "a=3", "a=4", "a=2,b=2", "a=2,b=3", "a=3,b=2"};
    int64_t kind = pick(b, COUNT(mesh)), axes = kind < 3 ? 1 : 2;
    (tri_mesh)(g, mesh[kind]);
    int n = 1 + (int)pick(b, CASE_ASKS);
    for (int i = 0; i < n; i++) {
        char ask[64];
        struct factors f;
        uint8_t some[MAX_FACTORS];
        int count = 0;
        int64_t axis = (i + pick(b, 5) / 4) % axes, forward = (int64_t)graph_forward(g);
        tri_node *x = g->node[pick(b, forward)];
        for (int64_t k = 0; k < forward && !x->n_in; k++) x = g->node[(x->id + 1) % forward];
        if (!x->n_in || !(x->entry->op->factors || x->entry->op->factor_fn ||
                          x->entry->op->samplewise) || !factors_of(x, &f))
            continue;
        for (int k = 1; k < MAX_FACTORS; k++)
            if (f.extent[k] >= g->mesh.axis[axis].size && factor_name(x, &f, (uint8_t)k))
                some[count++] = (uint8_t)k;
        int64_t which = count ? some[pick(b, count)] : 0, blocks = pick(b, 12);
        const char *name = which ? factor_name(x, &f, (uint8_t)which) : "";
        snprintf(ask, sizeof ask, blocks == 11 ? "%s/2=%c" : "%s=%c", name, (char)('a' + axis));
        if (which && i < most && lines) text_add(lines, "maybe %s %s\n", x->name, ask);
        else if (which && i < most && pick(b, 6)) (tri_strategy)(g, x->name, ask);
        else if (which && i < most) case_layout(x->out, axis, b);
        factors_free(&f);
    }
    return (enum unset)(pick(b, 5) % 3);
}

/* ---- running ---- */

static inline void case_values(const tri_graph *g, double noise, struct values *v) {
    int state = 0;
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (!node_is(g->node[i], "state") || state == MAX_INPUTS) continue;
        const tri_spec *spec = &g->node[i]->out->spec;
        double *x = values_add(v, spec);
        for (int64_t k = 0; x && k < tri_shape_count(&spec->shape); k++) {
            double u = random_uniform(random_key(3, 5), (uint64_t)state, (uint64_t)k);
            double other = random_uniform(random_key(4, 5), (uint64_t)state, (uint64_t)k);
            x[k] = spec->type == TRI_F32 ? (float)((2 * u - 1) * (1 + noise * (other - 0.5)))
                                         : floor(3 * u);
        }
        state++;
    }
}

/* The largest difference relative to the largest value of a tensor. */
static inline double case_distance(const struct values *a, const struct values *b) {
    double worst = 0;
    for (int i = 0; i < a->n; i++) {
        double scale = 0.1, wrong = 0; /* sums that cancel leave noise */
        for (int64_t k = 0; k < tri_shape_count(&a->spec[i].shape); k++) {
            double x = a->at[i][k], y = b->at[i][k];
            if (x == y || (isnan(x) && isnan(y))) continue;
            scale = isfinite(x) ? fmax(scale, fabs(x)) : scale;
            wrong = isfinite(x - y) ? fmax(wrong, fabs(x - y)) : HUGE_VAL;
        }
        worst = fmax(worst, wrong / scale);
    }
    return worst;
}

/* What a case came to: *splits is how many of its strategies were followed, 0: none could be. */
struct case_result {
    int splits;
    double wrong, noise; /* noise: how far results move if inputs move by a rounding error */
    char *text;          /* the network, with its mesh; the caller frees it */
};

static inline tri_graph *case_expand(const uint8_t *data, size_t size, int most, char **text) {
    struct bytes b = {data, data + size};
    struct strategies s = {0};
    struct dist d = {0};
    tri_options o = tri_options_default();
    tri_graph *g = case_network(&b), *expanded = NULL;
    enum unset unset = case_strategies(g, &b, most, NULL);
    tri_status status = tri_graph_status(g);
    free(*text);
    *text = tri_graph_print(g);
    if (!status) status = strategies_make(g, &o, &s);
    if (!status) {
        s.unset = unset;
        status = dist_make(g, NULL, &s, &d);
        if (!status) {
            expanded = expand(&d);
            if (expanded) expanded->mesh = d.mesh;
            dist_free(&d);
        }
        strategies_free(&s);
    }
    if (!expanded) CHECK(tri_message()[0] && !strchr(tri_message(), '\n'));
    tri_graph_free(g);
    return expanded;
}

/* How far the expanded graph is from what the network computes, and if that is far, how far noise
 * takes it. */
static inline tri_status case_judge(const uint8_t *data, size_t size, const struct values *in,
                                    const struct values *plain, tri_graph *expanded,
                                    struct case_result *r) {
    struct bytes b = {data, data + size};
    struct values near = {0}, moved = {0}, split = {0};
    tri_graph *again = NULL;
    tri_status status = graph_run(expanded, 1, in, &split);
    if (!status) r->wrong = case_distance(plain, &split);
    if (!status && r->wrong > CASE_NEAR) {
        again = case_network(&b);
        case_values(again, 1e-6, &near);
        status = graph_run(again, 1, &near, &moved);
        if (!status) r->noise = case_distance(plain, &moved);
    }
    values_free(&near);
    values_free(&moved);
    values_free(&split);
    tri_graph_free(again);
    return status;
}

/* Half of the strategies are dropped until the rest can be followed. */
static inline tri_status case_run(const uint8_t *data, size_t size, struct case_result *r) {
    struct bytes b = {data, data + size};
    struct values in = {0}, plain = {0};
    tri_graph *g = case_network(&b), *expanded = NULL;
    *r = (struct case_result){.splits = CASE_ASKS};
    tri_status status = tri_graph_status(g);
    if (status) { /* a network that is refused */
        tri_graph_free(g);
        r->splits = 0;
        return TRI_OK;
    }
    case_values(g, 0, &in);
    status = graph_run(g, 1, &in, &plain);
    if (status == TRI_USAGE) status = TRI_OK, r->splits = 0; /* too few samples for a statistic */
    for (; r->splits && !expanded && !status; r->splits -= !expanded ? (r->splits + 1) / 2 : 0)
        expanded = case_expand(data, size, r->splits, &r->text);
    if (expanded) expanded->mesh = (struct mesh){0};
    if (!status && expanded) status = case_judge(data, size, &in, &plain, expanded, r);
    values_free(&in);
    values_free(&plain);
    tri_graph_free(g);
    tri_graph_free(expanded);
    return status;
}

static inline bool case_right(const struct case_result *r) {
    return r->wrong <= CASE_NEAR + 20 * r->noise;
}

#endif
