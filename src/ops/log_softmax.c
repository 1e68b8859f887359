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
    SOFTMAX_ROW,
    .gradient = gradient,
    .split_form = split_form,
};

tri_tensor *tri_log_softmax(tri_tensor *x, int axis) {
    return APPLY("log_softmax", INPUTS(x), AI("axis", axis));
}
