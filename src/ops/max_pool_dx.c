/* SPDX-License-Identifier: Apache-2.0
 * max_pool_dx: the gradient of max_pool: adds dy [n, c, oh, ow] to zeros in the shape of x, at the
 * indices from max_pool. */
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
    .factors = "ncPQ,ncPQ,ncHW->ncHW",
    .names = "n:batch c:features h:height w:width",
    .flops = window_flops,
    .shape_only = 1u << 2,
    .examples = EXAMPLES(
        "f32[2,3,3,2], i32[2,3,3,2]@0:24, f32[2,3,6,4] {size=[2,2], stride=[2,2]}",
        "f32[2,2,4,3], i32[2,2,4,3]@0:42, f32[2,2,7,6] {size=[3,3], stride=[2,2], pad=[1,1]}",
        "f32[1,2,4,4], i32[1,2,4,4]@0:42, f32[1,2,7,6] {size=[3,2], stride=[2,2], pad=[1,1], "
        "ceil=1}",
        "bf16[1,2,2,2], i32[1,2,2,2]@0:16, bf16[1,2,4,4] {size=[2,2], stride=[2,2]}"),
};
