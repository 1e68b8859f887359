/* SPDX-License-Identifier: Apache-2.0
 * ranks_before: of logits x [..., classes], labels [...] and the labels' own logits, how many
 * classes rank before the label, f32: all that are not smaller, of equal ones those of lower index,
 * and NaN. x may be classes `first` on of more; the results of the parts add up. For the split form
 * of in_top_k. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    tri_shape places = *in_shape(n, 0);
    places.rank--;
    if (!op_need_float(n, 0) || !op_need_index(n, 1) || !op_need_type(n, 2, in_spec(n, 0)->type))
        return 0;
    for (int i = 1; i < 3; i++)
        if (places.rank < 0 || !base_shape_equal(&places, in_shape(n, i)))
            return tri_op_error(n, "input %d must have the shape of x without its last dimension",
                                i);
    out[0] = (tri_spec){TRI_F32, places};
    return 1;
}

const tri_op op_ranks_before = {
    .name = "ranks_before",
    .inputs = 3,
    .attributes = "first:int=0",
    .infer = infer,
    .gradient = tri_grad_none,
    .factors = "...k,...,...->...",
    .names = "k:vocab",
    .follows = "first=begin:k",
    .examples = EXAMPLES("f32[6,5], i64[6]@0:5, f32[6]", "f32[2,37], i32[2]@0:37, f32[2]",
                         "f32[8,3], i64[8]@0:9, f32[8] {first=4}",
                         "bf16[8,4]@-2:2, i64[8]@0:4, bf16[8]@-2:2"),
};
