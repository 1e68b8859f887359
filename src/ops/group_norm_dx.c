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
    char x[TRI_MAX_RANK + 1];
    op_letters(x, in_shape(n, 0)->rank, ~1u);
    snprintf(text, bytes, "%s,%s,B,aZ,aZ->%s,B,B", x, x, x);
}

static double flops(const tri_node *n) { return 12.0 * (double)tri_shape_count(in_shape(n, 0)); }

const tri_op op_group_norm_dx = {
    .name = "group_norm_dx",
    .inputs = 5,
    .attributes = "groups:int",
    .infer = infer,
    .gradient = tri_grad_refused,
    .factor_fn = factors,
    .names = "a:batch b:features c:height d:width",
    .flops = flops,
    .examples = EXAMPLES(
        "f32[2,6,2,3], f32[2,6,2,3], f32[6]@0.5:2, f32[2,3], f32[2,3]@0.5:2 {groups=3}",
        "f32[2,4,3], f32[2,4,3], f32[4]@0.5:2, f32[2,1], f32[2,1]@0.5:2 {groups=1}",
        "f32[3,6], f32[3,6], f32[6]@0.5:2, f32[3,2], f32[3,2]@0.5:2 {groups=2}",
        "bf16[2,4,2,2], bf16[2,4,2,2], f32[4]@0.5:2, f32[2,2], f32[2,2]@0.5:2 {groups=2}"),
};
