/* SPDX-License-Identifier: Apache-2.0
 * spread: the gradient of sum and mean: y repeated along the reduced axes of `like`, whose data is
 * not read, and divided by count. y has these axes with length 1 or not at all. With count=0 the
 * divisor is the number of places over which an element is spread; it is set when the batch is
 * divided, since rows of lanes (per_lane) are as many as the lanes. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    const tri_shape *y = in_shape(n, 0), *like = in_shape(n, 1);
    if (!op_need_axes(n, like->rank)) return 0;
    unsigned mask = op_axes_mask(n, like->rank);
    tri_shape kept = op_reduced_shape(like, mask, true);
    tri_shape dropped = op_reduced_shape(like, mask, false);
    if (!op_lane_shape(n, like, &kept)) return 0;
    if (!base_shape_equal(y, &kept) && !base_shape_equal(y, &dropped))
        return tri_op_error(n, "input 0 is not a reduction of input 1 over these axes");
    if (tri_attr_int(n, "count") < 0) return tri_op_error(n, "count must be at least 0");
    out[0] = (tri_spec){in_spec(n, 0)->type, *like};
    return 1;
}

static int64_t count(const tri_node *n) {
    int64_t fixed = tri_attr_int(n, "count");
    return fixed ? fixed : tri_shape_count(in_shape(n, 1)) / tri_shape_count(in_shape(n, 0));
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_shape axes = tri_attr_list(n, "axes");
    int64_t keep = in_shape(n, 0)->rank == in_shape(n, 1)->rank, by = tri_attr_int(n, "count");
    if (!by) {
        dx[0] = APPLY("mean", INPUTS(dy[0]), AL("axes", axes), AI("keep", keep));
        return;
    }
    tri_tensor *sum = APPLY("sum", INPUTS(dy[0]), AL("axes", axes), AI("keep", keep),
                            AI("per_lane", node_per_lane(n)));
    dx[0] = by == 1 ? sum : tri_scale(sum, 1.0 / (double)by);
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    char reduced[2 * TRI_MAX_RANK], whole[TRI_MAX_RANK + 1];
    int rank = in_shape(n, 1)->rank;
    op_letters(whole, rank, 0);
    if (node_per_lane(n) && in_shape(n, 0)->dim[0] > 1) {
        snprintf(text, bytes, "s%s,(sA)%s->(sA)%s", whole + 1, whole + 1, whole + 1);
        return;
    }
    op_reduced_letters(reduced, rank, op_axes_mask(n, rank), in_shape(n, 0)->rank == rank);
    snprintf(text, bytes, "%s,%s->%s", reduced, whole, whole);
}

const tri_op op_spread = {
    .name = "spread",
    .inputs = 2,
    .attributes = "axes:ints= count:int=1 per_lane:int=0",
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .linear = TRI_LINEAR_EACH,
    .count = count,
    .precision = TRI_PRECISION_FOLLOW,
    .examples = EXAMPLES("f32[2,4], f32[2,3,4] {axes=[1]}",
                         "f32[1,3,1], f32[2,3,4] {axes=[0,2], count=8}", "f32[], f32[5]",
                         "f32[1,3], f32[4,3] {axes=[0], per_lane=1}"),
    .shape_only = 1u << 1,
};
