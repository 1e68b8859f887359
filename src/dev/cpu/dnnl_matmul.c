/* SPDX-License-Identifier: Apache-2.0
 * Matmul as a job of oneDNN. */
#include "dev/cpu/dnnl_job.h"

#include <stdlib.h>

/* How the library would have the right factor lie, where it is to be brought into that order. */
struct dnnl_order {
    dnnl_memory_desc_t md;
};

static dnnl_status_t view_md(const struct dnnl_view *v, dnnl_data_type_t type,
                             dnnl_memory_desc_t *md) {
    return dnnl_memory_desc_init_by_strides(md, v->rank, v->dim, type, v->stride);
}

static dnnl_status_t any_md(const struct dnnl_view *v, dnnl_data_type_t type,
                            dnnl_memory_desc_t *md) {
    return dnnl_memory_desc_init_by_tag(md, v->rank, v->dim, type, dnnl_format_tag_any);
}

/* Large single matrices are brought into the library's own order before they are multiplied: rows
 * that lie a power of two apart, or columns that lie apart, cost half of its speed. It costs as
 * much as some ten rows of the product, which must have many more. */
static bool worth_packing(const struct dnnl_view *v, int64_t rows) {
    return v->rank == 2 && rows >= 256 && v->dim[0] >= 64 && v->dim[1] >= 64;
}

/* weights: how b lies, if not as its view says. */
static dnnl_status_t describe(const struct dnnl_view *a, const struct dnnl_view *b,
                              const struct dnnl_view *y, dnnl_data_type_t type,
                              const dnnl_memory_desc_t *weights, struct job_tensor *t,
                              dnnl_matmul_desc_t *desc) {
    dnnl_memory_desc_t src;
    dnnl_status_t s = view_md(a, type, &t[0].outside);
    if (!s) s = view_md(b, type, &t[1].outside);
    if (!s) s = view_md(y, type, &t[2].outside);
    src = t[0].outside;
    if (!s && a->stride[a->rank - 1] != 1 && worth_packing(a, b->dim[b->rank - 1]))
        s = any_md(a, type, &src);
    if (weights) t[1].outside = *weights;
    return s ? s : dnnl_matmul_desc_init(desc, &src, &t[1].outside, NULL, &t[2].outside);
}

#define TENSORS                                                                             \
    {{.arg = DNNL_ARG_SRC, .input = 0}, {.arg = DNNL_ARG_WEIGHTS, .input = 1},              \
     {.arg = DNNL_ARG_DST, .input = -1}}

static tri_status matmul(const tri_node *n, const struct dnnl_view *a, const struct dnnl_view *b,
                         const struct dnnl_view *y, const struct dnnl_order *order,
                         struct dnnl_job **job) {
    struct job_tensor t[] = TENSORS;
    dnnl_matmul_desc_t desc;
    dnnl_status_t s =
        describe(a, b, y, job_type(&n->out->spec), order ? &order->md : NULL, t, &desc);
    return s ? job_failed(n, "describe it", s) : job_make(n, &desc, NULL, (int)COUNT(t), t, job);
}

tri_status dnnl_glue_matmul(const tri_node *n, const struct dnnl_view *a, const struct dnnl_view *b,
                            const struct dnnl_view *y, const struct dnnl_order *order,
                            struct dnnl_job **job) {
    int threads;
    tri_status status = job_begin(&threads);
    if (status) return status;
    status = matmul(n, a, b, y, order, job);
    job_end(threads);
    return status;
}

/* ---- the right factor in the library's order ---- */

static dnnl_status_t find_order(const tri_node *n, const struct dnnl_view *a,
                                const struct dnnl_view *b, const struct dnnl_view *y,
                                dnnl_memory_desc_t *md) {
    struct job_tensor t[] = TENSORS;
    dnnl_matmul_desc_t desc;
    dnnl_primitive_desc_t pd;
    dnnl_memory_desc_t any;
    dnnl_status_t s = any_md(b, job_type(&n->out->spec), &any);
    if (!s) s = describe(a, b, y, job_type(&n->out->spec), &any, t, &desc);
    if (!s) s = dnnl_primitive_desc_create(&pd, &desc, job_attributes(), job_engine(), NULL);
    if (s) return s;
    *md = *dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    return dnnl_primitive_desc_destroy(pd);
}

tri_status dnnl_glue_order(const tri_node *n, const struct dnnl_view *a, const struct dnnl_view *b,
                           const struct dnnl_view *y, int64_t rows, struct dnnl_order **order) {
    int threads;
    *order = NULL;
    if (!worth_packing(b, rows)) return TRI_OK;
    struct dnnl_order *o = calloc(1, sizeof *o);
    if (!o) return base_no_memory(n->name);
    tri_status status = job_begin(&threads);
    if (!status) {
        status = job_failed(n, "describe it", find_order(n, a, b, y, &o->md));
        job_end(threads);
    }
    if (status)
        free(o);
    else
        *order = o;
    return status;
}

size_t dnnl_glue_order_bytes(const struct dnnl_order *o) {
    return dnnl_memory_desc_get_size(&o->md);
}

/* Columns are outermost: those of a part lie in one piece. */
int64_t dnnl_glue_order_columns(const struct dnnl_order *o) {
    const dnnl_blocking_desc_t *b = &o->md.format_desc.blocking;
    int64_t columns = 1;
    for (int i = 0; i < b->inner_nblks; i++)
        if (b->inner_idxs[i] == 1) columns *= b->inner_blks[i];
    return b->strides[1] > b->strides[0] ? columns : o->md.dims[1];
}

size_t dnnl_glue_order_at(const struct dnnl_order *o, int64_t column) {
    int64_t blocks = column / dnnl_glue_order_columns(o);
    return (size_t)(blocks * o->md.format_desc.blocking.strides[1]) *
           dnnl_data_type_size(o->md.data_type);
}

static tri_status pack(const tri_node *n, const struct dnnl_order *o, const struct dnnl_view *b,
                       int64_t first, int64_t columns, struct dnnl_job **job) {
    struct dnnl_view part = *b;
    part.dim[1] = columns;
    dnnl_memory_desc_t from, to;
    const dnnl_dims_t dims = {b->dim[0], columns}, at = {0, first};
    dnnl_status_t s = view_md(&part, o->md.data_type, &from);
    if (!s) s = dnnl_memory_desc_init_submemory(&to, &o->md, dims, at);
    if (s) return job_failed(n, "describe a part of it", s);
    to.offset0 = 0; /* the caller says where it lies */
    return job_make_reorder(n, &from, &to, job);
}

tri_status dnnl_glue_pack(const tri_node *n, const struct dnnl_order *o, const struct dnnl_view *b,
                          int64_t first, int64_t columns, struct dnnl_job **job) {
    int threads;
    tri_status status = job_begin(&threads);
    if (status) return status;
    status = pack(n, o, b, first, columns, job);
    job_end(threads);
    return status;
}
