/* SPDX-License-Identifier: Apache-2.0
 * max: the maximum over `axes` (empty: all); keep=1 keeps them with length 1. Equal maxima share
 * the gradient. */
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
    tri_tensor *x = n->in[0];
    tri_attr axes = AL("axes", tri_attr_list(n, "axes")), lane = AI("per_lane", node_per_lane(n));
    tri_tensor *largest = APPLY("spread", INPUTS(n->out, x), axes, lane);
    tri_tensor *mask = tri_cast(tri_equal(x, largest), x->spec.type);
    tri_tensor *ties = APPLY("sum", INPUTS(mask), axes, AI("keep", tri_attr_int(n, "keep")),
                             lane);
    tri_tensor *share = APPLY("spread", INPUTS(tri_div(dy[0], ties), x), axes, lane);
    dx[0] = tri_mul(share, mask);
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    op_reduction_factors(n, 0, text, bytes);
}

const tri_op op_max = {
    .name = "max",
    .inputs = 1,
    .attributes = "axes:ints= keep:int=0 per_lane:int=0",
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .partial = TRI_PARTIAL_MAX,
    .precision = TRI_PRECISION_ANY,
    .examples = EXAMPLES("f32[2,3,4]@-9:9 {axes=[1]}", "f32[2,3,4]@-9:9 {axes=[0,2], keep=1}",
                         "f32[5]@-9:9", "f32[]", "f32[3,1] {axes=[1]}",
                         "i32[2,9]@-2:3 {axes=[1]}", "bf16[2,3] {axes=[0]}"),
};

tri_tensor *tri_max_(tri_tensor *x, tri_shape axes, tri_reduce_options o) {
    if (o.per_lane) return op_reduce_per_lane(x, axes, o.keep, "max");
    return APPLY("max", INPUTS(x), AL("axes", op_reduce_axes(x, axes)), AI("keep", o.keep));
}
