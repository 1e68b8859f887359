/* SPDX-License-Identifier: Apache-2.0
 * split: n equal parts along an axis, one per output. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    int axis;
    int64_t parts = tri_attr_int(n, "n");
    if (!op_axis(n, "axis", 0, &axis)) return 0;
    int64_t length = in_shape(n, 0)->dim[axis];
    if (parts < 1 || parts > TRI_MAX_OUTPUTS)
        return tri_op_error(n, "%lld parts; it must be 1 to %d (tri_slice has no such limit)",
                            (long long)parts, TRI_MAX_OUTPUTS);
    if (length % parts)
        return tri_op_error(n, "dimension %d has %lld place(s), which %lld equal parts do not give",
                            axis, (long long)length, (long long)parts);
    for (int i = 0; i < parts; i++) {
        out[i] = *in_spec(n, 0);
        out[i].shape.dim[axis] = length / parts;
    }
    return (int)parts;
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *part[TRI_MAX_OUTPUTS];
    for (int i = 0; i < n->n_out; i++) part[i] = dy[i] ? dy[i] : op_zeros_like(&n->out[i]);
    dx[0] = tri_concat(part, n->n_out, (int)tri_attr_int(n, "axis"));
}

const tri_op op_split = {
    .name = "split",
    .inputs = 1,
    .attributes = "axis:int n:int",
    .infer = infer,
    .gradient = gradient,
    .factor_fn = op_axis_factors,
    .linear = TRI_LINEAR_JOINTLY,
    .precision = TRI_PRECISION_ANY,
    .examples = EXAMPLES("f32[2,6] {axis=1, n=3}", "f32[4,3] {axis=0, n=2}",
                         "f32[2,4,3] {axis=-2, n=4}", "f32[3] {axis=0, n=1}",
                         "i32[4]@-9:9 {axis=0, n=2}", "bf16[2,6] {axis=1, n=2}"),
};

void tri_split(tri_tensor *x, int n, int axis, tri_tensor **parts) {
    tri_tensor *y = APPLY("split", INPUTS(x), AI("axis", axis), AI("n", n));
    for (int i = 0; i < n; i++) parts[i] = y && i < y->node->n_out ? &y->node->out[i] : y;
}
