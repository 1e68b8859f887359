/* SPDX-License-Identifier: Apache-2.0
 * sum: the sum over `axes` (empty: all); keep=1 keeps them with length 1. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    const tri_spec *x = in_spec(n, 0);
    if (!op_need_number(n, 0) || !op_need_axes(n, x->shape.rank)) return 0;
    out[0].type = x->type;
    out[0].shape = op_reduced_shape(&x->shape, op_axes_mask(n, x->shape.rank),
                                    tri_attr_int(n, "keep"));
    return op_lane_shape(n, &x->shape, &out[0].shape);
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    dx[0] = APPLY("spread", INPUTS(dy[0], n->in[0]), AL("axes", tri_attr_list(n, "axes")),
                  AI("per_lane", node_per_lane(n)));
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    op_reduction_factors(n, 0, text, bytes);
}

const tri_op op_sum = {
    .name = "sum",
    .inputs = 1,
    .attributes = "axes:ints= keep:int=0 per_lane:int=0",
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .linear = TRI_LINEAR_JOINTLY,
    .precision = TRI_PRECISION_WIDE,
    .examples = EXAMPLES("f32[2,3,4] {axes=[1]}", "f32[2,3,4] {axes=[0,2], keep=1}", "f32[5]",
                         "f32[] ", "i32[2,3]@-9:9 {axes=[0]}",
                         "f32[4,3] {axes=[0], keep=1, per_lane=1}"),
};

tri_tensor *tri_sum_(tri_tensor *x, tri_shape axes, tri_reduce_options o) {
    if (o.per_lane) return op_reduce_per_lane(x, axes, o.keep, "sum");
    return APPLY("sum", INPUTS(x), AL("axes", op_reduce_axes(x, axes)), AI("keep", o.keep));
}
