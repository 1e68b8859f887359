/* SPDX-License-Identifier: Apache-2.0
 * conv2d_dw: the gradient of conv2d with respect to the weight, summed over the samples. Inputs:
 * dy [n, o, oh, ow], x, and the weight for its shape only. */
#include "ops/op.h"
#include "ops/window.h"

static void gradient(const tri_node *n, tri_tensor *const *d, tri_tensor **dx) {
    tri_tensor *dy = n->in[0], *x = n->in[1];
    dx[0] = APPLY_LIKE(n, "conv2d", INPUTS(x, d[0]));
    dx[1] = APPLY_LIKE(n, "conv2d_dx", INPUTS(dy, d[0], x));
}

const tri_op op_conv2d_dw = {
    .name = "conv2d_dw",
    .inputs = 3,
    .attributes = WINDOW_CONV,
    .infer = window_infer_like_last,
    .gradient = gradient,
    .factors = "n(go)pq,n(gi)~p~q,(go)iYX->(go)iYX",
    .names = "n:batch g:groups i:in o:out p:height q:width",
    .follows = "groups=size:g",
    .reach = window_reach,
    .part = window_part,
    .linear = TRI_LINEAR_EACH,
    .flops = window_flops,
    .shape_only = 1u << 2,
    .precision = TRI_PRECISION_LOW,
    .examples = EXAMPLES(
        "f32[2,4,3,4], f32[2,3,5,6], f32[4,3,3,3]",
        "f32[2,4,4,4], f32[2,2,8,7], f32[4,2,3,3] {stride=[2,2], pad=[1,1]}",
        "f32[1,2,9,8], f32[1,2,9,8], f32[2,2,3,3] {pad=[2,2], dilation=[2,2]}",
        "f32[2,3,3,3], f32[2,2,6,9], f32[3,2,1,5] {stride=[2,3], pad=[0,2]}",
        "f32[2,6,5,5], f32[2,4,5,5], f32[6,2,3,3] {pad=[1,1], groups=2}",
        "f32[2,4,3,3], f32[2,4,6,5], f32[4,1,3,3] {stride=[2,2], pad=[1,1], groups=4}",
        "f32[2,2,3,3], f32[2,4,5,5], f32[2,4,1,1] {stride=[2,2]}",
        "bf16[2,2,2,2], bf16[2,2,4,4], bf16[2,2,3,3]"),
};
