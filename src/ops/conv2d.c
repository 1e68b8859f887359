/* SPDX-License-Identifier: Apache-2.0
 * conv2d: x [n, i, h, w], weight [o, i / groups, kh, kw], optional bias [o] to [n, o, oh, ow].
 * Convolution and its two gradients are bilinear: the gradient of each consists of the others. */
#include "ops/op.h"
#include "ops/window.h"

static int infer(const tri_node *n, tri_spec *out) {
    struct window w;
    tri_type type = in_spec(n, 0)->type;
    if (!op_need_float(n, 0) || !op_need_type(n, 1, type) || !window_of(n, &w)) return 0;
    if (n->n_in > 2) {
        if (!op_need_type(n, 2, type) || !op_need_rank(n, 2, 1)) return 0;
        if (in_shape(n, 2)->dim[0] != w.o)
            return tri_op_error(n, "the bias must have %lld elements, one for each output channel",
                                (long long)w.o);
    }
    out[0] = (tri_spec){type, window_output(&w)};
    return 1;
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *x = n->in[0], *w = n->in[1];
    dx[0] = APPLY_LIKE(n, "conv2d_dx", INPUTS(dy[0], w, x));
    dx[1] = APPLY_LIKE(n, "conv2d_dw", INPUTS(dy[0], x, w));
    if (n->n_in > 2) dx[2] = tri_sum_(dy[0], TRI_SHAPE(0, 2, 3), (tri_reduce_options){0});
}

/* With a bias, input channels are not split: each part would add the bias. */
static void factors(const tri_node *n, char *text, size_t bytes) {
    snprintf(text, bytes, n->n_in > 2 ? "n(gI)~p~q,(go)IYX,(go)->n(go)pq"
                                      : "n(gi)~p~q,(go)iYX->n(go)pq");
}

/* Without the bias, which is added once. */
static bool split_form(const tri_node *n, tri_tensor **out) {
    if (n->n_in < 3) return false;
    tri_tensor *y = APPLY_LIKE(n, "conv2d", INPUTS(n->in[0], n->in[1]));
    out[0] = tri_add(y, tri_reshape(n->in[2], TRI_SHAPE(in_shape(n, 2)->dim[0], 1, 1)));
    return true;
}

const tri_op op_conv2d = {
    .name = "conv2d",
    .inputs = 2,
    .inputs_max = 3,
    .attributes = WINDOW_CONV,
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .names = "n:batch g:groups i:in o:out p:height q:width",
    .follows = "groups=size:g",
    .reach = window_reach,
    .part = window_part,
    .split_form = split_form,
    .flops = window_flops,
    .precision = TRI_PRECISION_LOW,
    .examples = EXAMPLES(
        "f32[2,3,5,6], f32[4,3,3,3]", "f32[2,3,5,6], f32[4,3,3,3], f32[4] {pad=[1,1]}",
        "f32[2,2,8,7], f32[4,2,3,3] {stride=[2,2], pad=[1,1]}",
        "f32[1,2,9,8], f32[2,2,3,3] {pad=[2,2], dilation=[2,2]}",
        "f32[2,2,6,9], f32[3,2,1,5], f32[3] {stride=[2,3], pad=[0,2]}",
        "f32[1,2,7,7], f32[2,2,3,2] {stride=[2,1], pad=[2,1], dilation=[1,3]}",
        "f32[2,4,5,5], f32[6,2,3,3], f32[6] {pad=[1,1], groups=2}",
        "f32[2,4,6,5], f32[4,1,3,3] {stride=[2,2], pad=[1,1], groups=4}",
        "f32[2,2,5,5], f32[4,1,3,3] {groups=2}", "f32[2,4,3,3], f32[2,4,1,1]",
        "f32[2,4,5,5], f32[2,4,1,1] {stride=[2,2]}", "f32[1,1,1,1], f32[1,1,1,1]",
        "f32[2,17,2,2], f32[19,17,1,1], f32[19]", "f32[1,9,3,3], f32[10,9,2,2]",
        "bf16[2,2,4,4], bf16[2,2,3,3]"),
};

static int64_t or_one(int64_t v) { return v ? v : 1; }

tri_tensor *tri_conv2d_(tri_tensor *x, tri_tensor *weight, tri_conv_options o) {
    tri_tensor *in[] = {x, weight, o.bias};
    return graph_apply(tri_graph_of(x), "conv2d", o.bias ? 3 : 2, in, 4,
                       (const tri_attr[]){AL("stride", window_pair(or_one(o.stride), o.stride_w)),
                                          AL("pad", window_pad(o.pad, o.pad_w)),
                                          AL("dilation",
                                             window_pair(or_one(o.dilation), o.dilation_w)),
                                          AI("groups", or_one(o.groups))});
}
