/* SPDX-License-Identifier: Apache-2.0
 * tanh: the hyperbolic tangent. */
#include "ops/op.h"

static tri_tensor *slope(tri_tensor *y) {
    return tri_add_number(tri_neg(tri_mul(y, y)), 1);
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    dx[0] = op_times_slope(dy[0], n->out, slope);
}

const tri_op op_tanh = {
    .name = "tanh",
    .inputs = 1,
    .infer = op_float_like_input,
    .gradient = gradient,
    .factors = "...->...",
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[3,5]@-2:2", "f32[]", "f32[8]@-30:30", "bf16[7]@-2:2"),
};

tri_tensor *tri_tanh(tri_tensor *x) { return op_unary("tanh", x); }
