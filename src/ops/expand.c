/* SPDX-License-Identifier: Apache-2.0
 * expand: broadcasts x to a shape, repeating dimensions of length 1 and missing leading ones. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    tri_shape to = tri_attr_list(n, "shape"), joined;
    if (!op_broadcast_shape(in_shape(n, 0), &to, &joined) || !base_shape_equal(&joined, &to))
        return tri_op_error(n, "aligned at the last dimension, each length must be 1 or that of "
                               "the shape asked for");
    out[0] = (tri_spec){in_spec(n, 0)->type, to};
    return 1;
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    dx[0] = op_sum_to(dy[0], n->in[0]);
}

/* [3,1] to [2,3,4] is "b1->abc". */
static void factors(const tri_node *n, char *text, size_t bytes) {
    char from[TRI_MAX_RANK + 1] = {0}, to[TRI_MAX_RANK + 1];
    const tri_shape *x = in_shape(n, 0), *y = out_shape(n, 0);
    int added = y->rank - x->rank;
    op_letters(to, y->rank, 0);
    for (int i = 0; i < x->rank; i++)
        from[i] = x->dim[i] == y->dim[i + added] ? to[i + added] : '1';
    snprintf(text, bytes, "%s->%s", from, to);
}

const tri_op op_expand = {
    .name = "expand",
    .inputs = 1,
    .attributes = "shape:shape",
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .linear = TRI_LINEAR_JOINTLY,
    .precision = TRI_PRECISION_ANY,
    .examples = EXAMPLES("f32[3] {shape=[2,3]}", "f32[3,1] {shape=[2,3,4]}",
                         "f32[2,1,1] {shape=[2,3,1]}", "f32[] {shape=[4]}", "f32[] {shape=[]}",
                         "i64[1]@-9:9 {shape=[3]}", "bf16[2,1] {shape=[2,4]}"),
};

tri_tensor *tri_expand(tri_tensor *x, tri_shape shape) {
    return APPLY("expand", INPUTS(x), AL("shape", shape));
}
