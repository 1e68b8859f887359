/* SPDX-License-Identifier: Apache-2.0
 * avg_pool: the mean of each window of x [n, c, h, w]. Padding counts as zeros unless exclude_pad
 * is set. The part of a ceil-mode window beyond the padding never counts. */
#include "ops/op.h"
#include "ops/window.h"

static int infer(const tri_node *n, tri_spec *out) {
    struct window w;
    if (!op_need_float(n, 0) || !window_of(n, &w)) return 0;
    out[0] = (tri_spec){in_spec(n, 0)->type, window_output(&w)};
    return 1;
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    dx[0] = APPLY_LIKE(n, "avg_pool_dx", INPUTS(dy[0], n->in[0]));
}

const tri_op op_avg_pool = {
    .name = "avg_pool",
    .inputs = 1,
    .attributes = WINDOW_POOL " exclude_pad:int=0",
    .infer = infer,
    .gradient = gradient,
    .factors = "nc~p~q->ncpq",
    .names = "n:batch c:features p:height q:width",
    .reach = window_reach,
    .part = window_part,
    .linear = TRI_LINEAR_JOINTLY,
    .flops = window_flops,
    .precision = TRI_PRECISION_FOLLOW,
    .examples =
        EXAMPLES("f32[2,3,6,4] {size=[2,2], stride=[2,2]}",
                 "f32[2,2,7,6] {size=[3,3], stride=[2,2], pad=[1,1]}",
                 "f32[2,2,7,6] {size=[3,3], stride=[2,2], pad=[1,1], exclude_pad=1}",
                 "f32[1,2,7,6] {size=[3,2], stride=[2,3], pad=[1,1], ceil=1}",
                 "f32[1,2,6,6] {size=[3,3], stride=[2,2], pad=[1,1], ceil=1}",
                 "f32[1,2,6,6] {size=[3,3], stride=[2,2], pad=[1,1], ceil=1, exclude_pad=1}",
                 "f32[2,1,5,6] {size=[2,3], stride=[1,2], pad=[0,1]}",
                 "bf16[1,2,4,4] {size=[2,2], stride=[2,2]}"),
};

tri_tensor *tri_avg_pool_(tri_tensor *x, tri_pool_options o) {
    return window_pool("avg_pool", x, &o, true);
}

tri_tensor *tri_global_avg_pool(tri_tensor *x) {
    if (x && tri_ndim(x) != 4 && !x->node->graph->status)
        tri_op_error(x->node, "tri_global_avg_pool takes [n, c, h, w], 4 dimensions, not %d",
                     tri_ndim(x));
    return tri_mean_(x, TRI_SHAPE(2, 3), (tri_reduce_options){0});
}
