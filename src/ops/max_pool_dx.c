/* SPDX-License-Identifier: Apache-2.0
 * max_pool_dx: the gradient of max_pool: adds dy [n, c, oh, ow] to zeros in the shape of x, at the
 * indices from max_pool, each in its own window. */
#include "ops/op.h"
#include "ops/window.h"

static int infer(const tri_node *n, tri_spec *out) {
    if (!op_need_type(n, 1, TRI_I32) || !op_need_same_shape(n, 1, 0)) return 0;
    return window_infer_like_last(n, out);
}

const tri_op op_max_pool_dx = {
    .name = "max_pool_dx",
    .inputs = 3,
    .attributes = WINDOW_POOL,
    .infer = infer,
    .gradient = tri_grad_refused,
    .factors = "nc~h~w,nc~h~w,nchw->nchw",
    .names = "n:batch c:features h:height w:width",
    .reach = window_reach,
    .part = window_part,
    .flops = window_flops,
    .shape_only = 1u << 2,
    /* Each index lies in all windows, as if max_pool had given it. */
    .examples = EXAMPLES(
        "f32[2,3,3,1], i32[2,3,3,1]@8:16, f32[2,3,6,4] {size=[4,4], stride=[1,1]}",
        "f32[2,2,2,1], i32[2,2,2,1]@2:6, f32[2,2,4,2] {size=[4,4], stride=[2,2], pad=[1,1]}",
        "f32[1,2,3,1], i32[1,2,3,1]@9:12, f32[1,2,6,3] {size=[5,3], stride=[2,1], pad=[1,0], "
        "ceil=1}",
        "bf16[1,2,1,1], i32[1,2,1,1]@0:16, bf16[1,2,4,4] {size=[4,4], stride=[1,1]}"),
};
