/* SPDX-License-Identifier: Apache-2.0
 * softmax: exp(x) / sum(exp(x)) along one axis, without overflow. */
#include "ops/softmax.h"

int softmax_infer(const tri_node *n, tri_spec *out) {
    int axis;
    return op_axis(n, "axis", 0, &axis) ? op_float_like_input(n, out) : 0;
}

void softmax_factors(const tri_node *n, char *text, size_t bytes) {
    char x[TRI_MAX_RANK + 1];
    int axis;
    if (!op_axis(n, "axis", 0, &axis)) return;
    op_letters(x, in_shape(n, 0)->rank, 1u << axis);
    snprintf(text, bytes, "%s->%s", x, x);
}

tri_tensor *softmax_sums(const tri_node *n, tri_tensor **z, tri_tensor **exps) {
    tri_tensor *x = tri_cast(n->in[0], TRI_F32);
    tri_shape axes = op_reduce_axes(x, TRI_SHAPE(tri_attr_int(n, "axis")));
    tri_reduce_options keep = {.keep = true};
    *z = tri_sub(x, tri_max_(x, axes, keep));
    *exps = tri_exp(*z);
    return tri_sum_(*exps, axes, keep);
}

static bool split_form(const tri_node *n, tri_tensor **out) {
    tri_tensor *z, *exps, *sum = softmax_sums(n, &z, &exps);
    out[0] = tri_cast(tri_div(exps, sum), in_spec(n, 0)->type);
    return true;
}

double softmax_flops(const tri_node *n) {
    return 8.0 * (double)tri_shape_count(in_shape(n, 0));
}

/* dx = y (dy - sum(dy y)) */
static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *y = &n->out[0], *p = tri_mul(dy[0], y);
    tri_shape axes = op_reduce_axes(y, TRI_SHAPE(tri_attr_int(n, "axis")));
    tri_tensor *sum = tri_sum_(p, axes, (tri_reduce_options){.keep = true});
    dx[0] = tri_sub(p, tri_mul(y, sum));
}

const tri_op op_softmax = {
    .name = "softmax",
    SOFTMAX_ROW,
    .gradient = gradient,
    .split_form = split_form,
};

tri_tensor *tri_softmax(tri_tensor *x, int axis) {
    return APPLY("softmax", INPUTS(x), AI("axis", axis));
}
