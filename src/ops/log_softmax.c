/* SPDX-License-Identifier: Apache-2.0
 * log_softmax: x - log(sum(exp(x))) along one axis, without overflow. */
#include "ops/softmax.h"

/* dx = dy - exp(y) sum(dy) */
static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *y = &n->out[0];
    tri_shape axes = op_reduce_axes(y, TRI_SHAPE(tri_attr_int(n, "axis")));
    tri_tensor *sum = tri_sum_(dy[0], axes, (tri_reduce_options){.keep = true});
    dx[0] = tri_sub(dy[0], tri_mul(tri_exp(y), sum));
}

static bool split_form(const tri_node *n, tri_tensor **out) {
    tri_tensor *z, *exps, *sum = softmax_sums(n, &z, &exps);
    out[0] = tri_cast(tri_sub(z, tri_log(sum)), in_spec(n, 0)->type);
    return true;
}

const tri_op op_log_softmax = {
    .name = "log_softmax",
    .inputs = 1,
    .attributes = "axis:int",
    .infer = softmax_infer,
    .gradient = gradient,
    .factor_fn = softmax_factors,
    .split_form = split_form,
    .flops = softmax_flops,
    .precision = TRI_PRECISION_WIDE,
    .examples = EXAMPLES("f32[3,5]@-3:3 {axis=1}", "f32[2,4,3]@-3:3 {axis=1}",
                         "f32[2,3,4]@-3:3 {axis=-3}", "f32[7] {axis=0}", "f32[2,1] {axis=1}",
                         "f32[2,37]@-90:90 {axis=1}", "bf16[2,5] {axis=1}"),
};

tri_tensor *tri_log_softmax(tri_tensor *x, int axis) {
    return APPLY("log_softmax", INPUTS(x), AI("axis", axis));
}
