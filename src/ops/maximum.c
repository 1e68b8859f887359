/* SPDX-License-Identifier: Apache-2.0
 * maximum: the larger of a and b, elementwise with broadcasting. Equals share the gradient. */
#include "ops/op.h"

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *half = tri_scale(dy[0], 0.5), *zero = op_constant_like(0, dy[0]);
    for (int i = 0; i < 2; i++) {
        tri_tensor *x = n->in[i], *other = n->in[1 - i];
        tri_tensor *alone = tri_where(tri_greater(x, other), dy[0], zero);
        dx[i] = op_sum_to(tri_where(tri_equal(x, other), half, alone), x);
    }
}

const tri_op op_maximum = {
    .name = "maximum",
    .inputs = 2,
    .infer = op_broadcast,
    .gradient = gradient,
    .factors = "...,...->...",
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[2,3]@-1:0, f32[2,3]@0.1:1", "f32[2,3]@0.1:1, f32[3]@-1:0",
                         "f32[2,1,3], f32[4,1]@2:3", "f32[]@2:3, f32[3]",
                         "f32[1]@0.1:1, f32[1,1]@-1:0", "i32[9]@-2:3, i32[9]@-2:3",
                         "i64[4]@-9:10, i64[]@0:2", "bf16[9], bf16[9]"),
};

tri_tensor *tri_maximum(tri_tensor *a, tri_tensor *b) { return op_binary("maximum", a, b); }
