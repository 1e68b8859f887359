/* SPDX-License-Identifier: Apache-2.0
 * leaky_relu: x above 0, slope times x below. The derivative at 0 is the slope. */
#include "ops/op.h"

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *x = n->in[0], *bent = tri_scale(dy[0], tri_attr_float(n, "slope"));
    dx[0] = tri_where(tri_greater(x, op_constant_like(0, x)), dy[0], bent);
}

const tri_op op_leaky_relu = {
    .name = "leaky_relu",
    .inputs = 1,
    .attributes = "slope:float",
    .infer = op_float_like_input,
    .gradient = gradient,
    .factors = "...->...",
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[3,5]@0.1:2 {slope=0.01}", "f32[3,5]@-2:-0.1 {slope=0.2}",
                         "f32[]@-1:-0.5 {slope=0.1}", "bf16[7]@-2:2 {slope=0.25}"),
};

tri_tensor *tri_leaky_relu(tri_tensor *x, double slope) {
    return APPLY("leaky_relu", INPUTS(x), AF("slope", slope));
}
