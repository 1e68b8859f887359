/* SPDX-License-Identifier: Apache-2.0
 * layer_norm_dx: the gradients with respect to x, gamma and beta, from dy, x, gamma and the
 * statistics (mean, rstd). With h = (x - mean) rstd and g = dy gamma: dgamma = sum(dy h),
 * dbeta = sum(dy), dx = rstd (g - mean(g) - h mean(g h)), with means over the last `axes`
 * dimensions. */
#include "ops/norm.h"

static int infer(const tri_node *n, tri_spec *out) {
    if (!norm_need_same(n) || !norm_need_axes(n, 0) ||
        !norm_need_f32(n, 2, 3, norm_tail(n, 0)) || !norm_need_f32(n, 3, 5, norm_head(n, 0)))
        return 0;
    out[0] = *in_spec(n, 0);
    out[1] = out[2] = *in_spec(n, 2);
    return 3;
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    char x[TRI_MAX_RANK + 1];
    int rank = in_shape(n, 0)->rank, head = rank - (int)tri_attr_int(n, "axes");
    op_letters(x, rank, ~0u << head);
    snprintf(text, bytes, "%s,%s,%s,%.*s,%.*s->%s,%s,%s", x, x, x + head, head, x, head, x, x,
             x + head, x + head);
}

static bool split_form(const tri_node *n, tri_tensor **out) {
    tri_shape axes, stats, head = {0};
    const double count = norm_tail_axes(n, 0, &axes, &stats);
    while (head.rank < norm_head(n, 0).rank) head.dim[head.rank] = head.rank, head.rank++;
    tri_tensor *dy = tri_cast(n->in[0], TRI_F32), *x = tri_cast(n->in[1], TRI_F32);
    tri_tensor *mean = norm_wide(n->in[3], stats), *rstd = norm_wide(n->in[4], stats);
    tri_tensor *h = tri_mul(tri_sub(x, mean), rstd), *g = tri_mul(dy, n->in[2]);
    tri_tensor *along = norm_mean(tri_mul(g, h), axes, count);
    tri_tensor *d = tri_sub(tri_sub(g, norm_mean(g, axes, count)), tri_mul(h, along));
    out[0] = norm_back(tri_mul(d, rstd), n->in[0]);
    tri_tensor *dgamma = tri_mul(dy, h);
    out[1] = head.rank ? tri_sum_(dgamma, head, (tri_reduce_options){0}) : dgamma;
    out[2] = head.rank ? tri_sum_(dy, head, (tri_reduce_options){0}) : dy;
    return true;
}

static double flops(const tri_node *n) { return 12.0 * (double)tri_shape_count(in_shape(n, 0)); }

const tri_op op_layer_norm_dx = {
    .name = "layer_norm_dx",
    .inputs = 5,
    .attributes = "axes:int=1",
    .infer = infer,
    .gradient = tri_grad_refused,
    .factor_fn = factors,
    .split_form = split_form,
    .flops = flops,
    .examples = EXAMPLES("f32[4,6], f32[4,6], f32[6]@0.5:2, f32[4], f32[4]@0.5:2",
                         "f32[2,3,19], f32[2,3,19], f32[19]@0.5:2, f32[2,3], f32[2,3]@0.5:2",
                         "f32[2,3,4], f32[2,3,4], f32[3,4]@0.5:2, f32[2], f32[2]@0.5:2 {axes=2}",
                         "f32[5], f32[5], f32[5]@0.5:2, f32[], f32[]@0.5:2",
                         "bf16[3,8], bf16[3,8], f32[8]@0.5:2, f32[3], f32[3]@0.5:2"),
};
