/* SPDX-License-Identifier: Apache-2.0
 * sub: a - b, elementwise with broadcasting. */
#include "ops/op.h"

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    dx[0] = op_sum_to(dy[0], n->in[0]);
    dx[1] = tri_neg(op_sum_to(dy[0], n->in[1]));
}

const tri_op op_sub = {
    .name = "sub",
    .inputs = 2,
    .infer = op_broadcast,
    .gradient = gradient,
    .factors = "...,...->...",
    .linear = TRI_LINEAR_JOINTLY,
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[2,3], f32[2,3]", "f32[2,3], f32[3]", "f32[2,1,3], f32[4,1]",
                         "f32[], f32[3]", "f32[1], f32[1,1]", "i32[4]@-9:9, i32[4]@-9:9",
                         "bf16[4], bf16[4]"),
};

tri_tensor *tri_sub(tri_tensor *a, tri_tensor *b) { return op_binary("sub", a, b); }
