/* SPDX-License-Identifier: Apache-2.0
 * softplus: log(1 + exp x), without overflow. */
#include "ops/op.h"

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    dx[0] = op_times_slope(dy[0], n->in[0], (tri_sigmoid));
}

const tri_op op_softplus = {
    .name = "softplus",
    .inputs = 1,
    .infer = op_float_like_input,
    .gradient = gradient,
    .factors = "...->...",
    .precision = TRI_PRECISION_WIDE,
    .examples = EXAMPLES("f32[3,5]@-3:3", "f32[]", "f32[8]@-90:90", "bf16[7]@-2:2"),
};

tri_tensor *tri_softplus(tri_tensor *x) { return op_unary("softplus", x); }
