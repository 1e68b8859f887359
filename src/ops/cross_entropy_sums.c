/* SPDX-License-Identifier: Apache-2.0
 * cross_entropy_sums: what cross_entropy sums over the classes, given the largest logit [...]:
 * sum(exp(logit - largest)), the label's logit and, with smoothing, the sum of the logits; zeros
 * for ignored labels. The logits may be a part of the classes: the results of the parts add up. */
#include "ops/cross_entropy.h"

static int infer(const tri_node *n, tri_spec *out) {
    if (!cross_entropy_check(n, 0) || !op_need_type(n, 2, TRI_F32) ||
        !op_need_same_shape(n, 2, 1))
        return 0;
    int outputs = tri_attr_float(n, "smoothing") > 0 ? 3 : 2;
    for (int i = 0; i < outputs; i++) out[i] = *in_spec(n, 2);
    return outputs;
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    snprintf(text, bytes, "...k,...,...->...,...%s", n->n_out > 2 ? ",..." : "");
}

const tri_op op_cross_entropy_sums = {
    .name = "cross_entropy_sums",
    .inputs = 3,
    .attributes = CROSS_ENTROPY CROSS_ENTROPY_PART,
    .infer = infer,
    .gradient = tri_grad_refused,
    .factor_fn = factors,
    .names = "k:vocab",
    .follows = CROSS_ENTROPY_FOLLOWS,
    .flops = cross_entropy_flops,
    .examples = EXAMPLES("f32[4,5]@-3:3, i64[4]@0:5, f32[4]@2:3",
                         "f32[2,3,37]@-9:9, i32[2,3]@0:37, f32[2,3]@8:9 {smoothing=0.1}",
                         "f32[8,3]@-3:3, i64[8]@0:3, f32[8]@2:3 {ignore=1, ignore_index=1}",
                         "f32[8,3]@-3:3, i64[8]@0:9, f32[8]@2:3 {smoothing=0.2, ignore=1, "
                         "ignore_index=4, first=3, all=9}",
                         "f32[3], i64[]@0:3, f32[]@1:2", "bf16[4,5], i64[4]@0:5, f32[4]@1:2"),
};
