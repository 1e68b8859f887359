/* SPDX-License-Identifier: Apache-2.0
 * silu: x * sigmoid x. */
#include "ops/op.h"

static tri_tensor *slope(tri_tensor *x) {
    tri_tensor *s = tri_sigmoid(x), *rest = tri_add_number(tri_neg(s), 1);
    return tri_mul(s, tri_add_number(tri_mul(x, rest), 1));
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    dx[0] = op_times_slope(dy[0], n->in[0], slope);
}

const tri_op op_silu = {
    .name = "silu",
    .inputs = 1,
    .infer = op_float_like_input,
    .gradient = gradient,
    .factors = "...->...",
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[3,5]@-3:3", "f32[]", "f32[8]@-90:90", "bf16[7]@-2:2"),
};

tri_tensor *tri_silu(tri_tensor *x) { return op_unary("silu", x); }
