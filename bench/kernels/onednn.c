/* SPDX-License-Identifier: Apache-2.0
 * oneDNN. Products of plain matrices: as a matmul primitive, or by dnnl_sgemm. Convolutions: direct
 * or by Winograd's algorithm, all tensors in the formats that it prefers. Its threads follow
 * OMP_NUM_THREADS. */
#include "kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_DNNL
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

/* Memory of a tensor as the primitive wants it. */
struct tensor {
    int arg;
    dnnl_memory_desc_t plain, md;
    dnnl_memory_t memory;
};

struct job {
    const struct task *t;
    const float *in[2];
    float *out; /* by dnnl_sgemm */
    dnnl_primitive_t primitive;
    struct tensor tensor[3]; /* inputs, output */
};

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void must(dnnl_status_t status, const char *what) {
    if (!status) return;
    fprintf(stderr, "oneDNN: %s: %s\n", what, dnnl_status2str(status));
    exit(1);
}

static const char *open_onednn(int threads, char *about, size_t bytes) {
    const dnnl_version_t *v = dnnl_version();
    must(dnnl_engine_create(&engine, dnnl_cpu, 0), "an engine");
    must(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "a stream");
    snprintf(about, bytes, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
    return threads > 1 && v->cpu_runtime == DNNL_RUNTIME_SEQ ? "it was built without threads"
                                                             : NULL;
}

/* ---- primitives ---- */

static dnnl_data_type_t type_of(const struct task *t) { return t->half ? dnnl_bf16 : dnnl_f32; }

/* [batch, rows, columns], or its transpose in memory; a single matrix is one of rank 2. */
static void matrix(const tri_shape *s, bool transposed, dnnl_data_type_t type,
                   dnnl_memory_desc_t *md) {
    const dnnl_dim_t rows = s->dim[1 + transposed], columns = s->dim[2 - transposed];
    const dnnl_dims_t dims = {s->dim[0], rows, columns};
    const dnnl_dims_t strides = {rows * columns, transposed ? 1 : columns, transposed ? rows : 1};
    const int skip = s->dim[0] == 1;
    must(dnnl_memory_desc_init_by_strides(md, 3 - skip, dims + skip, type, strides + skip),
         "a matrix");
}

static dnnl_status_t matmul(struct job *j, dnnl_primitive_desc_t *pd) {
    static const int args[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    const struct task *t = j->t;
    const bool transposed[] = {t->product.trans_a, t->product.trans_b, false};
    dnnl_matmul_desc_t d;
    dnnl_memory_desc_t md[3];
    for (int i = 0; i < 3; i++) {
        const tri_shape *shape = i < 2 ? &t->in[i] : &t->out;
        matrix(shape, transposed[i], dnnl_f32, &j->tensor[i].plain);
        matrix(shape, transposed[i], type_of(t), &md[i]);
        j->tensor[i].arg = args[i];
    }
    dnnl_status_t s = dnnl_matmul_desc_init(&d, &md[0], &md[1], NULL, &md[2]);
    return s ? s : dnnl_primitive_desc_create(pd, &d, NULL, engine, NULL);
}

/* x, y; or a weight, which has the groups as a dimension of its own. */
static void describe(const tri_shape *s, int64_t groups, dnnl_data_type_t type,
                     dnnl_memory_desc_t *plain, dnnl_memory_desc_t *any) {
    const dnnl_dims_t dims = {s->dim[0], s->dim[1], s->dim[2], s->dim[3]};
    const dnnl_dims_t grouped = {groups, s->dim[0] / groups, s->dim[1], s->dim[2], s->dim[3]};
    const int rank = groups > 1 ? 5 : 4;
    must(dnnl_memory_desc_init_by_tag(plain, rank, groups > 1 ? grouped : dims, dnnl_f32,
                                      groups > 1 ? dnnl_abcde : dnnl_abcd), "a tensor");
    must(dnnl_memory_desc_init_by_tag(any, rank, plain->dims, type, dnnl_format_tag_any),
         "a tensor of any format");
}

static dnnl_status_t convolution(struct job *j, bool winograd, dnnl_primitive_desc_t *pd) {
    /* By direction, of the inputs and the output. */
    static const int args[][3] = {
        {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
        {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC},
        {DNNL_ARG_DIFF_DST, DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS}};
    static const int weight[] = {1, 1, 2};
    const struct task *t = j->t;
    const dnnl_alg_kind_t how = winograd ? dnnl_convolution_winograd : dnnl_convolution_direct;
    const dnnl_dims_t strides = {t->conv.stride, t->conv.stride}, pad = {t->conv.pad, t->conv.pad};
    dnnl_memory_desc_t any[3];
    for (int i = 0; i < 3; i++) {
        j->tensor[i].arg = args[t->direction][i];
        describe(i < 2 ? &t->in[i] : &t->out, i == weight[t->direction] ? t->conv.groups : 1,
                 type_of(t), &j->tensor[i].plain, &any[i]);
    }
    /* x, weight, y */
    const dnnl_memory_desc_t *x = &any[t->direction == FORWARD ? 0 : t->direction == DX ? 2 : 1];
    const dnnl_memory_desc_t *w = &any[weight[t->direction]];
    const dnnl_memory_desc_t *y = &any[t->direction == FORWARD ? 2 : 0];
    dnnl_convolution_desc_t d;
    dnnl_primitive_desc_t forward;
    dnnl_status_t s = dnnl_convolution_forward_desc_init(&d, dnnl_forward_training, how, x, w, NULL,
                                                         y, strides, pad, pad);
    if (!s) s = dnnl_primitive_desc_create(&forward, &d, NULL, engine, NULL);
    if (s) return s;
    if (t->direction == FORWARD) {
        *pd = forward;
        return dnnl_success;
    }
    s = t->direction == DX ? dnnl_convolution_backward_data_desc_init(&d, how, x, w, y, strides,
                                                                      pad, pad)
                           : dnnl_convolution_backward_weights_desc_init(&d, how, x, w, NULL, y,
                                                                         strides, pad, pad);
    if (!s) s = dnnl_primitive_desc_create(pd, &d, NULL, engine, forward);
    dnnl_primitive_desc_destroy(forward);
    return s;
}

/* ---- jobs ---- */

/* Copies between a plain tensor and the primitive's. */
static void reorder(const struct tensor *t, float *plain, bool to_plain) {
    dnnl_memory_t other, from, to;
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t copy;
    must(dnnl_memory_create(&other, &t->plain, engine, plain), "a tensor");
    from = to_plain ? t->memory : other;
    to = to_plain ? other : t->memory;
    must(dnnl_reorder_primitive_desc_create(&pd, to_plain ? &t->md : &t->plain, engine,
                                            to_plain ? &t->plain : &t->md, engine, NULL),
         "a reorder");
    must(dnnl_primitive_create(&copy, pd), "a reorder");
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    must(dnnl_primitive_execute(copy, stream, 2, args), "a reorder");
    must(dnnl_stream_wait(stream), "a reorder");
    dnnl_primitive_destroy(copy);
    dnnl_primitive_desc_destroy(pd);
    dnnl_memory_destroy(other);
}

static void release(void *job) {
    struct job *j = job;
    if (j->primitive) dnnl_primitive_destroy(j->primitive);
    for (int i = 0; i < 3; i++)
        if (j->tensor[i].memory) dnnl_memory_destroy(j->tensor[i].memory);
    free(j->out);
    free(j);
}

static void *prepare(const struct task *t, int way, float *const in[2]) {
    dnnl_primitive_desc_t pd;
    if (t->product.gelu || (way && !t->convolves && (t->half || t->product.batch > 1)))
        return NULL;
    struct job *j = take(sizeof *j);
    *j = (struct job){.t = t, .in = {in[0], in[1]}};
    if (way && !t->convolves) {
        j->out = take((size_t)tri_shape_count(&t->out) * sizeof *j->out);
        return j;
    }
    if (t->convolves ? convolution(j, way, &pd) : matmul(j, &pd)) {
        release(j);
        return NULL;
    }
    must(dnnl_primitive_create(&j->primitive, pd), t->name);
    for (int i = 0; i < 3; i++) {
        struct tensor *x = &j->tensor[i];
        x->md = *dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, x->arg);
        must(dnnl_memory_create(&x->memory, &x->md, engine, DNNL_MEMORY_ALLOCATE), "memory");
        if (i < 2) reorder(x, in[i], false);
    }
    dnnl_primitive_desc_destroy(pd);
    return j;
}

static void run(void *job) {
    const struct job *j = job;
    if (!j->primitive) {
        const bool ta = j->t->product.trans_a, tb = j->t->product.trans_b;
        const dnnl_dim_t m = j->t->product.m, n = j->t->product.n, k = j->t->product.k;
        must(dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1, j->in[0], ta ? m : k, j->in[1],
                        tb ? k : n, 0, j->out, n), "dnnl_sgemm");
        return;
    }
    dnnl_exec_arg_t args[3];
    for (int i = 0; i < 3; i++)
        args[i] = (dnnl_exec_arg_t){j->tensor[i].arg, j->tensor[i].memory};
    must(dnnl_primitive_execute(j->primitive, stream, 3, args), j->t->name);
    must(dnnl_stream_wait(stream), j->t->name);
}

static void read_plain(void *job, float *out) {
    const struct job *j = job;
    if (j->primitive)
        reorder(&j->tensor[2], out, true);
    else
        memcpy(out, j->out, (size_t)tri_shape_count(&j->t->out) * sizeof *out);
}

const struct library onednn = {"onednn", 2, open_onednn, prepare, run, read_plain, release, NULL};

#else

static const char *missing(int threads, char *about, size_t bytes) {
    (void)threads, (void)about, (void)bytes;
    return "this build has none";
}
const struct library onednn = {.name = "onednn", .open = missing};

#endif
