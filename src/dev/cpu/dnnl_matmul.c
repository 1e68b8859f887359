/* SPDX-License-Identifier: Apache-2.0
 * Matmul as a job of oneDNN. */
#include "dev/cpu/dnnl_job.h"

static dnnl_status_t view_md(const struct dnnl_view *v, dnnl_data_type_t type,
                             dnnl_memory_desc_t *md) {
    return dnnl_memory_desc_init_by_strides(md, v->rank, v->dim, type, v->stride);
}

static tri_status matmul(const tri_node *n, const struct dnnl_view *a, const struct dnnl_view *b,
                         const struct dnnl_view *y, struct dnnl_job **job) {
    dnnl_data_type_t type = job_type(&n->out->spec);
    struct job_tensor t[] = {{.arg = DNNL_ARG_SRC, .input = 0},
                             {.arg = DNNL_ARG_WEIGHTS, .input = 1},
                             {.arg = DNNL_ARG_DST, .input = -1}};
    dnnl_status_t s = view_md(a, type, &t[0].outside);
    if (!s) s = view_md(b, type, &t[1].outside);
    if (!s) s = view_md(y, type, &t[2].outside);
    dnnl_matmul_desc_t desc;
    if (!s)
        s = dnnl_matmul_desc_init(&desc, &t[0].outside, &t[1].outside, NULL, &t[2].outside);
    return s ? job_failed(n, "describe it", s) : job_make(n, &desc, NULL, (int)COUNT(t), t, job);
}

tri_status dnnl_glue_matmul(const tri_node *n, const struct dnnl_view *a, const struct dnnl_view *b,
                            const struct dnnl_view *y, struct dnnl_job **job) {
    int threads;
    tri_status status = job_begin(&threads);
    if (status) return status;
    status = matmul(n, a, b, y, job);
    job_end(threads);
    return status;
}
