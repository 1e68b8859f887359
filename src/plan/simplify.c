/* SPDX-License-Identifier: Apache-2.0
 * Passes that remove computations: folding of constants, common subexpressions, dead code. All
 * results keep their bits: only rewrites that are exact in floating point are made. */
#include "plan/simplify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/rewrite.h"

/* Sources are found by their names and stay; the names of literals do not matter. */
static bool is_named(const tri_node *n) { return !n->n_in && !node_is_literal(n); }

/* ---- fold ---- */

static bool same_spec(const tri_tensor *a, const tri_tensor *b) {
    return a->spec.type == b->spec.type && base_shape_equal(&a->spec.shape, &b->spec.shape);
}

static bool constant_is(const tri_tensor *t, double value) {
    return node_is(t->node, "constant") && tri_attr_float(t->node, "value") == value;
}

/* Input i, if input k is this number and broadcasting it does not enlarge the result. */
static tri_tensor *neutral(const tri_node *n, int i, int k, double number) {
    return constant_is(n->in[k], number) && same_spec(n->in[i], n->out) ? n->in[i] : NULL;
}

static tri_tensor *times(const tri_node *n) {
    tri_tensor *t = neutral(n, 0, 1, 1);
    return t ? t : neutral(n, 1, 0, 1);
}

static tri_tensor *divided(const tri_node *n) { return neutral(n, 0, 1, 1); }

/* x - 0 is x. For x = -0 this holds neither of x + 0 nor of x - -0. */
static tri_tensor *minus(const tri_node *n) {
    tri_tensor *zero = n->in[1];
    return constant_is(zero, 0) && !signbit(tri_attr_float(zero->node, "value"))
               ? neutral(n, 0, 1, 0)
               : NULL;
}

/* An operator applied twice that is its own inverse. */
static tri_tensor *back(const tri_node *n) {
    const tri_node *there = n->in[0]->node;
    return there->entry == n->entry && same_spec(there->in[0], n->out) ? there->in[0] : NULL;
}

static tri_tensor *as_it_is(const tri_node *n) {
    return same_spec(n->in[0], n->out) ? n->in[0] : NULL;
}

static tri_tensor *reshaped(const tri_node *n) {
    tri_tensor *t = as_it_is(n);
    return t ? t : back(n);
}

/* Casting to a type and back is the identity only if that type holds all values: f32. */
static tri_tensor *converted(const tri_node *n) {
    const tri_node *there = n->in[0]->node;
    tri_tensor *t = as_it_is(n);
    bool wide = there->out->spec.type == TRI_F32 && type_is_float(n->out->spec.type);
    return t || !wide ? t : back(n);
}

static bool in_order(const tri_shape *order, const tri_shape *after) {
    for (int i = 0; i < order->rank; i++)
        if (order->dim[after ? after->dim[i] : i] != i) return false;
    return true;
}

static tri_tensor *transposed(const tri_node *n) {
    tri_shape order = tri_attr_list(n, "order");
    const tri_node *there = n->in[0]->node;
    if (in_order(&order, NULL)) return n->in[0];
    if (there->entry != n->entry) return NULL;
    tri_shape before = tri_attr_list(there, "order");
    return in_order(&before, &order) ? there->in[0] : NULL;
}

static tri_tensor *chosen(const tri_node *n) {
    return n->in[1] == n->in[2] && same_spec(n->in[1], n->out) ? n->in[1] : NULL;
}

static tri_tensor *passed(const tri_node *n) { return n->in[0]; }

static tri_tensor *not_dropped(const tri_node *n) {
    return tri_attr_int(n, "training") ? NULL : n->in[0];
}

/* Operators whose output 0 may equal a tensor bit for bit; the function returns it, or null. */
static const struct {
    const char *op;
    tri_tensor *(*is)(const tri_node *n);
} same[] = {
    {"mul", times},        {"div", divided},     {"sub", minus},         {"neg", back},
    {"reshape", reshaped}, {"expand", as_it_is}, {"slice", as_it_is},    {"pad", as_it_is},
    {"concat", as_it_is},  {"cast", converted},  {"where", chosen},      {"dropout", not_dropped},
    {"transpose", transposed}, {"stop_gradient", passed},
};

/* Operators on f32 numbers that every device rounds correctly, so alike. */
static float add(float a, float b) { return a + b; }
static float sub(float a, float b) { return a - b; }
static float mul(float a, float b) { return a * b; }
static float divide(float a, float b) { return a / b; }
static float negate(float a, float b) { return (void)b, -a; }
static float magnitude(float a, float b) { return (void)b, fabsf(a); }
static float root(float a, float b) { return (void)b, sqrtf(a); }

static const struct {
    const char *op;
    float (*of)(float a, float b);
} numbers[] = {{"add", add},    {"sub", sub},       {"mul", mul},  {"div", divide},
               {"neg", negate}, {"abs", magnitude}, {"sqrt", root}};

static bool number_of(const tri_node *n, float *value) {
    size_t i = 0;
    while (i < COUNT(numbers) && !node_is(n, numbers[i].op)) i++;
    if (i == COUNT(numbers) || n->out->spec.type != TRI_F32) return false;
    float in[2] = {0};
    for (int k = 0; k < n->n_in; k++) {
        if (!node_is(n->in[k]->node, "constant")) return false;
        in[k] = (float)tri_attr_float(n->in[k]->node, "value");
    }
    *value = numbers[i].of(in[0], in[1]);
    return isfinite(*value);
}

