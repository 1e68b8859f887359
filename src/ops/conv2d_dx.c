/* SPDX-License-Identifier: Apache-2.0
 * conv2d_dx: the gradient of conv2d with respect to x, also known as transposed convolution.
 * Inputs: dy [n, o, oh, ow], the weight, and x for its shape only. */
#include "ops/op.h"
#include "ops/window.h"

static void gradient(const tri_node *n, tri_tensor *const *d, tri_tensor **dx) {
    tri_tensor *dy = n->in[0], *w = n->in[1];
    dx[0] = APPLY_LIKE(n, "conv2d", INPUTS(d[0], w));
    dx[1] = APPLY_LIKE(n, "conv2d_dw", INPUTS(dy, d[0], w));
}

const tri_op op_conv2d_dx = {
    .name = "conv2d_dx",
    .inputs = 3,
    .attributes = WINDOW_CONV,
    .infer = window_infer_like_last,
    .gradient = gradient,
    .factors = "n(go)~h~w,(go)iYX,n(gi)hw->n(gi)hw",
    .names = "n:batch g:groups i:in o:out h:height w:width",
    .follows = "groups=size:g",
    .reach = window_reach,
    .part = window_part,
    .linear = TRI_LINEAR_EACH,
    .flops = window_flops,
    .shape_only = 1u << 2,
    .precision = TRI_PRECISION_LOW,
    .examples = EXAMPLES(
        "f32[2,4,3,4], f32[4,3,3,3], f32[2,3,5,6]",
        "f32[2,4,4,4], f32[4,2,3,3], f32[2,2,8,7] {stride=[2,2], pad=[1,1]}",
        "f32[1,2,9,8], f32[2,2,3,3], f32[1,2,9,8] {pad=[2,2], dilation=[2,2]}",
        "f32[2,3,3,3], f32[3,2,1,5], f32[2,2,6,9] {stride=[2,3], pad=[0,2]}",
        "f32[2,6,5,5], f32[6,2,3,3], f32[2,4,5,5] {pad=[1,1], groups=2}",
        "f32[2,4,3,3], f32[4,1,3,3], f32[2,4,6,5] {stride=[2,2], pad=[1,1], groups=4}",
        "f32[2,2,3,3], f32[2,4,1,1], f32[2,4,5,5] {stride=[2,2]}",
        "bf16[2,2,2,2], bf16[2,2,3,3], bf16[2,2,4,4]"),
};
