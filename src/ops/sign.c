/* SPDX-License-Identifier: Apache-2.0
 * sign: -1, 0 or 1. No gradient flows through it. */
#include "ops/op.h"

const tri_op op_sign = {
    .name = "sign",
    .inputs = 1,
    .infer = op_number_like_input,
    .gradient = tri_grad_none,
    .factors = "...->...",
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[3,5]@-2:2", "f32[]@0.5:1", "i32[6]@-2:3", "bf16[7]"),
};

tri_tensor *tri_sign(tri_tensor *x) { return op_unary("sign", x); }
