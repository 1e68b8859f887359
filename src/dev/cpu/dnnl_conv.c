/* SPDX-License-Identifier: Apache-2.0
 * Convolutions as jobs of oneDNN. The library always has its tensors as it likes them best, so that
 * the bits do not depend on how they lie outside; what lies otherwise is reordered in the job. */
#include <string.h>

#include "dev/cpu/dnnl_job.h"

/* Where the tensors are found: inputs of the operator, -1 for its output. */
static const struct role {
    int x, weight, y;
    int arg_x, arg_weight, arg_y;
} roles[] = {
    [CONVOLUTION] = {0, 1, -1, DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
    [CONVOLUTION_DX] = {-1, 1, 0, DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
    [CONVOLUTION_DW] = {1, -1, 0, DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST},
};

struct convolution {
    const tri_node *n;
    enum dnnl_convolution kind;
    const struct role *role;
    bool bias;
    dnnl_dims_t stride, dilation, pad, pad_end;
    dnnl_memory_desc_t x, w, y; /* in any order */
    dnnl_memory_desc_t bias_md;
};

static dnnl_status_t any_md(const dnnl_dims_t dims, int rank, dnnl_data_type_t type,
                            dnnl_memory_desc_t *md) {
    return dnnl_memory_desc_init_by_tag(md, rank, dims, type, dnnl_format_tag_any);
}

/* Weights of groups are [groups, out, in, h, w] to the library, which lies as [out, in, h, w]. */
static dnnl_status_t describe(const tri_node *n, enum dnnl_convolution kind,
                              const struct window *w, struct convolution *c) {
    dnnl_data_type_t type = job_type(&n->in[0]->spec);
    const dnnl_dims_t x = {w->n, w->c, w->h, w->w}, y = {w->n, w->o, w->oh, w->ow}, bias = {w->o};
    const dnnl_dims_t all = {w->o, w->c, w->kh, w->kw};
    const dnnl_dims_t parts = {w->groups, w->o / w->groups, w->c / w->groups, w->kh, w->kw};
    bool grouped = w->groups > 1;
    *c = (struct convolution){.n = n, .kind = kind, .role = &roles[kind],
                              .bias = kind == CONVOLUTION && n->n_in > 2,
                              .stride = {w->sh, w->sw}, .dilation = {w->dh - 1, w->dw - 1},
                              .pad = {w->ph, w->pw},
                              .pad_end = {w->ph_end, w->pw_end}};
    dnnl_status_t s = any_md(x, 4, type, &c->x);
    if (!s) s = any_md(y, 4, type, &c->y);
    if (!s) s = any_md(grouped ? parts : all, grouped ? 5 : 4, type, &c->w);
    if (!s) s = dnnl_memory_desc_init_by_tag(&c->bias_md, 1, bias, type, dnnl_x);
    return s;
}

/* ---- primitives ---- */

static const dnnl_alg_kind_t direct = dnnl_convolution_direct;

static dnnl_status_t forward_pd(const struct convolution *c, dnnl_primitive_desc_t *pd) {
    dnnl_convolution_desc_t d;
    dnnl_status_t s = dnnl_dilated_convolution_forward_desc_init(
        &d, dnnl_forward_training, direct, &c->x, &c->w, c->bias ? &c->bias_md : NULL, &c->y,
        c->stride, c->dilation, c->pad, c->pad_end);
    return s ? s : dnnl_primitive_desc_create(pd, &d, job_attributes(), job_engine(), NULL);
}

static dnnl_status_t backward_pd(const struct convolution *c, dnnl_primitive_desc_t *pd) {
    dnnl_convolution_desc_t d;
    dnnl_primitive_desc_t hint = NULL;
    struct convolution forward = *c; /* its weight has the type of the data, whatever dw has */
    forward.w.data_type = c->x.data_type;
    dnnl_status_t s =
        c->kind == CONVOLUTION_DX
            ? dnnl_dilated_convolution_backward_data_desc_init(
                  &d, direct, &c->x, &c->w, &c->y, c->stride, c->dilation, c->pad, c->pad_end)
            : dnnl_dilated_convolution_backward_weights_desc_init(
                  &d, direct, &c->x, &c->w, NULL, &c->y, c->stride, c->dilation, c->pad,
                  c->pad_end);
    if (!s) s = forward_pd(&forward, &hint);
    if (!s) s = dnnl_primitive_desc_create(pd, &d, job_attributes(), job_engine(), hint);
    if (hint) dnnl_primitive_desc_destroy(hint);
    return s;
}

static dnnl_status_t make_pd(const struct convolution *c, dnnl_primitive_desc_t *pd) {
    return (c->kind == CONVOLUTION ? forward_pd : backward_pd)(c, pd);
}

static const dnnl_memory_desc_t *md_in(const_dnnl_primitive_desc_t pd, int arg) {
    return dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, arg);
}

/* ---- how tensors lie ---- */

static const tri_tensor *tensor_at(const struct convolution *c, int input) {
    return input < 0 ? c->n->out : c->n->in[input];
}

/* As the tensor lies, in the library's dimensions; weights of groups have one more, and are plain.
 */
static void outside_pack(const tri_tensor *t, const dnnl_memory_desc_t *like, struct pack *p) {
    if (like->ndims == t->spec.shape.rank) {
        pack_of(t, p);
        return;
    }
    *p = (struct pack){.rank = like->ndims};
    for (int d = 0; d < like->ndims; d++) p->order[d] = d;
}

static tri_shape shape_of(const dnnl_memory_desc_t *md) {
    tri_shape s = {.rank = md->ndims};
    for (int d = 0; d < s.rank; d++) s.dim[d] = md->dims[d];
    return s;
}

/* One order may have several descriptions: then the library's own is taken. */
static void describe_outside(const tri_tensor *t, const dnnl_memory_desc_t *liked,
                             dnnl_memory_desc_t *md) {
    struct pack outside, own;
    tri_shape shape = shape_of(liked);
    outside_pack(t, liked, &outside);
    bool same = job_pack(liked, &own) && liked->data_type == job_type(&t->spec) &&
                pack_equal(&own, &outside, &shape);
    if (same)
        *md = *liked;
    else
        job_md(&outside, liked->ndims, liked->dims, job_type(&t->spec), md);
}

static int block_of(const dnnl_memory_desc_t *md, const tri_shape *shape) {
    const int blocks[] = {0, 16, 8, 4, (int)shape->dim[1]};
    struct pack own, p;
    if (!job_pack(md, &own)) return 0;
    for (size_t i = 0; i < COUNT(blocks); i++) {
        tri_tensor t = {.spec.shape = *shape, .block = blocks[i]};
        if (blocks[i] && shape->dim[1] % blocks[i]) continue;
        pack_of(&t, &p);
        if (pack_equal(&own, &p, shape)) return blocks[i];
    }
    return 0;
}

static void find_formats(struct convolution *c, struct format *x, struct format *w,
                         struct format *y) {
    dnnl_primitive_desc_t pd;
    struct pack p;
    if (make_pd(c, &pd)) return;
    x->block = block_of(md_in(pd, c->role->arg_x), &tensor_at(c, c->role->x)->spec.shape);
    y->block = block_of(md_in(pd, c->role->arg_y), &tensor_at(c, c->role->y)->spec.shape);
    const dnnl_memory_desc_t *md = md_in(pd, c->role->arg_weight);
    if (w && md->ndims == 4 && job_pack(md, &p) && !pack_print(&p, w->pack)) *w->pack = 0;
    dnnl_primitive_desc_destroy(pd);
}

void dnnl_glue_formats(const tri_node *n, enum dnnl_convolution kind, const struct window *w,
                       struct format *in, struct format *out) {
    struct convolution c;
    int threads;
    if (job_begin(&threads)) return;
    if (!describe(n, kind, w, &c)) {
        const struct role *r = c.role;
        find_formats(&c, r->x < 0 ? out : &in[r->x], r->weight < 0 ? NULL : &in[r->weight],
             r->y < 0 ? out : &in[r->y]);
    }
    job_end(threads);
}

/* ---- jobs ---- */

/* weight: how the weight's derivative is left, if not as its tensor lies. */
static tri_status make_job(const struct convolution *c, const_dnnl_primitive_desc_t pd,
                           const dnnl_memory_desc_t *weight, struct dnnl_job **job) {
    const struct role *r = c->role;
    struct job_tensor t[] = {{r->arg_x, r->x, {0}}, {r->arg_weight, r->weight, {0}},
                             {r->arg_y, r->y, {0}}, {DNNL_ARG_BIAS, 2, c->bias_md}};
    for (int i = 0; i < 3; i++)
        describe_outside(tensor_at(c, t[i].input), md_in(pd, t[i].arg), &t[i].outside);
    if (weight) t[1].outside = *weight;
    return job_make_of(c->n, pd, c->bias ? 4 : 3, t, job);
}

tri_status dnnl_glue_convolution(const tri_node *n, enum dnnl_convolution kind,
                                 const struct window *w, struct dnnl_job **job) {
    struct convolution c;
    dnnl_primitive_desc_t pd;
    int threads;
    tri_status status = job_begin(&threads);
    if (status) return status;
    status = job_failed(n, "describe it", describe(n, kind, w, &c));
    if (!status) status = job_failed(n, "do it for these types and shapes", make_pd(&c, &pd));
    if (!status) {
        status = make_job(&c, pd, NULL, job);
        dnnl_primitive_desc_destroy(pd);
    }
    job_end(threads);
    return status;
}

/* The library's own order where our words suffice for it, and output channels come first. */
static void partial_order(const struct convolution *c, const dnnl_memory_desc_t *liked,
                          struct pack *order, dnnl_memory_desc_t *md) {
    *md = *liked;
    if (liked->ndims == 4 && job_pack(liked, order) && order->order[0] == 0) return;
    *order = (struct pack){.rank = liked->ndims, .order = {0, 1, 2, 3, 4}};
    job_md(order, liked->ndims, c->w.dims, dnnl_f32, md);
    order->rank = 4; /* groups, if any, are cut from the output channels, which are in order */
}

tri_status dnnl_glue_partial_dw(const tri_node *n, const struct window *w, struct pack *order,
                                struct dnnl_job **job) {
    struct convolution c;
    dnnl_primitive_desc_t pd;
    dnnl_memory_desc_t weight;
    int threads;
    tri_status status = job_begin(&threads);
    if (status) return status;
    status = job_failed(n, "describe it", describe(n, CONVOLUTION_DW, w, &c));
    c.w.data_type = dnnl_f32;
    if (!status) status = job_failed(n, "do it for these types and shapes", make_pd(&c, &pd));
    if (!status) {
        partial_order(&c, md_in(pd, c.role->arg_weight), order, &weight);
        status = make_job(&c, pd, &weight, job);
        dnnl_primitive_desc_destroy(pd);
    }
    job_end(threads);
    return status;
}
