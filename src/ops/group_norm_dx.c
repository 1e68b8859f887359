/* SPDX-License-Identifier: Apache-2.0
 * group_norm_dx: the gradients with respect to x, gamma [c] and beta [c], from dy, x, gamma and the
 * statistics [n, groups] (mean, rstd). The formulas are those of layer_norm_dx, with means over a
 * group of a sample's channels. */
#include "ops/norm.h"

static int infer(const tri_node *n, tri_spec *out) {
    tri_shape stats;
    if (!norm_need_same(n) || !norm_need_channels(n) || !norm_need_groups(n, 0, &stats) ||
        !norm_need_f32(n, 2, 3, TRI_SHAPE(in_shape(n, 0)->dim[1])) ||
        !norm_need_f32(n, 3, 5, stats))
        return 0;
    out[0] = *in_spec(n, 0);
    out[1] = out[2] = *in_spec(n, 2);
    return 3;
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    char x[TRI_MAX_RANK + 4];
    norm_run_letters(n, x, sizeof x);
    snprintf(text, bytes, "%s,%s,(zB),az,az->%s,(zB),(zB)", x, x, x);
}

static bool split_form(const tri_node *n, tri_tensor **out) {
    tri_shape whole, axes, stats, channel;
    const double count = norm_runs(n, 0, &whole, &axes, &stats, &channel);
    if (count == 0) return false;
    tri_tensor *dy = norm_wide(n->in[0], whole), *x = norm_wide(n->in[1], whole);
    tri_tensor *mean = norm_wide(n->in[3], stats), *rstd = norm_wide(n->in[4], stats);
    tri_tensor *h = tri_mul(tri_sub(x, mean), rstd), *all[] = {tri_mul(dy, h), dy};
    tri_tensor *g = tri_mul(dy, tri_reshape(n->in[2], channel));
    tri_tensor *along = norm_mean(tri_mul(g, h), axes, count);
    tri_tensor *even = norm_mean(g, axes, count);
    out[0] = norm_back(tri_mul(tri_sub(tri_sub(g, even), tri_mul(h, along)), rstd), n->in[0]);
    axes.dim[0] = 0; /* all but groups and their channels */
    for (int i = 0; i < 2; i++)
        out[1 + i] = tri_reshape(tri_sum_(all[i], axes, (tri_reduce_options){0}),
                                 *out_shape(n, 1 + i));
    return true;
}

static double flops(const tri_node *n) { return 12.0 * (double)tri_shape_count(in_shape(n, 0)); }

const tri_op op_group_norm_dx = {
    .name = "group_norm_dx",
    .inputs = 5,
    .attributes = "groups:int",
    .infer = infer,
    .gradient = tri_grad_refused,
    .factor_fn = factors,
    .names = GROUP_NORM_NAMES,
    .follows = "groups=size:z",
    .split_form = split_form,
    .flops = flops,
    .examples = EXAMPLES(
        "f32[2,6,2,3], f32[2,6,2,3], f32[6]@0.5:2, f32[2,3], f32[2,3]@0.5:2 {groups=3}",
        "f32[2,4,3], f32[2,4,3], f32[4]@0.5:2, f32[2,1], f32[2,1]@0.5:2 {groups=1}",
        "f32[3,6], f32[3,6], f32[6]@0.5:2, f32[3,2], f32[3,2]@0.5:2 {groups=2}",
        "bf16[2,4,2,2], bf16[2,4,2,2], f32[4]@0.5:2, f32[2,2], f32[2,2]@0.5:2 {groups=2}"),
};
