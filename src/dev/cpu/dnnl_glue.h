/* SPDX-License-Identifier: Apache-2.0
 * oneDNN behind a narrow door: matmul and convolution as jobs that are made once and run for every
 * lane, on one thread, whatever OpenMP was told. A job owns its scratchpad and the buffers of the
 * layouts that oneDNN prefers; tensors outside are plain. One thread at a time may run a job. */
#ifndef DEV_CPU_DNNL_GLUE_H
#define DEV_CPU_DNNL_GLUE_H

#include "dev/dev.h"
#include "ops/window.h"

tri_status dnnl_glue_open(void);
void dnnl_glue_describe(char *text, size_t bytes);
/* Whether oneDNN computes with bf16 on this machine. */
bool dnnl_glue_has_bf16(void);

/* A tensor as a primitive sees it; strides in elements. oneDNN wants arrays of this length. */
struct dnnl_view {
    int rank;
    int64_t dim[12], stride[12];
};

/* out [..., m, n] = in[0] [..., m, k] times in[1] [..., k, n], of one type; leading dimensions are
 * equal or 1. The job is the kernel's state. */
tri_status dnnl_glue_matmul(const tri_node *n, const struct dnnl_view *a, const struct dnnl_view *b,
                            const struct dnnl_view *y, void **job);

enum dnnl_convolution { CONVOLUTION, CONVOLUTION_DX, CONVOLUTION_DW };
/* The inputs stand as in the operators conv2d (with a bias if there are three), conv2d_dx,
 * conv2d_dw. */
tri_status dnnl_glue_convolution(const tri_node *n, enum dnnl_convolution kind,
                                 const struct window *w, void **job);

void dnnl_glue_run(const tri_call *c); /* of the job in c->state */
void dnnl_glue_release(void *job);

#endif
