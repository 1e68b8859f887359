/* SPDX-License-Identifier: Apache-2.0
 * concat: joins tensors along an axis; their other dimensions must be equal. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    int axis;
    if (!op_axis(n, "axis", 0, &axis)) return 0;
    out[0] = *in_spec(n, 0);
    for (int i = 1; i < n->n_in; i++) {
        tri_shape other = *in_shape(n, i);
        if (!op_need_type(n, i, out[0].type) || !op_need_rank(n, i, out[0].shape.rank)) return 0;
        other.dim[axis] = in_shape(n, 0)->dim[axis];
        if (!base_shape_equal(&other, in_shape(n, 0)))
            return tri_op_error(n, "input %d must be as input 0 but for dimension %d", i, axis);
        out[0].shape.dim[axis] += in_shape(n, i)->dim[axis];
    }
    return 1;
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    int axis;
    int64_t at = 0;
    CHECK(op_axis(n, "axis", 0, &axis));
    for (int i = 0; i < n->n_in; i++) {
        int64_t length = in_shape(n, i)->dim[axis];
        dx[i] = tri_slice(dy[0], axis, at, at + length);
        at += length;
    }
}

const tri_op op_concat = {
    .name = "concat",
    .inputs = 1,
    .inputs_max = -1,
    .attributes = "axis:int",
    .infer = infer,
    .gradient = gradient,
    .factor_fn = op_axis_factors,
    .linear = TRI_LINEAR_JOINTLY,
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[2,3], f32[2,1] {axis=1}", "f32[2,3], f32[1,3], f32[4,3] {axis=0}",
                         "f32[2,1,4], f32[2,3,4] {axis=-2}", "f32[3] {axis=0}",
                         "i64[3]@-9:9, i64[2]@-9:9 {axis=0}", "bf16[2,3], bf16[2,2] {axis=-1}"),
};

tri_tensor *tri_concat(tri_tensor *const *parts, int n, int axis) {
    return n > 0 ? graph_apply(tri_graph_of(parts[0]), "concat", n, parts, 1,
                               (const tri_attr[]){AI("axis", axis)})
                 : NULL;
}
