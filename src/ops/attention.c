/* SPDX-License-Identifier: Apache-2.0
 * attention: y = dropout(softmax(scale q k' + mask)) v for every head of every sample, and lse, the
 * logarithm of the softmax's divisor.
 *
 * Shapes: q [b, h, s, d], k [b, h, t, d], v [b, h, t, e], y [b, h, s, e]; or with the heads in the
 * last dimension, q [b, s, h d] and so on, and the attribute head = d; or q, k and v packed into
 * one input [b, s, 3 h d]. lse is always [b, h, s].
 *
 * mask: floating-point, added to the scores; or bool, true where a query may attend. It broadcasts
 * to [b, h, s, t]. causal: query i attends to keys 0 to i. A query that attends to no key gives 0,
 * and its lse is -infinity. dropout is applied to the result of the softmax, as by tri_dropout.
 */
#include "ops/attention.h"

#include <math.h> /* sqrt */

/* ---- geometry ---- */

static bool packed(const tri_node *n, int first) { return n->n_in - first <= 2; }

static struct attention_view view(int tensor, int64_t offset, int64_t heads, int64_t rows,
                                  int64_t row, int64_t width, bool apart) {
    if (apart) return (struct attention_view){tensor, offset, heads * rows * width, rows * width,
                                              width};
    return (struct attention_view){tensor, offset, rows * row, width, row};
}

/* Three inputs, with the heads in dimension 1 or within the last dimension. */
static void views(const tri_node *n, int f, struct attention *a) {
    const tri_shape *q = in_shape(n, f), *k = in_shape(n, f + 1), *v = in_shape(n, f + 2);
    bool apart = q->rank == 4;
    int rows = q->rank - 2;
    a->size = apart ? q->dim[3] : tri_attr_int(n, "head");
    a->heads = apart ? q->dim[1] : q->dim[2] / a->size;
    a->value_size = apart ? v->dim[3] : v->dim[2] / a->heads;
    a->queries = q->dim[rows];
    a->keys = k->dim[rows];
    int64_t row = a->heads * a->size, value_row = a->heads * a->value_size;
    a->q = view(f, 0, a->heads, a->queries, row, a->size, apart);
    a->k = view(f + 1, 0, a->heads, a->keys, row, a->size, apart);
    a->v = view(f + 2, 0, a->heads, a->keys, value_row, a->value_size, apart);
    a->y = view(0, 0, a->heads, a->queries, value_row, a->value_size, apart);
}

/* One input [b, s, 3 h d]. */
static void packed_views(const tri_node *n, int f, struct attention *a) {
    const tri_shape *x = in_shape(n, f);
    int64_t row = x->dim[2], width = row / 3;
    a->size = a->value_size = tri_attr_int(n, "head");
    a->heads = width / a->size;
    a->queries = a->keys = x->dim[1];
    a->q = view(f, 0, a->heads, a->queries, row, a->size, false);
    a->k = view(f, width, a->heads, a->queries, row, a->size, false);
    a->v = view(f, 2 * width, a->heads, a->queries, row, a->size, false);
    a->y = view(0, 0, a->heads, a->queries, width, a->size, false);
}

static void mask_strides(const tri_node *n, struct attention *a) {
    const tri_shape *m = in_shape(n, a->mask);
    int64_t stride = 1;
    for (int i = 1; i <= m->rank; i++) {
        int64_t length = m->dim[m->rank - i];
        a->mask_stride[4 - i] = length == 1 ? 0 : stride;
        stride *= length;
    }
}

void attention_of(const tri_node *n, struct attention *a) {
    int f = node_is(n, "attention") ? 0 : ATTENTION_BEFORE;
    bool one = packed(n, f);
    *a = (struct attention){.batch = in_shape(n, f)->dim[0], .first = f, .mask = -1,
                            .causal = tri_attr_int(n, "causal"),
                            .scale = tri_attr_float(n, "scale"),
                            .key = node_key(n)};
    (one ? packed_views : views)(n, f, a);
    int64_t samples = tri_attr_int(n, "samples_all"), heads = tri_attr_int(n, "heads_all");
    a->sample_first = tri_attr_int(n, "sample_first");
    a->samples_all = samples ? samples : a->batch;
    a->head_first = tri_attr_int(n, "head_first");
    a->heads_all = heads ? heads : a->heads;
    if (tri_attr_int(n, "training")) a->dropout = tri_attr_float(n, "dropout");
    if (n->n_in - f != (one ? 2 : 4)) return;
    a->mask = n->n_in - 1;
    mask_strides(n, a);
}

