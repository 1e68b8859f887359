/* SPDX-License-Identifier: Apache-2.0
 * cross_entropy_dx: dy [...] times (softmax(logits) - target), with the target of cross_entropy; 0
 * for ignored labels. softmax(logits) is exp(logits - largest) / sum, where largest and sum are
 * inputs 3 and 4, from cross_entropy. */
#include "ops/cross_entropy.h"

static int infer(const tri_node *n, tri_spec *out) {
    if (!cross_entropy_check(n, 1)) return 0;
    for (int i = 0; i < 5; i += i ? 1 : 3)
        if (!op_need_type(n, i, TRI_F32) || !op_need_same_shape(n, i, 2)) return 0;
    out[0] = *in_spec(n, 1);
    return 1;
}

const tri_op op_cross_entropy_dx = {
    .name = "cross_entropy_dx",
    .inputs = 5,
    .attributes = CROSS_ENTROPY CROSS_ENTROPY_PART,
    .infer = infer,
    .gradient = tri_grad_refused,
    .factors = "...,...k,...,...,...->...k",
    .names = "k:vocab",
    .follows = CROSS_ENTROPY_FOLLOWS,
    .flops = cross_entropy_flops,
    .examples = EXAMPLES("f32[4], f32[4,5]@-3:3, i64[4]@0:5, f32[4], f32[4]@1:9",
                         "f32[2,3], f32[2,3,7]@-3:3, i32[2,3]@0:7, f32[2,3], f32[2,3]@1:9",
                         "f32[4], f32[4,5]@-3:3, i64[4]@0:5, f32[4], f32[4]@1:9 {smoothing=0.1}",
                         "f32[8], f32[8,3]@-3:3, i64[8]@0:3, f32[8], f32[8]@1:9 {ignore=1, "
                         "ignore_index=1}",
                         "f32[8], f32[8,3]@-3:3, i32[8]@0:3, f32[8], f32[8]@1:9 {smoothing=0.3, "
                         "ignore=1, ignore_index=2}",
                         "f32[], f32[3], i64[]@0:3, f32[], f32[]@1:9",
                         "f32[3], f32[3,37]@-90:90, i64[3]@0:37, f32[3]@80:90, f32[3]@1:9",
                         "f32[8], f32[8,3]@-3:3, i64[8]@0:9, f32[8], f32[8]@1:9 {smoothing=0.1, "
                         "ignore=1, ignore_index=4, first=3, all=9}",
                         "f32[4], bf16[4,5], i64[4]@0:5, f32[4], f32[4]@1:9"),
};
