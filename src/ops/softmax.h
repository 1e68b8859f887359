/* SPDX-License-Identifier: Apache-2.0
 * Declarations for the rows of softmax and log_softmax, which differ only in the gradient. */
#ifndef OPS_SOFTMAX_H
#define OPS_SOFTMAX_H

#include "ops/op.h"

int softmax_infer(const tri_node *n, tri_spec *out);
void softmax_factors(const tri_node *n, char *text, size_t bytes); /* the axis is not split */
/* exp(x - largest) along the axis, and its sum, in f32; *z: x - largest. For split forms. */
tri_tensor *softmax_sums(const tri_node *n, tri_tensor **z, tri_tensor **exps);
double softmax_flops(const tri_node *n);

#define SOFTMAX_ROW \
    .inputs = 1, .attributes = "axis:int", .infer = softmax_infer, .factor_fn = softmax_factors, \
    .flops = softmax_flops, .precision = TRI_PRECISION_WIDE, \
    .examples = EXAMPLES("f32[3,5]@-3:3 {axis=1}", "f32[2,4,3]@-3:3 {axis=1}", \
                         "f32[2,3,4]@-3:3 {axis=-3}", "f32[7] {axis=0}", "f32[2,1] {axis=1}", \
                         "f32[2,37]@-90:90 {axis=1}", "bf16[2,5] {axis=1}")

#endif
