/* SPDX-License-Identifier: Apache-2.0
 * neg: -x. */
#include "ops/op.h"

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    (void)n;
    dx[0] = tri_neg(dy[0]);
}

const tri_op op_neg = {
    .name = "neg",
    .inputs = 1,
    .infer = op_number_like_input,
    .gradient = gradient,
    .factors = "...->...",
    .linear = TRI_LINEAR_JOINTLY,
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[3,5]", "f32[]", "i64[4]@-9:9", "bf16[7]"),
};

tri_tensor *tri_neg(tri_tensor *x) { return op_unary("neg", x); }