/* ---- inference ---- */

static bool check_packed(const tri_node *n, int f) {
    const tri_shape *x = in_shape(n, f);
    int64_t head = tri_attr_int(n, "head");
    if (x->rank != 3)
        return tri_op_error(n, "q, k and v in one must be [batch, rows, 3 x heads x size]");
    return (head >= 1 && x->dim[2] % (3 * head) == 0) ||
           tri_op_error(n, "the last dimension, %lld, is not 3 x heads x %lld, the size of a head",
                        (long long)x->dim[2], (long long)head);
}

static bool check_sizes(const tri_node *n, int f) {
    const tri_shape *q = in_shape(n, f), *k = in_shape(n, f + 1), *v = in_shape(n, f + 2);
    int64_t head = q->rank == 4 ? q->dim[3] : tri_attr_int(n, "head");
    int rows = q->rank - 2, last = q->rank - 1;
    if (head < 1 || q->dim[last] % head)
        return tri_op_error(n, "the last dimension of q, %lld, is not heads x %lld, the size of a "
                               "head", (long long)q->dim[last], (long long)head);
    if (q->dim[last] != k->dim[last])
        return tri_op_error(n, "the last dimensions of q and k must be equal");
    if (k->dim[rows] != v->dim[rows])
        return tri_op_error(n, "k and v must have as many rows");
    for (int i = 0; i < rows; i++)
        if (q->dim[i] != k->dim[i] || q->dim[i] != v->dim[i])
            return tri_op_error(n, "q, k and v must have the same batch%s",
                                q->rank == 4 ? " and heads" : "");
    return v->dim[last] % (q->dim[last] / head) == 0 ||
           tri_op_error(n, "the last dimension of v, %lld, cannot be divided by %lld heads",
                        (long long)v->dim[last], (long long)(q->dim[last] / head));
}

static bool check_mask(const tri_node *n) {
    struct attention a;
    attention_of(n, &a);
    if (a.mask < 0) return true;
    tri_type type = in_spec(n, a.mask)->type;
    tri_shape full = TRI_SHAPE(a.batch, a.heads, a.queries, a.keys), joined;
    if (type != TRI_BOOL && !type_is_float(type))
        return tri_op_error(n, "the mask must be bool (true: attend), or floating-point (added)");
    return (in_shape(n, a.mask)->rank <= 4 &&
            op_broadcast_shape(in_shape(n, a.mask), &full, &joined) &&
            base_shape_equal(&joined, &full)) ||
           tri_op_error(n, "the mask does not broadcast to [%lld, %lld, %lld, %lld], batch, heads, "
                           "queries and keys", (long long)a.batch, (long long)a.heads,
                        (long long)a.queries, (long long)a.keys);
}

static bool check_part(const tri_node *n) {
    struct attention a;
    attention_of(n, &a);
    return (a.sample_first >= 0 && a.sample_first + a.batch <= a.samples_all &&
            a.head_first >= 0 && a.head_first + a.heads <= a.heads_all) ||
           tri_op_error(n, "its samples and heads from sample_first and head_first on are not "
                           "among samples_all and heads_all");
}

/* Checks q, k, v and mask, which are the inputs from f on. */
static bool attention_check(const tri_node *n, int f) {
    double p = tri_attr_float(n, "dropout");
    if (!(p >= 0 && p < 1))
        return tri_op_error(n, "dropout is %g; it must be at least 0 and below 1", p);
    for (int i = f; i < n->n_in && i < f + (packed(n, f) ? 1 : 3); i++) {
        int rank = in_shape(n, i)->rank;
        if (!op_need_float(n, i) || !op_need_type(n, i, in_spec(n, f)->type)) return false;
        if (rank != in_shape(n, f)->rank || rank < 3 || rank > 4)
            return tri_op_error(n, "q, k and v must all be [batch, heads, rows, size], or all "
                                   "[batch, rows, heads x size]");
    }
    return (packed(n, f) ? check_packed : check_sizes)(n, f) && check_mask(n) && check_part(n);
}

