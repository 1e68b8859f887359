/* SPDX-License-Identifier: Apache-2.0
 * pick: of x [..., k] and labels [...], the element of x at each label. x may be elements `first`
 * on of a longer dimension; a label outside gives 0, so the results of the parts add up. For split
 * forms. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    tri_shape places = *in_shape(n, 0);
    places.rank--;
    if (!op_need_float(n, 0) || !op_need_index(n, 1)) return 0;
    if (places.rank < 0 || !base_shape_equal(&places, in_shape(n, 1)))
        return tri_op_error(n, "the labels must have the shape of x without its last dimension");
    out[0] = (tri_spec){in_spec(n, 0)->type, places};
    return 1;
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    const tri_spec *x = in_spec(n, 0);
    int last = x->shape.rank - 1;
    tri_tensor *at = APPLY("one_hot", INPUTS(n->in[1]), AI("depth", x->shape.dim[last]),
                           AI("first", tri_attr_int(n, "first")));
    tri_tensor *all = APPLY("spread", INPUTS(dy[0], n->in[0]), AL("axes", TRI_SHAPE(last)));
    dx[0] = tri_mul(all, tri_cast(at, x->type));
}

const tri_op op_pick = {
    .name = "pick",
    .inputs = 2,
    .attributes = "first:int=0",
    .infer = infer,
    .gradient = gradient,
    .factors = "...k,...->...",
    .names = "k:vocab",
    .follows = "first=begin:k",
    .linear = TRI_LINEAR_FIRST,
    .examples = EXAMPLES("f32[4,5], i64[4]@0:5", "f32[2,3,7], i32[2,3]@-2:9", "f32[3], i64[]@0:3",
                         "f32[8,3], i64[8]@0:9 {first=4}", "bf16[4,5], i64[4]@0:5"),
};
