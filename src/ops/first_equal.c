/* SPDX-License-Identifier: Apache-2.0
 * first_equal: minus the place, i64, of the first element of x along an axis that equals the value
 * given for its line (NaN equals NaN). x may be places `first` on of a longer axis; a part without
 * such an element gives the least number, so the maximum of the parts is right. For the split form
 * of argmax. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    int axis;
    if (!op_axis(n, "axis", 0, &axis) || !op_need_number(n, 0) ||
        !op_need_type(n, 1, in_spec(n, 0)->type))
        return 0;
    out[0] = (tri_spec){TRI_I64, op_reduced_shape(in_shape(n, 0), 1u << axis, false)};
    return base_shape_equal(in_shape(n, 1), &out[0].shape) ||
           tri_op_error(n, "the values must have the shape of x without the axis");
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    char from[TRI_MAX_RANK + 1], to[TRI_MAX_RANK + 1];
    int axis, rank = in_shape(n, 0)->rank;
    CHECK(op_axis(n, "axis", 0, &axis));
    op_letters(from, rank, 0);
    op_reduced_letters(to, rank, 1u << axis, false);
    from[axis] = 'x';
    snprintf(text, bytes, "%s,%s->%s", from, to, to);
}

const tri_op op_first_equal = {
    .name = "first_equal",
    .inputs = 2,
    .attributes = "axis:int first:int=0",
    .infer = infer,
    .gradient = tri_grad_none,
    .factor_fn = factors,
    .follows = "first=begin:x",
    .partial = TRI_PARTIAL_MAX,
    .examples = EXAMPLES("i64[4,9]@-2:3, i64[4]@-2:3 {axis=1}", "i32[2,5,4]@0:3, i32[2,4]@0:3 "
                         "{axis=-2, first=3}", "f32[3,1], f32[3] {axis=1}",
                         "bf16[9,2]@-1:1, bf16[2]@-1:1 {axis=0}"),
};
