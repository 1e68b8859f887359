/* SPDX-License-Identifier: Apache-2.0
 * in_top_k: for logits [..., classes] and labels [...], 1 where the label's logit is among the k
 * largest, else 0; f32. Among equal logits the lower index ranks first. A label that is not a class
 * (ignored by the loss) gives 0, and so does a label whose logit is NaN. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    const tri_shape *x = in_shape(n, 0);
    int64_t k = tri_attr_int(n, "k");
    tri_shape places = *x;
    places.rank--;
    if (!op_need_float(n, 0) || !op_need_index(n, 1)) return 0;
    if (x->rank < 1 || !base_shape_equal(&places, in_shape(n, 1)))
        return tri_op_error(n, "the labels must have the shape of the logits without their last "
                               "dimension, the classes");
    if (k < 1 || k > x->dim[x->rank - 1])
        return tri_op_error(n, "k is %lld; it must be from 1 to the number of classes, %lld",
                            (long long)k, (long long)x->dim[x->rank - 1]);
    out[0] = (tri_spec){TRI_F32, places};
    return 1;
}

static bool split_form(const tri_node *n, tri_tensor **out) {
    tri_tensor *x = n->in[0], *labels = n->in[1], *own = APPLY("pick", INPUTS(x, labels));
    tri_tensor *before = APPLY("ranks_before", INPUTS(x, labels, own));
    double classes = (double)x->spec.shape.dim[x->spec.shape.rank - 1];
    double k = (double)tri_attr_int(n, "k");
    tri_tensor *class = tri_and(tri_greater_equal(labels, op_constant_like(0, labels)),
                                tri_less(labels, op_constant_like(classes, labels)));
    tri_tensor *among = tri_less(before, op_constant_like(k, before));
    out[0] = tri_cast(tri_and(tri_and(class, tri_equal(own, own)), among), TRI_F32);
    return true;
}

const tri_op op_in_top_k = {
    .name = "in_top_k",
    .inputs = 2,
    .attributes = "k:int=1",
    .infer = infer,
    .gradient = tri_grad_none,
    .factors = "...K,...->...",
    .names = "k:vocab",
    .split_form = split_form,
    .precision = TRI_PRECISION_ANY,
    .examples = EXAMPLES("f32[6,5], i64[6]@0:5", "f32[2,3,7], i32[2,3]@0:6 {k=3}",
                         "f32[4,3], i64[4]@-100:3 {k=3}", "bf16[8,4]@-2:2, i64[8]@0:4 {k=2}"),
};
