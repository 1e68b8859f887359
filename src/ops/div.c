/* SPDX-License-Identifier: Apache-2.0
 * div: a / b, elementwise with broadcasting. */
#include "ops/op.h"

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *a = n->in[0], *b = n->in[1], *da = tri_div(dy[0], b);
    dx[0] = op_sum_to(da, a);
    dx[1] = tri_neg(op_sum_to(tri_mul(da, n->out), b));
}

const tri_op op_div = {
    .name = "div",
    .inputs = 2,
    .infer = op_broadcast_float,
    .gradient = gradient,
    .factors = "...,...->...",
    .linear = TRI_LINEAR_FIRST,
    .precision = TRI_PRECISION_WIDE,
    .examples = EXAMPLES("f32[2,3], f32[2,3]@0.5:2", "f32[2,3], f32[3]@-2:-0.5",
                         "f32[2,1,3], f32[4,1]@0.5:2", "f32[], f32[3]@0.5:2",
                         "f32[1], f32[1,1]@0.5:2", "bf16[4], bf16[4]@0.5:2"),
};

tri_tensor *tri_div(tri_tensor *a, tri_tensor *b) { return op_binary("div", a, b); }
