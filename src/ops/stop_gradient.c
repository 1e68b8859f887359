/* SPDX-License-Identifier: Apache-2.0
 * stop_gradient: x, but no gradient flows through it. */
#include "ops/op.h"

const tri_op op_stop_gradient = {
    .name = "stop_gradient",
    .inputs = 1,
    .infer = op_like_input,
    .gradient = tri_grad_none,
    .factors = "...->...",
    .linear = TRI_LINEAR_JOINTLY,
    .precision = TRI_PRECISION_ANY,
    .examples = EXAMPLES("f32[3,5]", "i64[4]@-9:9", "bool[]", "bf16[7]"),
};

tri_tensor *tri_stop_gradient(tri_tensor *x) { return op_unary("stop_gradient", x); }
