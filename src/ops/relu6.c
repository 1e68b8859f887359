/* SPDX-License-Identifier: Apache-2.0
 * relu6: x limited to [0, 6]. The derivative at both ends is 0, as in PyTorch. */
#include "ops/op.h"

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *x = n->in[0], *zero = op_constant_like(0, x);
    tri_tensor *inside = tri_and(tri_greater(x, zero), tri_less(x, op_constant_like(6, x)));
    dx[0] = tri_where(inside, dy[0], zero);
}

const tri_op op_relu6 = {
    .name = "relu6",
    .inputs = 1,
    .infer = op_float_like_input,
    .gradient = gradient,
    .factors = "...->...",
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[3,5]@0.1:5.9", "f32[6]@6.1:9", "f32[6]@-2:-0.1", "f32[]@1:2",
                         "bf16[9]@-9:9"),
};

tri_tensor *tri_relu6(tri_tensor *x) { return op_unary("relu6", x); }
