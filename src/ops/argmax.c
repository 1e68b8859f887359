/* SPDX-License-Identifier: Apache-2.0
 * argmax: the index, i64, of the maximum along an axis, the first of equals. Removes the axis. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    int axis;
    if (!op_need_number(n, 0) || !op_axis(n, "axis", 0, &axis)) return 0;
    out[0] = (tri_spec){TRI_I64, op_reduced_shape(in_shape(n, 0), 1u << axis, false)};
    return 1;
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    char from[TRI_MAX_RANK + 1], to[TRI_MAX_RANK + 1];
    int axis, rank = in_shape(n, 0)->rank;
    CHECK(op_axis(n, "axis", 0, &axis));
    op_letters(from, rank, 1u << axis);
    op_reduced_letters(to, rank, 1u << axis, false);
    snprintf(text, bytes, "%s->%s", from, to);
}

static bool split_form(const tri_node *n, tri_tensor **out) {
    int axis;
    CHECK(op_axis(n, "axis", 0, &axis));
    tri_tensor *x = n->in[0], *max = tri_max_(x, TRI_SHAPE(axis), (tri_reduce_options){0});
    out[0] = tri_neg(APPLY("first_equal", INPUTS(x, max), AI("axis", axis)));
    return true;
}

const tri_op op_argmax = {
    .name = "argmax",
    .inputs = 1,
    .attributes = "axis:int",
    .infer = infer,
    .gradient = tri_grad_none,
    .factor_fn = factors,
    .split_form = split_form,
    .precision = TRI_PRECISION_ANY,
    .examples = EXAMPLES("f32[2,5] {axis=1}", "f32[2,3,4] {axis=-2}", "f32[7] {axis=0}",
                         "f32[3,1] {axis=1}", "i64[4,9]@-2:3 {axis=1}", "bf16[2,9] {axis=1}"),
};

tri_tensor *tri_argmax(tri_tensor *x, int axis) {
    return APPLY("argmax", INPUTS(x), AI("axis", axis));
}
