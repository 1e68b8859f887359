/* SPDX-License-Identifier: Apache-2.0
 * mean: the sum over the axes divided by the number of elements. When the batch is divided into
 * lanes, the divisor is stored in the attribute `count`, so that each lane computes its part of the
 * mean of the whole batch. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    const tri_spec *x = in_spec(n, 0);
    if (!op_need_float(n, 0) || !op_need_axes(n, x->shape.rank)) return 0;
    out[0].type = x->type;
    out[0].shape = op_reduced_shape(&x->shape, op_axes_mask(n, x->shape.rank),
                                    tri_attr_int(n, "keep"));
    return 1;
}

static int64_t count(const tri_node *n) {
    int64_t frozen = tri_attr_int(n, "count");
    return frozen ? frozen
                  : tri_shape_count(in_shape(n, 0)) / tri_shape_count(out_shape(n, 0));
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    dx[0] = APPLY("spread", INPUTS(dy[0], n->in[0]), AL("axes", tri_attr_list(n, "axes")),
                  AI("count", graph_per_lane(n->graph) ? 0 : count(n)));
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    op_reduction_factors(n, 0, text, bytes);
}

const tri_op op_mean = {
    .name = "mean",
    .inputs = 1,
    .attributes = "axes:ints= keep:int=0 count:int=0",
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .linear = TRI_LINEAR_JOINTLY,
    .count = count,
    .precision = TRI_PRECISION_WIDE,
    .examples = EXAMPLES("f32[2,3,4] {axes=[1]}", "f32[2,3,4] {axes=[0,2], keep=1}", "f32[5]",
                         "f32[6] {count=12}"),
};

tri_tensor *tri_mean_(tri_tensor *x, tri_shape axes, tri_reduce_options o) {
    if (o.per_lane) return op_reduce_per_lane(x, axes, o.keep, "mean");
    return APPLY("mean", INPUTS(x), AL("axes", op_reduce_axes(x, axes)), AI("keep", o.keep));
}
