/* SPDX-License-Identifier: Apache-2.0
 * rsqrt: 1 / sqrt x. */
#include "ops/op.h"

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *y = n->out;
    dx[0] = tri_mul(tri_scale(dy[0], -0.5), tri_mul(y, tri_mul(y, y)));
}

const tri_op op_rsqrt = {
    .name = "rsqrt",
    .inputs = 1,
    .infer = op_float_like_input,
    .gradient = gradient,
    .factors = "...->...",
    .precision = TRI_PRECISION_WIDE,
    .examples = EXAMPLES("f32[3,5]@0.5:3", "f32[]@1:2", "bf16[7]@0.5:3"),
};

tri_tensor *tri_rsqrt(tri_tensor *x) { return op_unary("rsqrt", x); }
