/* SPDX-License-Identifier: Apache-2.0
 * mul: a * b, elementwise with broadcasting. */
#include "ops/op.h"

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    for (int i = 0; i < 2; i++) dx[i] = op_sum_to(tri_mul(dy[0], n->in[1 - i]), n->in[i]);
}

const tri_op op_mul = {
    .name = "mul",
    .inputs = 2,
    .infer = op_broadcast,
    .gradient = gradient,
    .factors = "...,...->...",
    .linear = TRI_LINEAR_EACH,
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[2,3], f32[2,3]", "f32[2,3], f32[3]", "f32[2,1,3], f32[4,1]",
                         "f32[3], f32[]", "i64[4]@-9:9, i64[4]@-9:9"),
};

tri_tensor *tri_mul(tri_tensor *a, tri_tensor *b) { return op_binary("mul", a, b); }

tri_tensor *tri_scale(tri_tensor *a, double b) {
    return a ? tri_mul(a, op_constant_like(b, a)) : NULL;
}
