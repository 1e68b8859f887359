/* SPDX-License-Identifier: Apache-2.0
 * erf: the error function. */
#include "ops/op.h"

static tri_tensor *slope(tri_tensor *x) {
    const double two_over_sqrt_pi = 1.1283791670955126;
    return tri_scale(tri_exp(tri_neg(tri_mul(x, x))), two_over_sqrt_pi);
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    dx[0] = op_times_slope(dy[0], n->in[0], slope);
}

const tri_op op_erf = {
    .name = "erf",
    .inputs = 1,
    .infer = op_float_like_input,
    .gradient = gradient,
    .factors = "...->...",
    .precision = TRI_PRECISION_WIDE,
    .examples = EXAMPLES("f32[3,5]@-3:3", "f32[]", "bf16[7]@-2:2"),
};

tri_tensor *tri_erf(tri_tensor *x) { return op_unary("erf", x); }
