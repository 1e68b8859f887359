/* SPDX-License-Identifier: Apache-2.0
 * less_equal: a <= b, elementwise with broadcasting; bool. */
#include "ops/op.h"

const tri_op op_less_equal = {
    .name = "less_equal",
    .inputs = 2,
    .infer = op_compare,
    .gradient = tri_grad_none,
    .factors = "...,...->...",
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[2,3], f32[2,3]", "i32[2,9]@0:4, i32[9]@0:4",
                         "i64[2,1,3]@-2:3, i64[4,1]@-2:3", "f32[], f32[3]",
                         "u8[9]@0:4, u8[1]@0:4", "bf16[4], bf16[4]"),
};

tri_tensor *tri_less_equal(tri_tensor *a, tri_tensor *b) { return op_binary("less_equal", a, b); }
