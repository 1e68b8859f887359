/* SPDX-License-Identifier: Apache-2.0
 * Matmul as a job of oneDNN. */
#include "dev/cpu/dnnl_job.h"

static dnnl_status_t view_md(const struct dnnl_view *v, dnnl_data_type_t type,
                             dnnl_memory_desc_t *md) {
    return dnnl_memory_desc_init_by_strides(md, v->rank, v->dim, type, v->stride);
}

static dnnl_status_t any_md(const struct dnnl_view *v, dnnl_data_type_t type,
                            dnnl_memory_desc_t *md) {
    return dnnl_memory_desc_init_by_tag(md, v->rank, v->dim, type, dnnl_format_tag_any);
}

/* Large single matrices are brought into the library's own order before they are multiplied: rows
 * that lie a power of two apart, or columns that lie apart, cost half of its speed. It costs as much
 * as some ten rows of the product, which must have many more. */
static bool worth_packing(const struct dnnl_view *v, int64_t rows) {
    return v->rank == 2 && rows >= 256 && v->dim[0] >= 64 && v->dim[1] >= 64;
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
    dnnl_memory_desc_t src = t[0].outside, weights = t[1].outside;
    if (!s && worth_packing(b, a->dim[a->rank - 2])) s = any_md(b, type, &weights);
    if (!s && worth_packing(a, b->dim[b->rank - 1]) && a->stride[a->rank - 1] != 1)
        s = any_md(a, type, &src);
    if (!s) s = dnnl_matmul_desc_init(&desc, &src, &weights, NULL, &t[2].outside);
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
