/* SPDX-License-Identifier: Apache-2.0
 * What transformers have in common: their arguments, attention, means over places that count. */
#include <math.h>
#include <stdlib.h>

#include "models/models.h"

struct transformer transformer_begin(tri_graph *g, tri_args *a, struct transformer t) {
    t.graph = g;
    t.args = a;
    t.layers = model_int(a, "layers", t.layers, 1, 1000);
    t.hidden = model_int(a, "hidden", t.hidden, 1, 65536);
    t.heads = model_divisor(a, "heads", t.heads, t.hidden);
    t.inner = model_int(a, "inner", 4 * t.hidden, 1, 1 << 20);
    t.vocab = model_int(a, "vocab", t.vocab, 2, 1 << 24);
    t.positions = model_int(a, "positions", t.positions, 2, 1 << 20);
    t.seq = model_int(a, "seq", t.seq < t.positions ? t.seq : t.positions, 2, t.positions);
    t.dropout = tri_args_float(a, "dropout", 0.1);
    t.logits = model_int(a, "logits", 0, 0, 1) == 1;
    return t;
}

tri_tensor *transformer_dropout(const struct transformer *t, tri_tensor *x) {
    return t->dropout == 0 ? x : tri_dropout(x, t->dropout);
}

tri_tensor *transformer_table(const struct transformer *t, const char *name, int64_t rows) {
    return tri_param(t->graph, name, TRI_SHAPE(rows, t->hidden), (tri_init){TRI_NORMAL, 0, 0.02});
}

tri_tensor *transformer_places(const struct transformer *t, const char *name) {
    tri_tensor *table = transformer_table(t, name, t->positions);
    return t->seq == t->positions ? table : tri_slice(table, 0, 0, t->seq);
}

/* ---- attention ---- */

/* [n, s, hidden] to [n, heads, s, hidden / heads] */
static tri_tensor *apart(const struct transformer *t, tri_tensor *x) {
    tri_shape shape = TRI_SHAPE(tri_dim(x, 0), tri_dim(x, 1), t->heads, t->hidden / t->heads);
    return tri_transpose(tri_reshape(x, shape), TRI_SHAPE(0, 2, 1, 3));
}

/* [s, s]: true where the key is not behind the query. */
static tri_tensor *not_behind(const struct transformer *t) {
    int32_t *at = malloc((size_t)t->seq * sizeof *at);
    for (int32_t i = 0; at && i < t->seq; i++) at[i] = i;
    tri_tensor *query = tri_array(t->graph, TRI_I32, TRI_SHAPE(t->seq, 1), at);
    tri_tensor *key = tri_array(t->graph, TRI_I32, TRI_SHAPE(t->seq), at);
    free(at);
    return tri_greater_equal(query, key);
}

static tri_tensor *forbid(const struct transformer *t, tri_tensor *scores, tri_tensor *allowed) {
    return tri_where(allowed, scores, tri_constant(t->graph, -1e30, TRI_F32));
}

tri_tensor *transformer_attention(const struct transformer *t, tri_tensor *q, tri_tensor *k,
                                  tri_tensor *v, struct attend o) {
    if (!k) {
        tri_tensor *parts[3];
        tri_split(q, 3, 2, parts);
        q = parts[0];
        k = parts[1];
        v = parts[2];
    }
    tri_shape shape = tri_shape_of(q);
    tri_tensor *scores = tri_matmul(apart(t, q), apart(t, k), .trans_b = true);
    scores = tri_scale(scores, 1 / sqrt((double)(t->hidden / t->heads)));
    if (o.mask) scores = forbid(t, scores, o.mask);
    if (o.causal) scores = forbid(t, scores, not_behind(t));
    tri_tensor *share = transformer_dropout(t, tri_softmax(scores, 3));
    tri_tensor *y = tri_matmul(share, apart(t, v));
    return tri_reshape(tri_transpose(y, TRI_SHAPE(0, 2, 1, 3)), shape);
}

/* ---- means over places that count ---- */

struct places places_labelled(tri_tensor *label) {
    tri_graph *g = tri_graph_of(label);
    tri_tensor *counts = tri_not_equal(label, tri_constant(g, -100, TRI_I64));
    struct places p = {.weight = tri_cast(counts, TRI_F32)};
    p.total = tri_maximum(tri_sum(p.weight, TRI_ALL), tri_constant(g, 1, TRI_F32));
    return p;
}

struct places places_weighted(tri_tensor *weight) {
    return (struct places){weight, tri_add_number(tri_sum(weight, TRI_ALL), 1e-5)};
}

static tri_tensor *mean(const struct places *p, tri_tensor *each) {
    return tri_div(tri_sum(tri_mul(each, p->weight), TRI_ALL), p->total);
}

tri_tensor *places_loss(const struct places *p, tri_tensor *logits, tri_tensor *label) {
    return mean(p, tri_cross_entropy(logits, label, .reduction = TRI_NONE, .ignore = true,
                                     .ignore_index = -100));
}

tri_tensor *places_accuracy(const struct places *p, tri_tensor *logits, tri_tensor *label) {
    const tri_attr first = {.name = "k", .i = 1};
    return mean(p, tri_apply(tri_graph_of(logits), "in_top_k", (tri_tensor *[]){logits, label}, 2,
                             &first, 1));
}
