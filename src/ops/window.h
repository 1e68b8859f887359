/* SPDX-License-Identifier: Apache-2.0
 * The arithmetic of sliding windows, shared by the rows of convolution and pooling and by the
 * backends' kernels: sizes, strides and paddings of a node, whichever of its inputs carry them. */
#ifndef OPS_WINDOW_H
#define OPS_WINDOW_H

#include "graph/graph.h"

/* Input x [n, c, h, w]; output [n, o, oh, ow]; the window kh * kw. For convolutions the weight is
 * [o, c / groups, kh, kw]; for pooling o = c. Rows of the input that output row r sees:
 * r * sh - ph + k * dh for k < kh, where they lie in [0, h). */
struct window {
    int64_t n, c, h, w;
    int64_t o, oh, ow;
    int64_t kh, kw;
    int64_t sh, sw, ph, pw, dh, dw;
    int64_t groups;
    bool exclude_pad; /* average: padding does not count */
};

/* For conv2d, max_pool, avg_pool and their *_dx, *_dw. False after telling the user what does not
 * fit; never for a node that stands in a graph. */
bool window_of(const tri_node *n, struct window *out);
tri_shape window_output(const struct window *w); /* [n, o, oh, ow] */

/* The part of one axis that output place `at` sees, with no dilation: [begin, end) within the
 * input; `padded` is its length with the padding, which ends `pad` behind the input. */
struct window_span {
    int64_t begin, end, padded;
};
struct window_span window_span(int64_t at, int64_t size, int64_t stride, int64_t pad,
                               int64_t length);
/* What the average at output place (r, q) divides by. */
int64_t window_divisor(const struct window *w, int64_t r, int64_t q);

/* ---- for rows ---- */

#define WINDOW_CONV "stride:ints=1,1 pad:ints=0,0 dilation:ints=1,1 groups:int=1 winograd:int=0"
#define WINDOW_POOL "size:ints stride:ints pad:ints=0,0 ceil:int=0"

/* The derivatives by an input: it has the shape of the last input and the type of input 0. */
int window_infer_like_last(const tri_node *n, tri_spec *out);
/* Arithmetic of a node, counted alike for an operator and its derivatives. */
double window_flops(const tri_node *n);
/* [vertical, horizontal] from an option for both and one for the width: 0 means the same. */
tri_shape window_pair(int64_t both, int64_t width);
tri_shape window_pad(int64_t both, int64_t width); /* here -1 means none */
/* The builder of pooling; `averages`: the row has exclude_pad. */
tri_tensor *window_pool(const char *op, tri_tensor *x, const tri_pool_options *o, bool averages);

#endif
