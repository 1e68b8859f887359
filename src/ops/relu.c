/* SPDX-License-Identifier: Apache-2.0
 * relu: max(x, 0). The derivative at 0 is 0, as in PyTorch. */
#include "ops/op.h"

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *y = &n->out[0]; /* positive where x is, so x need not be kept */
    dx[0] = tri_where(tri_greater(y, op_constant_like(0, y)), dy[0], op_constant_like(0, y));
}

const tri_op op_relu = {
    .name = "relu",
    .inputs = 1,
    .infer = op_float_like_input,
    .gradient = gradient,
    .factors = "...->...",
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[3,5]@-2:2", "bf16[7]"),
};

tri_tensor *tri_relu(tri_tensor *x) { return op_unary("relu", x); }
