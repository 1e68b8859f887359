/* SPDX-License-Identifier: Apache-2.0
 * max_pool: x [n, c, h, w] to y [n, c, oh, ow] and, for the gradient, the index of each maximum in
 * its input plane (row * w + column, i32; the first of equals; for a part of an image, in the
 * whole plane). Padding is never the maximum. */
#include "ops/op.h"
#include "ops/window.h"

static int infer(const tri_node *n, tri_spec *out) {
    struct window w;
    if (!op_need_float(n, 0) || !window_of(n, &w)) return 0;
    if (w.all_h * w.all_w > INT32_MAX) return tri_op_error(n, "an image has more than 2^31 places");
    out[0] = (tri_spec){in_spec(n, 0)->type, window_output(&w)};
    out[1] = (tri_spec){TRI_I32, out[0].shape};
    return 2;
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    dx[0] = APPLY_LIKE(n, "max_pool_dx", INPUTS(dy[0], &n->out[1], n->in[0]));
}

const tri_op op_max_pool = {
    .name = "max_pool",
    .inputs = 1,
    .attributes = WINDOW_POOL,
    .infer = infer,
    .gradient = gradient,
    .factors = "nc~p~q->ncpq,ncpq",
    .names = "n:batch c:features p:height q:width",
    .reach = window_reach,
    .part = window_part,
    .flops = window_flops,
    .precision = TRI_PRECISION_FOLLOW,
    /* The wide range keeps values so far apart that finite differences change no maximum. */
    .examples = EXAMPLES("f32[2,3,6,4]@-50:50 {size=[2,2], stride=[2,2]}",
                         "f32[2,2,7,6]@-50:50 {size=[3,3], stride=[2,2], pad=[1,1]}",
                         "f32[1,2,7,6]@-50:50 {size=[3,2], stride=[2,2], pad=[1,1], ceil=1}",
                         "f32[2,1,5,6]@-50:50 {size=[2,3], stride=[1,2], pad=[0,1]}",
                         "f32[2,3,4,4]@-50:50 {size=[4,4], stride=[4,4]}",
                         "f32[1,2,5,5]@-50:50 {size=[1,1], stride=[2,2]}",
                         "bf16[1,2,4,4]@-50:50 {size=[2,2], stride=[2,2]}"),
};

tri_tensor *tri_max_pool_(tri_tensor *x, tri_pool_options o) {
    return window_pool("max_pool", x, &o, false);
}