static tri_tensor *number(struct rewrite *r, const tri_node *n) {
    float value;
    if (!number_of(n, &value)) return NULL;
    rewrite_enter(r, n, "folded");
    tri_tensor *t = tri_constant(r->g, (double)value, TRI_F32);
    rewrite_leave(r);
    return t;
}

static tri_tensor *identity(const tri_node *n) {
    for (size_t i = 0; i < COUNT(same); i++)
        if (node_is(n, same[i].op)) return same[i].is(n);
    return NULL;
}

/* A result must not be replaced by a source: its value may change before the result is read. */
tri_status simplify_fold(tri_graph *g) {
    struct rewrite r;
    tri_node *n;
    bool *result = calloc((size_t)g->n_tensors + 1, sizeof *result);
    if (!result) return base_no_memory("folding constants");
    graph_mark_results(g, result);
    rewrite_begin(&r, g);
    for (size_t i = 0; (n = rewrite_next(&r, i)); i++) {
        bool wanted = result[n->out->id];
        tri_tensor *t = n->n_in ? identity(n) : NULL;
        if (t && wanted && !t->node->n_in) t = NULL;
        if (!t && n->n_in && !wanted) t = number(&r, n);
        if (t) rewrite_replace(&r, n->out, t);
        if (!t || n->n_out > 1) rewrite_keep(&r, n);
    }
    free(result);
    return rewrite_end(&r);
}

/* ---- cse ---- */

static uint64_t mix(uint64_t h, const void *data, size_t bytes) {
    return base_hash(data, bytes, h);
}

static uint64_t mix_attr(uint64_t h, enum attr_kind kind, const tri_attr *a) {
    switch (kind) {
    case ATTR_FLOAT: return mix(h, &a->f, sizeof a->f);
    case ATTR_TEXT: return mix(h, a->text, strlen(a->text));
    case ATTR_INTS:
    case ATTR_SHAPE: return mix(h, a->list.dim, sizeof *a->list.dim * (size_t)a->list.rank);
    default: return mix(h, &a->i, sizeof a->i);
    }
}

static uint64_t hash_of(const tri_node *n) {
    uint64_t h = base_hash_text(n->entry->op->name);
    for (int k = 0; k < n->n_in; k++) h = mix(h, &n->in[k]->id, sizeof n->in[k]->id);
    for (int i = 0; i < n->entry->n_attrs; i++)
        h = mix_attr(h, n->entry->attr[i].kind, &n->attr[i]);
    return h;
}

static bool equal(const tri_node *a, const tri_node *b) {
    if (a->entry != b->entry || a->n_in != b->n_in) return false;
    for (int k = 0; k < a->n_in; k++)
        if (a->in[k] != b->in[k]) return false;
    for (int i = 0; i < a->entry->n_attrs; i++)
        if (!attr_equal(a->entry->attr[i].kind, &a->attr[i], &b->attr[i])) return false;
    return true;
}

/* The slot of an equal node, or the free slot for n. */
static tri_node **slot_of(tri_node **table, size_t capacity, const tri_node *n) {
    size_t i = (size_t)hash_of(n) & (capacity - 1);
    while (table[i] && !equal(table[i], n)) i = (i + 1) & (capacity - 1);
    return &table[i];
}

/* Random nodes differ: their names key their random numbers. */
static bool may_merge(const tri_node *n) { return !n->entry->op->random && !is_named(n); }

tri_status simplify_cse(tri_graph *g) {
    struct rewrite r;
    tri_node *n;
    size_t capacity = 64;
    while (capacity < 2 * g->n_nodes) capacity *= 2;
    tri_node **table = calloc(capacity, sizeof *table);
    if (!table) return base_no_memory("finding common subexpressions");
    rewrite_begin(&r, g);
    for (size_t i = 0; (n = rewrite_next(&r, i)); i++) {
        tri_node **slot = may_merge(n) ? slot_of(table, capacity, n) : NULL;
        for (int k = 0; slot && *slot && k < n->n_out; k++)
            rewrite_replace(&r, &n->out[k], &(*slot)->out[k]);
        if (!slot || !*slot) rewrite_keep(&r, n);
        if (slot && *slot) (*slot)->backward &= n->backward;
        if (slot && !*slot) *slot = n;
    }
    free(table);
    return rewrite_end(&r);
}

/* ---- dead ---- */

tri_status simplify_dead(tri_graph *g) {
    struct rewrite r;
    tri_node *n;
    bool *live = calloc((size_t)g->n_tensors + 1, sizeof *live);
    if (!live) return base_no_memory("finding unused nodes");
    graph_mark_results(g, live);
    for (size_t i = g->n_nodes; i-- > 0;)
        if (node_any(g->node[i], live))
            for (int k = 0; k < g->node[i]->n_in; k++) live[g->node[i]->in[k]->id] = true;
    rewrite_begin(&r, g);
    for (size_t i = 0; (n = rewrite_next(&r, i)); i++)
        if (is_named(n) || node_any(n, live)) rewrite_keep(&r, n);
    free(live);
    return rewrite_end(&r);
}
