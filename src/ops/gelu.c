/* SPDX-License-Identifier: Apache-2.0
 * gelu: x * Phi(x), where Phi is the standard normal distribution function. */
#include "ops/op.h"

static tri_tensor *slope(tri_tensor *x) {
    const double sqrt_half = 0.70710678118654752, one_over_sqrt_two_pi = 0.39894228040143268;
    tri_tensor *phi = tri_scale(tri_exp(tri_scale(tri_mul(x, x), -0.5)), one_over_sqrt_two_pi);
    tri_tensor *Phi = tri_scale(tri_add_number(tri_erf(tri_scale(x, sqrt_half)), 1), 0.5);
    return tri_add(Phi, tri_mul(x, phi));
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    dx[0] = op_times_slope(dy[0], n->in[0], slope);
}

const tri_op op_gelu = {
    .name = "gelu",
    .inputs = 1,
    .infer = op_float_like_input,
    .gradient = gradient,
    .factors = "...->...",
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[3,5]@-3:3", "f32[]", "bf16[7]@-2:2"),
};

tri_tensor *tri_gelu(tri_tensor *x) { return op_unary("gelu", x); }
