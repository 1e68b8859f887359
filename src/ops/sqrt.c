/* SPDX-License-Identifier: Apache-2.0
 * sqrt: the square root; NaN below 0. The derivative at 0 is infinite, or 0 with norm=1. */
#include "ops/op.h"

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *half = tri_scale(dy[0], 0.5), *y = n->out;
    if (!tri_attr_int(n, "norm")) {
        dx[0] = tri_div(half, y);
        return;
    }
    /* Replace the divisor too, so that second derivatives do not divide by 0. */
    tri_tensor *zero = op_constant_like(0, y), *flat = tri_equal(y, zero);
    dx[0] = tri_where(flat, zero, tri_div(half, tri_where(flat, op_constant_like(1, y), y)));
}

const tri_op op_sqrt = {
    .name = "sqrt",
    .inputs = 1,
    .attributes = "norm:int=0",
    .infer = op_float_like_input,
    .gradient = gradient,
    .factors = "...->...",
    .precision = TRI_PRECISION_WIDE,
    .examples = EXAMPLES("f32[3,5]@0.5:3", "f32[]@1:2", "bf16[7]@0.5:3", "f32[]@1:2 {norm=1}"),
};

tri_tensor *tri_sqrt(tri_tensor *x) { return op_unary("sqrt", x); }
