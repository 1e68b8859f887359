/* SPDX-License-Identifier: Apache-2.0
 * matmul: a [..., m, k] times b [..., k, n]; leading dimensions broadcast. With trans_a, a is
 * [..., k, m]; with trans_b, b is [..., n, k]. */
#include "ops/op.h"

struct sizes {
    int64_t m, k, kb, n;
};

static struct sizes sizes(const tri_node *n) {
    const tri_shape *a = in_shape(n, 0), *b = in_shape(n, 1);
    int ta = tri_attr_int(n, "trans_a") != 0, tb = tri_attr_int(n, "trans_b") != 0;
    return (struct sizes){.m = a->dim[a->rank - 2 + ta], .k = a->dim[a->rank - 1 - ta],
                          .kb = b->dim[b->rank - 2 + tb], .n = b->dim[b->rank - 1 - tb]};
}

static int infer(const tri_node *n, tri_spec *out) {
    const tri_shape *a = in_shape(n, 0), *b = in_shape(n, 1);
    if (!op_need_float(n, 0) || !op_need_type(n, 1, in_spec(n, 0)->type)) return 0;
    if (a->rank < 2 || b->rank < 2)
        return tri_op_error(n, "both inputs need at least 2 dimensions; tri_reshape a vector");
    struct sizes s = sizes(n);
    if (s.k != s.kb)
        return tri_op_error(
            n, "the inner dimensions are %lld and %lld; they must be equal%s", (long long)s.k,
            (long long)s.kb,
            a->dim[a->rank - 1] == b->dim[b->rank - 1] ? " (.trans_b = true?)" : "");
    tri_shape la = *a, lb = *b, lead;
    la.rank -= 2;
    lb.rank -= 2;
    if (!op_broadcast_shape(&la, &lb, &lead))
        return tri_op_error(n, "the leading dimensions do not fit: they must be equal or 1");
    lead.dim[lead.rank++] = s.m;
    lead.dim[lead.rank++] = s.n;
    out[0] = (tri_spec){in_spec(n, 0)->type, lead};
    return 1;
}

static tri_tensor *mm(tri_tensor *a, tri_tensor *b, bool ta, bool tb) {
    return tri_matmul_(a, b, (tri_matmul_options){.trans_a = ta, .trans_b = tb});
}

/* Whether flattening a [..., m, k] to [... m, k] keeps each sample's rows contiguous. That holds if
 * dimension 0 is the batch, as far as the shapes show. */
static bool samples_lead(const tri_node *n) {
    const tri_shape *a = in_shape(n, 0);
    int64_t batch = n->graph->batch;
    bool elsewhere = false;
    for (int i = 1; i < a->rank - 1; i++) elsewhere |= a->dim[i] == batch;
    return a->dim[0] == batch || (a->dim[0] % batch == 0 && !elsewhere);
}

/* [..., r, c] reshaped to [... r, c] */
static tri_tensor *rows(tri_tensor *x) {
    const tri_shape *s = &x->spec.shape;
    return tri_reshape(x, TRI_SHAPE(-1, s->dim[s->rank - 1]));
}

/* One weight for all rows of [..., m, k], as in dense layers. Its gradient is then one product over
 * all rows instead of a product per matrix and a sum. */
static bool one_weight(const tri_node *n) {
    const tri_shape *a = in_shape(n, 0), *b = in_shape(n, 1);
    return a->rank > 2 && b->rank == 2 && !tri_attr_int(n, "trans_a") && samples_lead(n);
}

/* For y = A B, where A is a or its transpose: dA = dy B', dB = A' dy; transposed if a or b was. */
static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *a = n->in[0], *b = n->in[1], *d = dy[0];
    bool ta = tri_attr_int(n, "trans_a"), tb = tri_attr_int(n, "trans_b");
    dx[0] = op_sum_to(ta ? mm(b, d, tb, true) : mm(d, b, false, !tb), a);
    if (one_weight(n)) {
        a = rows(a);
        d = rows(d);
    }
    dx[1] = op_sum_to(tb ? mm(d, a, true, ta) : mm(a, d, !ta, false), b);
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    bool ta = tri_attr_int(n, "trans_a"), tb = tri_attr_int(n, "trans_b");
    snprintf(text, bytes, "...%s,...%s->...mn", ta ? "km" : "mk", tb ? "nk" : "kn");
}

static double flops(const tri_node *n) {
    return 2.0 * (double)tri_shape_count(out_shape(n, 0)) * (double)sizes(n).k;
}

const tri_op op_matmul = {
    .name = "matmul",
    .inputs = 2,
    .attributes = "trans_a:int=0 trans_b:int=0",
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .names = "...:batch,heads m:rows k:in n:out",
    .linear = TRI_LINEAR_EACH,
    .flops = flops,
    .precision = TRI_PRECISION_LOW,
    .examples = EXAMPLES("f32[3,4], f32[4,5]", "f32[3,4], f32[5,4] {trans_b=1}",
                         "f32[4,3], f32[4,5] {trans_a=1}",
                         "f32[4,3], f32[5,4] {trans_a=1, trans_b=1}",
                         "f32[2,3,4], f32[2,4,5]", "f32[2,1,3,4], f32[3,4,2]",
                         "f32[2,3,4], f32[5,4] {trans_b=1}", "f32[1,1], f32[1,1]"),
};

tri_tensor *tri_matmul_(tri_tensor *a, tri_tensor *b, tri_matmul_options o) {
    return APPLY("matmul", INPUTS(a, b), AI("trans_a", o.trans_a), AI("trans_b", o.trans_b));
}
