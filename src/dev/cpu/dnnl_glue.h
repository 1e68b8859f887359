/* SPDX-License-Identifier: Apache-2.0
 * oneDNN behind a narrow door: matmul and convolution as jobs that are made once and run for every
 * lane, on one thread, whatever OpenMP was told. What a job needs besides its tensors (oneDNN's
 * scratchpad, the formats it prefers) lies in the call's scratch. One thread at a time may run a
 * job. */
#ifndef DEV_CPU_DNNL_GLUE_H
#define DEV_CPU_DNNL_GLUE_H

#include "dev/dev.h"
#include "graph/pack.h"
#include "ops/window.h"

tri_status dnnl_glue_open(void);
void dnnl_glue_describe(char *text, size_t bytes);
bool dnnl_glue_takes_bf16(void); /* oneDNN computes with it on this machine, however slowly */

struct dnnl_job;

/* A tensor as a primitive sees it; strides in elements. oneDNN wants arrays of this length. */
struct dnnl_view {
    int rank;
    int64_t dim[12], stride[12];
};

/* How the library would have the right factor of a product lie. */
struct dnnl_order;

/* out [..., m, n] = in[0] [..., m, k] times in[1] [..., k, n], of one type; leading dimensions are
 * equal or 1. order (nullable): in[1] has it; b tells its sizes. */
tri_status dnnl_glue_matmul(const tri_node *n, const struct dnnl_view *a, const struct dnnl_view *b,
                            const struct dnnl_view *y, const struct dnnl_order *order,
                            struct dnnl_job **job);
/* The order for b in products y = a b, with `rows` rows in all of them; null where it does not pay
 * to bring b into one. To be freed with free(). */
tri_status dnnl_glue_order(const tri_node *n, const struct dnnl_view *a, const struct dnnl_view *b,
                           const struct dnnl_view *y, int64_t rows, struct dnnl_order **order);
size_t dnnl_glue_order_bytes(const struct dnnl_order *o);
/* As many columns lie together; where those from `column` on begin, a multiple of it. */
int64_t dnnl_glue_order_columns(const struct dnnl_order *o);
size_t dnnl_glue_order_at(const struct dnnl_order *o, int64_t column);
/* Brings `columns` columns of b, which are in[0], into the order; first: where they stand in b. */
tri_status dnnl_glue_pack(const tri_node *n, const struct dnnl_order *o, const struct dnnl_view *b,
                          int64_t first, int64_t columns, struct dnnl_job **job);

enum dnnl_convolution { CONVOLUTION, CONVOLUTION_DX, CONVOLUTION_DW };
/* The inputs stand as in the operators conv2d (with a bias if there are three), conv2d_dx,
 * conv2d_dw; w is the node's, but for w->n samples. */
tri_status dnnl_glue_convolution(const tri_node *n, enum dnnl_convolution kind,
                                 const struct window *w, struct dnnl_job **job);
/* conv2d_dw whose output is in f32 and, where it can be told, in the order that the library likes;
 * outermost are the output channels. */
tri_status dnnl_glue_partial_dw(const tri_node *n, const struct window *w, struct pack *order,
                                struct dnnl_job **job);
/* How the library would have a convolution's tensors lie. */
void dnnl_glue_formats(const tri_node *n, enum dnnl_convolution kind, const struct window *w,
                       struct format *in, struct format *out);

size_t dnnl_glue_scratch(const struct dnnl_job *job);
/* With the tensors and the scratch of the call; its state is not used. */
void dnnl_glue_run(const struct dnnl_job *job, const tri_call *c);
void dnnl_glue_release(struct dnnl_job *job);

#endif
