/* SPDX-License-Identifier: Apache-2.0
 * erf: the error function. */
#include "ops/op.h"

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    const double two_over_sqrt_pi = 1.1283791670955126;
    tri_tensor *x = n->in[0], *bell = tri_exp(tri_neg(tri_mul(x, x)));
    dx[0] = tri_mul(dy[0], tri_scale(bell, two_over_sqrt_pi));
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
