/* SPDX-License-Identifier: Apache-2.0
 * clip: x limited to [low, high]. The derivative is 1 at both ends, as in PyTorch. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    if (!(tri_attr_float(n, "low") <= tri_attr_float(n, "high")))
        return tri_op_error(n, "low is %g, above high, %g", tri_attr_float(n, "low"),
                            tri_attr_float(n, "high"));
    return op_float_like_input(n, out);
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *x = n->in[0];
    tri_tensor *low = op_constant_like(tri_attr_float(n, "low"), x);
    tri_tensor *high = op_constant_like(tri_attr_float(n, "high"), x);
    tri_tensor *inside = tri_and(tri_less_equal(low, x), tri_less_equal(x, high));
    dx[0] = tri_where(inside, dy[0], op_constant_like(0, x));
}

const tri_op op_clip = {
    .name = "clip",
    .inputs = 1,
    .attributes = "low:float high:float",
    .infer = infer,
    .gradient = gradient,
    .factors = "...->...",
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[3,5]@-0.9:0.9 {low=-1, high=1}", "f32[6]@1.1:3 {low=-1, high=1}",
                         "f32[6]@-3:-1.1 {low=-1, high=1}", "f32[]@1:2 {low=0, high=inf}",
                         "bf16[9]@-2:2 {low=-0.5, high=1}"),
};

tri_tensor *tri_clip(tri_tensor *x, double low, double high) {
    return APPLY("clip", INPUTS(x), AF("low", low), AF("high", high));
}
