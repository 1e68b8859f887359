/* SPDX-License-Identifier: Apache-2.0
 * avg_pool_dx: the gradient of avg_pool from dy [n, c, oh, ow] and the shape of x. */
#include "ops/op.h"
#include "ops/window.h"

static void gradient(const tri_node *n, tri_tensor *const *d, tri_tensor **dx) {
    dx[0] = APPLY_LIKE(n, "avg_pool", INPUTS(d[0]));
}

const tri_op op_avg_pool_dx = {
    .name = "avg_pool_dx",
    .inputs = 2,
    .attributes = WINDOW_POOL " exclude_pad:int=0",
    .infer = window_infer_like_last,
    .gradient = gradient,
    .factors = "nc~h~w,nchw->nchw",
    .names = "n:batch c:features h:height w:width",
    .reach = window_reach,
    .part = window_part,
    .linear = TRI_LINEAR_EACH,
    .flops = window_flops,
    .shape_only = 1u << 1,
    .examples = EXAMPLES(
        "f32[2,3,3,2], f32[2,3,6,4] {size=[2,2], stride=[2,2]}",
        "f32[2,2,4,3], f32[2,2,7,6] {size=[3,3], stride=[2,2], pad=[1,1]}",
        "f32[2,2,4,3], f32[2,2,7,6] {size=[3,3], stride=[2,2], pad=[1,1], exclude_pad=1}",
        "f32[1,2,4,3], f32[1,2,7,6] {size=[3,2], stride=[2,3], pad=[1,1], ceil=1}",
        "bf16[1,2,2,2], bf16[1,2,4,4] {size=[2,2], stride=[2,2]}"),
};
