/* SPDX-License-Identifier: Apache-2.0
 * add: a + b, elementwise with broadcasting. */
#include "ops/op.h"

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    for (int i = 0; i < 2; i++) dx[i] = op_sum_to(dy[0], n->in[i]);
}

const tri_op op_add = {
    .name = "add",
    .inputs = 2,
    .infer = op_broadcast,
    .gradient = gradient,
    .factors = "...,...->...",
    .linear = TRI_LINEAR_JOINTLY,
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[2,3], f32[2,3]", "f32[2,3], f32[3]", "f32[2,1,3], f32[4,1]",
                         "f32[3], f32[]", "i32[4]@-9:9, i32[4]@-9:9", "bf16[4], bf16[4]"),
};

tri_tensor *tri_add(tri_tensor *a, tri_tensor *b) { return op_binary("add", a, b); }

tri_tensor *tri_add_number(tri_tensor *a, double b) {
    return a ? tri_add(a, op_constant_like(b, a)) : NULL;
}
