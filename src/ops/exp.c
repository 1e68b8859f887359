/* SPDX-License-Identifier: Apache-2.0
 * exp: e to the power of x. */
#include "ops/op.h"

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    dx[0] = tri_mul(dy[0], n->out);
}

const tri_op op_exp = {
    .name = "exp",
    .inputs = 1,
    .infer = op_float_like_input,
    .gradient = gradient,
    .factors = "...->...",
    .precision = TRI_PRECISION_WIDE,
    .examples = EXAMPLES("f32[3,5]@-2:2", "f32[]", "f32[9]@-20:2", "bf16[7]@-2:2"),
};

tri_tensor *tri_exp(tri_tensor *x) { return op_unary("exp", x); }
