/* SPDX-License-Identifier: Apache-2.0
 * Convolutions as jobs of oneDNN. */
#include "dev/cpu/dnnl_job.h"

/* What all three kinds have in common. */
struct convolution {
    dnnl_dims_t stride, dilation, pad;
    dnnl_memory_desc_t x, w, bias, y;             /* in the layouts that oneDNN likes */
    dnnl_memory_desc_t plain_x, plain_w, plain_y; /* as the caller has them */
};

static dnnl_status_t both_mds(const dnnl_dims_t dims, int rank, dnnl_data_type_t type,
                              dnnl_format_tag_t tag, dnnl_memory_desc_t *any,
                              dnnl_memory_desc_t *plain) {
    dnnl_status_t s = dnnl_memory_desc_init_by_tag(any, rank, dims, type, dnnl_format_tag_any);
    return s ? s : dnnl_memory_desc_init_by_tag(plain, rank, dims, type, tag);
}

static dnnl_status_t describe_convolution(const struct window *w, dnnl_data_type_t type,
                                          struct convolution *c) {
    bool grouped = w->groups > 1;
    const dnnl_dims_t x = {w->n, w->c, w->h, w->w}, y = {w->n, w->o, w->oh, w->ow}, bias = {w->o};
    /* [groups, out, in, h, w] lies as [out, in, h, w] does. */
    const dnnl_dims_t all = {w->o, w->c, w->kh, w->kw};
    const dnnl_dims_t parts = {w->groups, w->o / w->groups, w->c / w->groups, w->kh, w->kw};
    *c = (struct convolution){.stride = {w->sh, w->sw}, .dilation = {w->dh - 1, w->dw - 1},
                              .pad = {w->ph, w->pw}};
    dnnl_status_t s = both_mds(x, 4, type, dnnl_nchw, &c->x, &c->plain_x);
    if (!s) s = both_mds(y, 4, type, dnnl_nchw, &c->y, &c->plain_y);
    if (!s && grouped) s = both_mds(parts, 5, type, dnnl_goihw, &c->w, &c->plain_w);
    if (!s && !grouped) s = both_mds(all, 4, type, dnnl_oihw, &c->w, &c->plain_w);
    if (!s) s = dnnl_memory_desc_init_by_tag(&c->bias, 1, bias, type, dnnl_x);
    return s;
}

static dnnl_status_t forward_desc(const struct convolution *c, bool bias,
                                  dnnl_convolution_desc_t *d) {
    return dnnl_dilated_convolution_forward_desc_init(
        d, dnnl_forward_training, dnnl_convolution_direct, &c->x, &c->w, bias ? &c->bias : NULL,
        &c->y, c->stride, c->dilation, c->pad, c->pad);
}

static tri_status forward(const tri_node *n, const struct convolution *c, struct dnnl_job **job) {
    bool bias = n->n_in > 2;
    dnnl_convolution_desc_t d;
    dnnl_status_t s = forward_desc(c, bias, &d);
    const struct job_tensor t[] = {{DNNL_ARG_SRC, 0, c->plain_x},
                                   {DNNL_ARG_WEIGHTS, 1, c->plain_w},
                                   {DNNL_ARG_DST, -1, c->plain_y},
                                   {DNNL_ARG_BIAS, 2, c->bias}};
    return s ? job_failed(n, "describe it", s) : job_make(n, &d, NULL, bias ? 4 : 3, t, job);
}

static tri_status backward(const tri_node *n, const struct convolution *c, bool dx,
                           struct dnnl_job **job) {
    dnnl_convolution_desc_t d, f;
    dnnl_primitive_desc_t hint = NULL;
    dnnl_status_t s =
        dx ? dnnl_dilated_convolution_backward_data_desc_init(
                 &d, dnnl_convolution_direct, &c->x, &c->w, &c->y, c->stride, c->dilation, c->pad,
                 c->pad)
           : dnnl_dilated_convolution_backward_weights_desc_init(
                 &d, dnnl_convolution_direct, &c->x, &c->w, NULL, &c->y, c->stride, c->dilation,
                 c->pad, c->pad);
    const struct job_tensor data[] = {{DNNL_ARG_DIFF_DST, 0, c->plain_y},
                                      {DNNL_ARG_WEIGHTS, 1, c->plain_w},
                                      {DNNL_ARG_DIFF_SRC, -1, c->plain_x}};
    const struct job_tensor weights[] = {{DNNL_ARG_DIFF_DST, 0, c->plain_y},
                                         {DNNL_ARG_SRC, 1, c->plain_x},
                                         {DNNL_ARG_DIFF_WEIGHTS, -1, c->plain_w}};
    if (!s) s = forward_desc(c, false, &f);
    if (!s) s = dnnl_primitive_desc_create(&hint, &f, job_attributes(), job_engine(), NULL);
    if (s) return job_failed(n, "describe it", s);
    tri_status status = job_make(n, &d, hint, 3, dx ? data : weights, job);
    dnnl_primitive_desc_destroy(hint);
    return status;
}

static tri_status convolution(const tri_node *n, enum dnnl_convolution kind,
                              const struct window *w, struct dnnl_job **job) {
    struct convolution c;
    dnnl_status_t s = describe_convolution(w, job_type(&n->out->spec), &c);
    if (s) return job_failed(n, "describe it", s);
    return kind == CONVOLUTION ? forward(n, &c, job) : backward(n, &c, kind == CONVOLUTION_DX, job);
}

tri_status dnnl_glue_convolution(const tri_node *n, enum dnnl_convolution kind,
                                 const struct window *w, struct dnnl_job **job) {
    int threads;
    tri_status status = job_begin(&threads);
    if (status) return status;
    status = convolution(n, kind, w, job);
    job_end(threads);
    return status;
}
