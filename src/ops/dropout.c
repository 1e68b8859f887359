/* SPDX-License-Identifier: Apache-2.0
 * dropout: in training, y is 0 with probability p and x / (1 - p) otherwise; the mask is true where
 * x was kept. In evaluation y is x. Element i of x, counted over the whole batch, is kept if its
 * random number is at least p 2^32. The number depends on the seed, the node's name (or the
 * attribute `key`, if set), the step and i. x may be a part of another tensor, on a mesh. */
#include "ops/op.h"

/* local, origin and whole: see tri_op.follows. */
static bool check_part(const tri_node *n) {
    tri_shape local = tri_attr_list(n, "local"), origin = tri_attr_list(n, "origin");
    tri_shape whole = tri_attr_list(n, "whole");
    if (!local.rank && !origin.rank && !whole.rank) return true;
    bool fits = local.rank == origin.rank && local.rank == whole.rank &&
                tri_shape_count(&local) == tri_shape_count(in_shape(n, 0));
    for (int i = 0; fits && i < local.rank; i++)
        fits = origin.dim[i] >= 0 && origin.dim[i] + local.dim[i] <= whole.dim[i];
    return fits || tri_op_error(n, "local, origin and whole do not describe a part of a tensor");
}

static int infer(const tri_node *n, tri_spec *out) {
    double p = tri_attr_float(n, "p");
    if (!(p >= 0 && p < 1))
        return tri_op_error(n, "p is %g; it must be at least 0 and below 1", p);
    if (!op_float_like_input(n, out) || !check_part(n)) return 0;
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
    .attributes = "p:float training:int=1 key:text= local:ints= origin:ints= whole:ints=",
    .infer = infer,
    .gradient = gradient,
    .factors = "...->...,...",
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[4,8] {p=0.5}", "f32[2,3,5] {p=0.1}", "f32[7] {p=0}",
                         "f32[4,3] {p=0.9, training=0}", "bf16[6,5] {p=0.3}",
                         "f32[2,6] {p=0.4, local=[2,6], origin=[0,3], whole=[2,11]}",
                         "f32[4,3,5] {p=0.5, local=[2,2,1,3,5], origin=[1,0,2,0,0], "
                         "whole=[3,2,3,3,5]}",
                         "f32[3,1500] {p=0.5, local=[3,1500], origin=[1,7], whole=[4,1600]}"),
    .random = true,
};

tri_tensor *tri_dropout(tri_tensor *x, double p) { return APPLY("dropout", INPUTS(x), AF("p", p)); }
