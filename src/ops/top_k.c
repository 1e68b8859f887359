/* SPDX-License-Identifier: Apache-2.0
 * top_k: the k largest elements along the last axis and their indices (i64), in descending order.
 * Equal elements keep their order. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    const tri_shape *x = in_shape(n, 0);
    int64_t k = tri_attr_int(n, "k");
    if (!op_need_number(n, 0)) return 0;
    if (x->rank < 1) return tri_op_error(n, "input 0 needs at least 1 dimension");
    if (k < 1 || k > x->dim[x->rank - 1])
        return tri_op_error(n, "k is %lld; it must be 1 to %lld, the last dimension", (long long)k,
                            (long long)x->dim[x->rank - 1]);
    out[0] = *in_spec(n, 0);
    out[0].shape.dim[x->rank - 1] = k;
    out[1] = (tri_spec){TRI_I64, out[0].shape};
    return 2;
}

/* With p [..., k, n], the indices one-hot: dx[..., n] = sum over k of dv[..., k] * p. */
static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *x = n->in[0], *dv = dy[0];
    if (!dv) return;
    int last = x->spec.shape.rank - 1;
    tri_tensor *places = tri_one_hot(&n->out[1], x->spec.shape.dim[last]);
    places = tri_cast(places, x->spec.type);
    tri_tensor *rows = APPLY("spread", INPUTS(dv, places), AL("axes", TRI_SHAPE(last + 1)));
    dx[0] = tri_sum_(tri_mul(rows, places), TRI_SHAPE(last), (tri_reduce_options){0});
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    op_letter_factors(n, 1u << (in_shape(n, 0)->rank - 1), text, bytes);
}

const tri_op op_top_k = {
    .name = "top_k",
    .inputs = 1,
    .attributes = "k:int",
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .precision = TRI_PRECISION_ANY,
    .examples = EXAMPLES("f32[2,5]@-9:9 {k=2}", "f32[2,3,4]@-9:9 {k=4}", "f32[7]@-9:9 {k=1}",
                         "f32[1] {k=1}", "i32[3,9]@-2:3 {k=5}", "bf16[2,9] {k=3}"),
};

void tri_top_k(tri_tensor *x, int64_t k, tri_tensor **values, tri_tensor **indices) {
    tri_tensor *y = APPLY("top_k", INPUTS(x), AI("k", k));
    bool both = y && y->node->n_out == 2; /* otherwise the graph has failed */
    if (values) *values = y;
    if (indices) *indices = both ? &y->node->out[1] : y;
}