static tri_spec attention_y(const struct attention *a, const tri_node *n) {
    const tri_spec *q = in_spec(n, a->first);
    tri_shape s = TRI_SHAPE(a->batch, a->queries, a->heads * a->value_size);
    if (q->shape.rank == 4) s = TRI_SHAPE(a->batch, a->heads, a->queries, a->value_size);
    return (tri_spec){q->type, s};
}

static tri_spec attention_lse(const struct attention *a) {
    return (tri_spec){TRI_F32, TRI_SHAPE(a->batch, a->heads, a->queries)};
}

static int infer(const tri_node *n, tri_spec *out) {
    struct attention a;
    if (!attention_check(n, 0)) return 0;
    attention_of(n, &a);
    out[0] = attention_y(&a, n);
    out[1] = attention_lse(&a);
    return 2;
}

bool attention_check_dx(const tri_node *n) {
    struct attention a;
    if (!attention_check(n, ATTENTION_BEFORE)) return false;
    attention_of(n, &a);
    tri_spec want[ATTENTION_BEFORE] = {attention_y(&a, n), attention_y(&a, n), attention_lse(&a)};
    for (int i = 0; i < ATTENTION_BEFORE; i++) {
        char spec[SPEC_TEXT];
        if (in_spec(n, i)->type != want[i].type ||
            !base_shape_equal(in_shape(n, i), &want[i].shape))
            return tri_op_error(n, "input %d must be %s", i, base_spec_text(&want[i], spec));
    }
    return true;
}

/* ---- the row ---- */

/* Applies a gradient operator to its inputs, with the forward node's attributes and name. */
static tri_tensor *derivative(const char *op, const tri_node *n, tri_tensor *dy) {
    tri_tensor *in[ATTENTION_BEFORE + 4] = {dy, &n->out[0], &n->out[1]};
    tri_attr attr[MAX_ATTRS];
    int n_attrs = n->entry->n_attrs;
    memcpy(in + ATTENTION_BEFORE, n->in, sizeof *in * (size_t)n->n_in);
    memcpy(attr, n->attr, sizeof *attr * (size_t)n_attrs);
    attr[n_attrs - 1] = (tri_attr)AT("key", node_key(n)); /* the last in ATTENTION_ROW */
    return graph_apply(n->graph, op, ATTENTION_BEFORE + n->n_in, in, n_attrs, attr);
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    if (dy[1]) {
        tri_op_error(n, "nothing can be differentiated through its logsumexp (output 1)");
        return;
    }
    struct attention a;
    attention_of(n, &a);
    tri_node *d = derivative("attention_dx", n, dy[0])->node;
    for (int i = 0; i < d->n_out; i++) dx[i] = &d->out[i];
    if (a.mask < 0 || !type_is_float(in_spec(n, a.mask)->type)) return;
    dx[a.mask] = op_sum_to(derivative("attention_dmask", n, dy[0]), n->in[a.mask]);
}

void attention_letters(const tri_node *n, struct attention_letters *l) {
    struct attention a;
    attention_of(n, &a);
    bool one = packed(n, a.first), apart = in_shape(n, a.first)->rank == 4;
    snprintf(l->q, sizeof l->q, "%s", one ? "bS(XhD)" : apart ? "bhSD" : "bS(hD)");
    snprintf(l->k, sizeof l->k, "%s", apart ? "bhTD" : "bT(hD)");
    snprintf(l->v, sizeof l->v, "%s", apart ? "bhTE" : "bT(hE)");
    snprintf(l->y, sizeof l->y, "%s", one ? "bS(hD)" : apart ? "bhSE" : "bS(hE)");
    l->mask[0] = 0;
    if (a.mask >= 0) {
        int rank = in_shape(n, a.mask)->rank;
        for (int i = 0; i < rank; i++)
            l->mask[i] = in_shape(n, a.mask)->dim[i] == 1 ? '1' : "bhST"[4 - rank + i];
        l->mask[rank] = 0;
    }
    size_t bytes = sizeof l->inputs;
    int at = a.first ? snprintf(l->inputs, bytes, "%s,%s,bhS,", l->y, l->y) : 0;
    at += snprintf(l->inputs + at, bytes - (size_t)at, "%s", l->q);
    if (!one) at += snprintf(l->inputs + at, bytes - (size_t)at, ",%s,%s", l->k, l->v);
    if (a.mask >= 0) snprintf(l->inputs + at, bytes - (size_t)at, ",%s", l->mask);
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    struct attention_letters l;
    attention_letters(n, &l);
    snprintf(text, bytes, "%s->%s,bhS", l.inputs, l.y);
}

