/* SPDX-License-Identifier: Apache-2.0
 * Sliding windows: sizes, strides and padding of a convolution or pooling node, for its row and for
 * the backends' kernels. Which inputs have the shapes depends on the operator. */
#ifndef OPS_WINDOW_H
#define OPS_WINDOW_H

#include "graph/graph.h"

/* Input x [n, c, h, w], output [n, o, oh, ow], window kh * kw. For convolution the weight is
 * [o, c / groups, kh, kw]; for pooling o = c. Output row r reads the input rows
 * r * sh - ph + k * dh, k < kh, that are in [0, h). Of pooling a mesh may split the places of x:
 * then x is the part of a whole, of all_h * all_w places, that begins at place (y0, x0). */
struct window {
    int64_t n, c, h, w;
    int64_t o, oh, ow;
    int64_t kh, kw;
    int64_t sh, sw, ph, pw, dh, dw;
    int64_t ph_end, pw_end; /* ph and pw: padding before the image; these: after it */
    int64_t y0, x0, all_h, all_w;
    int64_t groups;
    bool exclude_pad; /* avg_pool: do not count padding */
};

/* For conv2d, max_pool, avg_pool and their *_dx, *_dw. Reports an error and returns false if shapes
 * or attributes do not fit; this cannot happen for a node that is already in a graph. */
bool window_of(const tri_node *n, struct window *out);
tri_shape window_output(const struct window *w); /* [n, o, oh, ow] */

/* The rows, and the columns, that an output position reads, without dilation. */
struct window_span {
    int64_t begin, end;
};
struct window_span window_rows(const struct window *w, int64_t r);
struct window_span window_columns(const struct window *w, int64_t q);
/* The divisor of the average at output position (r, q). */
int64_t window_divisor(const struct window *w, int64_t r, int64_t q);

/* ---- for rows ---- */

/* way: see graph/target.h. */
#define WINDOW_CONV "stride:ints=1,1 pad:ints=0,0 dilation:ints=1,1 groups:int=1 way:int=0"
#define WINDOW_POOL \
    "size:ints stride:ints pad:ints=0,0 ceil:int=0 origin:ints= whole:ints="

/* For gradients: the result has the shape of the last input and the type of input 0. */
int window_infer_like_last(const tri_node *n, tri_spec *out);
/* tri_op.reach and tri_op.part: of the rows whose windows lie in x, factors p and q; and of the
 * derivatives by x, whose windows lie in dy, factors h and w. */
void window_reach(const tri_node *n, char factor, tri_reach *out);
void window_part(const tri_node *n, char factor, const int64_t part[2], const int64_t seen[2],
                 tri_attr *attr);
/* Operations of a node: of the algorithm that it uses, without the transforms of Winograd's. */
double window_flops(const tri_node *n);
/* [height, width] from an option for both and one for the width, where 0 means the same. */
tri_shape window_pair(int64_t both, int64_t width);
tri_shape window_pad(int64_t both, int64_t width); /* width -1: no padding */
/* Builder for pooling; `averages`: the row has the attribute exclude_pad. */
tri_tensor *window_pool(const char *op, tri_tensor *x, const tri_pool_options *o, bool averages);

#endif
