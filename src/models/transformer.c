/* SPDX-License-Identifier: Apache-2.0
 * Shared by transformers: their arguments, and means over places that count. */
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

tri_tensor *places_accuracy(const struct places *p, tri_tensor *logits, tri_tensor *label,
                            int64_t k) {
    const tri_attr first = {.name = "k", .i = k};
    return mean(p, tri_apply(tri_graph_of(logits), "in_top_k", (tri_tensor *[]){logits, label}, 2,
                             &first, 1));
}
