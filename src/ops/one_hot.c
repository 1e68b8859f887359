/* SPDX-License-Identifier: Apache-2.0
 * one_hot: adds a last dimension of length depth, with 1 at index id - first and 0 elsewhere.
 * Ids outside [first, first + depth) give only zeros. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    if (!op_need_index(n, 0)) return 0;
    out[0] = (tri_spec){TRI_F32, *in_shape(n, 0)};
    tri_shape *y = &out[0].shape;
    if (y->rank == TRI_MAX_RANK)
        return tri_op_error(n, "the result would have more than %d dimensions", TRI_MAX_RANK);
    y->dim[y->rank++] = tri_attr_int(n, "depth");
    return 1;
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    char ids[TRI_MAX_RANK + 1];
    op_letters(ids, in_shape(n, 0)->rank, 0);
    snprintf(text, bytes, "%s->%sv", ids, ids);
}

const tri_op op_one_hot = {
    .name = "one_hot",
    .inputs = 1,
    .attributes = "depth:int first:int=0",
    .infer = infer,
    .gradient = tri_grad_none,
    .factor_fn = factors,
    .names = "v:vocab",
    .follows = "depth=size:v first=begin:v",
    .examples = EXAMPLES("i64[4]@0:5 {depth=5}", "i32[2,3]@-2:8 {depth=4}", "i64[]@0:3 {depth=3}",
                         "i64[3]@0:2 {depth=1}", "i64[6]@0:9 {depth=3, first=4}"),
};

tri_tensor *tri_one_hot(tri_tensor *ids, int64_t depth) {
    return APPLY("one_hot", INPUTS(ids), AI("depth", depth));
}
