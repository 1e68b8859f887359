/* SPDX-License-Identifier: Apache-2.0
 * spread: the gradient of sum and mean: y repeated along the reduced axes of `like`, whose data is
 * not read, and divided by count. y has these axes with length 1 or not at all. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    const tri_shape *y = in_shape(n, 0), *like = in_shape(n, 1);
    if (!op_need_axes(n, like->rank)) return 0;
    unsigned mask = op_axes_mask(n, like->rank);
    tri_shape kept = op_reduced_shape(like, mask, true);
    tri_shape dropped = op_reduced_shape(like, mask, false);
    if (!base_shape_equal(y, &kept) && !base_shape_equal(y, &dropped))
        return tri_op_error(n, "input 0 is not a reduction of input 1 over these axes");
    if (tri_attr_int(n, "count") < 1) return tri_op_error(n, "count must be at least 1");
    out[0] = (tri_spec){in_spec(n, 0)->type, *like};
    return 1;
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_shape axes = tri_attr_list(n, "axes");
    int64_t keep = in_shape(n, 0)->rank == in_shape(n, 1)->rank, count = tri_attr_int(n, "count");
    tri_tensor *sum = APPLY("sum", INPUTS(dy[0]), AL("axes", axes), AI("keep", keep));
    dx[0] = count == 1 ? sum : tri_scale(sum, 1.0 / (double)count);
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    char reduced[2 * TRI_MAX_RANK], whole[TRI_MAX_RANK + 1];
    int rank = in_shape(n, 1)->rank;
    op_letters(whole, rank, 0);
    op_reduced_letters(reduced, rank, op_axes_mask(n, rank), in_shape(n, 0)->rank == rank);
    snprintf(text, bytes, "%s,%s->%s", reduced, whole, whole);
}

const tri_op op_spread = {
    .name = "spread",
    .inputs = 2,
    .attributes = "axes:ints= count:int=1",
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .linear = TRI_LINEAR_EACH,
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[2,4], f32[2,3,4] {axes=[1]}",
                         "f32[1,3,1], f32[2,3,4] {axes=[0,2], count=8}", "f32[], f32[5]"),
    .shape_only = 1u << 1,
};