double attention_flops(const tri_node *n, double products, double value_products) {
    struct attention a;
    attention_of(n, &a);
    double s = (double)a.queries, t = (double)a.keys, pairs = s * t;
    if (a.causal) pairs = s <= t ? s * (s + 1) / 2 : t * (t + 1) / 2 + (s - t) * t;
    return 2 * (double)(a.batch * a.heads) * pairs *
           (products * (double)a.size + value_products * (double)a.value_size);
}

static double flops(const tri_node *n) { return attention_flops(n, 1, 1); }

const tri_op op_attention = {
    .name = "attention",
    .inputs = 1,
    .inputs_max = 4,
    .infer = infer,
    .gradient = gradient,
    ATTENTION_ROW,
    .examples = EXAMPLES(
        "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,3] {scale=0.5}",
        "f32[2,3,4], f32[2,3,4], f32[2,3,6] {head=2, scale=0.7, causal=1}",
        "f32[2,4,12] {head=2, scale=0.7}", "f32[2,5,6], bool[2,1,1,5] {head=1, scale=1, causal=1}",
        "f32[1,2,3,4], f32[1,2,5,4], f32[1,2,5,4], f32[5] {scale=0.5}",
        "f32[2,2,4,2], f32[2,2,3,2], f32[2,2,3,2], f32[2,1,4,1] {scale=0.7, causal=1}",
        "f32[2,2,3,2], f32[2,2,3,2], f32[2,2,3,2], bool[3,3] {scale=1}",
        "f32[2,2,3,2], f32[2,2,4,2], f32[2,2,4,2], f32[2,1,4] {scale=0.7, dropout=0.4}",
        "f32[2,4,12] {head=2, scale=0.7, dropout=0.3, causal=1}",
        "f32[2,3,6] {head=2, scale=0.7, dropout=0.3, training=0}",
        "f32[1,1,70,20], f32[1,1,37,20], f32[1,1,37,9], f32[70,37]@-4:4 {scale=2, causal=1}",
        "f32[1,19,66]@-2:2, bool[1,1,19,19] {head=11, scale=1.5, dropout=0.1}",
        "bf16[2,5,12], bf16[2,1,5,5] {head=2, scale=0.7}",
        "bf16[1,2,4,3], bf16[1,2,6,3], bf16[1,2,6,5], bool[2,4,6] {scale=0.6, dropout=0.2}"),
};

/* ---- the builder ---- */

/* The size of a head, or 0 if the last dimension of q is that size. */
static int64_t head_size(tri_tensor *q, bool packed, int64_t heads) {
    tri_graph *g = tri_graph_of(q);
    int64_t in_row = (packed ? 3 : 1) * (heads ? heads : 1);
    if (!g || g->status || tri_ndim(q) < 3) return 0;
    if (heads < 0 || (tri_ndim(q) > 3 ? heads && heads != tri_dim(q, 1)
                                      : tri_dim(q, -1) % in_row != 0))
        graph_mistake(g, "tri_attention: %lld heads do not fit %s, whose %s dimension is %lld",
                      (long long)heads, tri_name_of(q), tri_ndim(q) > 3 ? "second" : "last",
                      (long long)tri_dim(q, tri_ndim(q) > 3 ? 1 : -1));
    return g->status || tri_ndim(q) > 3 ? 0 : tri_dim(q, -1) / in_row;
}

tri_tensor *tri_attention_(tri_tensor *q, tri_tensor *k, tri_tensor *v, tri_attention_options o) {
    bool one = !k && !v;
    tri_tensor *in[4] = {q, k, v, o.mask};
    int n = one ? 1 : 3;
    int64_t head = head_size(q, one, o.heads);
    int64_t size = head ? head : tri_ndim(q) ? tri_dim(q, -1) : 1;
    double scale = o.scale != 0 ? o.scale : 1 / sqrt(size > 0 ? (double)size : 1);
    if (one) in[1] = o.mask;
    if (o.mask) n++;
    return graph_apply(tri_graph_of(q), "attention", n, in, 4,
                       (const tri_attr[]){AI("head", head), AF("scale", scale),
                                          AI("causal", o.causal), AF("dropout", o.dropout)});
}
