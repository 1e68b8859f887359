/* SPDX-License-Identifier: Apache-2.0
 * log: the natural logarithm; -inf at 0, NaN below. */
#include "ops/op.h"

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    dx[0] = tri_div(dy[0], n->in[0]);
}

const tri_op op_log = {
    .name = "log",
    .inputs = 1,
    .infer = op_float_like_input,
    .gradient = gradient,
    .factors = "...->...",
    .precision = TRI_PRECISION_WIDE,
    .examples = EXAMPLES("f32[3,5]@0.5:3", "f32[]@1:2", "bf16[7]@0.5:3"),
};

tri_tensor *tri_log(tri_tensor *x) { return op_unary("log", x); }
