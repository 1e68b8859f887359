/* SPDX-License-Identifier: Apache-2.0
 * abs: the absolute value. The derivative at 0 is 0. */
#include "ops/op.h"

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    dx[0] = tri_mul(dy[0], tri_sign(n->in[0]));
}

const tri_op op_abs = {
    .name = "abs",
    .inputs = 1,
    .infer = op_number_like_input,
    .gradient = gradient,
    .factors = "...->...",
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[3,5]@0.1:2", "f32[3,5]@-2:-0.1", "f32[]@-1:-0.5", "i32[6]@-9:9",
                         "bf16[7]@-2:-0.1"),
};

tri_tensor *tri_abs(tri_tensor *x) { return op_unary("abs", x); }
