/* SPDX-License-Identifier: Apache-2.0
 * where: a if the condition is true, else b; elementwise, with all three broadcast. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    tri_shape values;
    out[0].type = in_spec(n, 1)->type;
    if (!op_need_type(n, 0, TRI_BOOL) || !op_need_type(n, 2, out[0].type)) return 0;
    if (!op_broadcast_shape(in_shape(n, 1), in_shape(n, 2), &values) ||
        !op_broadcast_shape(in_shape(n, 0), &values, &out[0].shape))
        return tri_op_error(n, "the shapes do not fit: aligned at the last dimension, lengths must "
                               "be equal or 1");
    return 1;
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *condition = n->in[0], *zero = op_constant_like(0, dy[0]);
    dx[1] = op_sum_to(tri_where(condition, dy[0], zero), n->in[1]);
    dx[2] = op_sum_to(tri_where(condition, zero, dy[0]), n->in[2]);
}

/* What is chosen by a condition that is false. */
static int leaves_out(const tri_node *n, double value) {
    return value == 0 && node_is(n->in[2]->node, "constant") ? 0 : -1;
}

const tri_op op_where = {
    .name = "where",
    .inputs = 3,
    .infer = infer,
    .gradient = gradient,
    .factors = "...,...,...->...",
    .leaves_out = leaves_out,
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("bool[2,3], f32[2,3], f32[2,3]", "bool[3], f32[2,3], f32[]",
                         "bool[2,1,3], f32[4,1], f32[3]", "bool[], f32[1], f32[1,1]",
                         "bool[2,1], i64[3]@-9:9, i64[2,3]@-9:9",
                         "bool[4], bf16[4], bf16[]"),
};

tri_tensor *tri_where(tri_tensor *condition, tri_tensor *a, tri_tensor *b) {
    op_match_constants(&a, &b);
    return APPLY("where", INPUTS(condition, a, b));
}
