/* SPDX-License-Identifier: Apache-2.0
 * pow: a to the power of b, elementwise with broadcasting. */
#include "ops/op.h"

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *a = n->in[0], *b = n->in[1];
    tri_tensor *zero = op_constant_like(0, a), *one = op_constant_like(1, a);
    /* b a^(b-1), but 0 if b = 0 and 1 / a may be infinite or NaN: |a| is at most the smallest
     * normal number, or NaN. */
    tri_tensor *normal = op_constant_like(a->spec.type == TRI_F16 ? 0x1p-14 : 0x1p-126, a);
    tri_tensor *flat = tri_and(tri_not(tri_greater(tri_abs(a), normal)), tri_equal(b, zero));
    tri_tensor *power = tri_pow(a, tri_where(flat, zero, tri_sub(b, one)));
    dx[0] = op_sum_to(tri_mul(dy[0], tri_mul(b, power)), a);
    /* a^b log a, but 0 unless a > 0. */
    tri_tensor *positive = tri_greater(a, zero), *log = tri_log(tri_where(positive, a, one));
    dx[1] = op_sum_to(tri_where(positive, tri_mul(dy[0], tri_mul(n->out, log)), zero), b);
}

const tri_op op_pow = {
    .name = "pow",
    .inputs = 2,
    .infer = op_broadcast_float,
    .gradient = gradient,
    .factors = "...,...->...",
    .precision = TRI_PRECISION_WIDE,
    .examples = EXAMPLES("f32[2,3]@0.5:2, f32[2,3]@-2:2", "f32[2,3]@0.5:2, f32[3]@-2:2",
                         "f32[2,1,3]@0.5:2, f32[4,1]", "f32[]@0.5:2, f32[3]",
                         "f32[1]@0.5:2, f32[1,1]", "bf16[4]@0.5:2, bf16[4]"),
};

tri_tensor *tri_pow(tri_tensor *a, tri_tensor *b) { return op_binary("pow", a, b); }
