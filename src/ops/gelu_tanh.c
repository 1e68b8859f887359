/* SPDX-License-Identifier: Apache-2.0
 * gelu_tanh: x * (1 + tanh u) / 2 with u = sqrt(2 / pi) * (x + 0.044715 x^3). */
#include "ops/op.h"

static tri_tensor *slope(tri_tensor *x) {
    const double c = 0.79788456080286536, cubic = 0.044715;
    tri_tensor *xx = tri_mul(x, x);
    tri_tensor *u = tri_scale(tri_mul(x, tri_add_number(tri_scale(xx, cubic), 1)), c);
    tri_tensor *du = tri_scale(tri_add_number(tri_scale(xx, 3 * cubic), 1), c), *t = tri_tanh(u);
    tri_tensor *dt = tri_mul(tri_add_number(tri_neg(tri_mul(t, t)), 1), du);
    return tri_scale(tri_add(tri_add_number(t, 1), tri_mul(x, dt)), 0.5);
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    dx[0] = op_times_slope(dy[0], n->in[0], slope);
}

const tri_op op_gelu_tanh = {
    .name = "gelu_tanh",
    .inputs = 1,
    .infer = op_float_like_input,
    .gradient = gradient,
    .factors = "...->...",
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[3,5]@-3:3", "f32[]", "bf16[7]@-2:2"),
};

tri_tensor *tri_gelu_tanh(tri_tensor *x) { return op_unary("gelu_tanh", x); }
