/* SPDX-License-Identifier: Apache-2.0
 * dropout: in training, y is 0 with probability p and x / (1 - p) otherwise; the mask is true where
 * x was kept. In evaluation y is x. Element i of x, counted over the whole batch, is kept if its
 * random number is at least p 2^32. The number depends on the seed, the node's name (or the
 * attribute `key`, if set), the step and i. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    double p = tri_attr_float(n, "p");
    if (!(p >= 0 && p < 1))
        return tri_op_error(n, "p is %g; it must be at least 0 and below 1", p);
    if (!op_float_like_input(n, out)) return 0;
    out[1] = (tri_spec){TRI_BOOL, out[0].shape};
    return 2;
}

/* Like the kernel, the gradient multiplies in f32 by a scale rounded to f32. */
static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *d = dy[0];
    if (tri_attr_int(n, "training")) {
        double scale = (float)(1 / (1 - tri_attr_float(n, "p")));
        d = tri_cast(tri_scale(tri_cast(d, TRI_F32), scale), n->in[0]->spec.type);
        d = tri_where(&n->out[1], d, op_constant_like(0, n->in[0]));
    }
    dx[0] = d;
}

const tri_op op_dropout = {
    .name = "dropout",
    .inputs = 1,
    .attributes = "p:float training:int=1 key:text=",
    .infer = infer,
    .gradient = gradient,
    .factors = "...->...,...",
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[4,8] {p=0.5}", "f32[2,3,5] {p=0.1}", "f32[7] {p=0}",
                         "f32[4,3] {p=0.9, training=0}", "bf16[6,5] {p=0.3}"),
    .random = true,
};

tri_tensor *tri_dropout(tri_tensor *x, double p) { return APPLY("dropout", INPUTS(x), AF("p", p)); }
