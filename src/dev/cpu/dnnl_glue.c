/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/cpu/dnnl_glue.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the OpenMP that oneDNN brought along; null if it has none. The setting belongs to the calling
 * thread: it is made for every use and put back after it, for the user may have another. */
static void (*set_threads)(int threads);
static int (*max_threads)(void);

static int one_thread(void) {
    int before = max_threads ? max_threads() : 0;
    if (set_threads) set_threads(1);
    return before;
}

static void threads_back(int before) {
    if (set_threads) set_threads(before);
}

#define MAX_TENSORS 4 /* of a primitive: x, weight, bias, y */

/* One primitive with everything it is executed with. */
struct step {
    dnnl_primitive_t primitive;
    int n_args;
    dnnl_exec_arg_t arg[MAX_TENSORS + 1];
};

/* Steps: reorders of inputs, the primitive, the reorder of the output. */
struct job {
    dnnl_stream_t stream;
    int n_steps, n_bound, n_memories;
    struct step step[MAX_TENSORS + 1];
    /* Memories whose contents come with each call: that input, or output 0 where it is -1. */
    struct bound {
        dnnl_memory_t memory;
        int input;
    } bound[MAX_TENSORS];
    /* All memories, and the buffers of those that have their own. */
    struct owned {
        dnnl_memory_t memory;
        void *buffer;
        size_t bytes;
    } owned[3 * MAX_TENSORS + 2];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine;
static dnnl_primitive_attr_t attributes; /* strict fp32, scratchpads are ours */
static dnnl_status_t opened;

static void open_once(void) {
    *(void **)&set_threads = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    *(void **)&max_threads = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    opened = dnnl_engine_create(&engine, dnnl_cpu, 0);
    if (!opened) opened = dnnl_primitive_attr_create(&attributes);
    if (!opened) opened = dnnl_primitive_attr_set_fpmath_mode(attributes, dnnl_fpmath_mode_strict);
    if (!opened)
        opened = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
}

tri_status dnnl_glue_open(void) {
    unsigned runtime = dnnl_version()->cpu_runtime;
    pthread_once(&once, open_once);
    if (opened)
        return base_fail(TRI_FAILED, "oneDNN cannot be started: %s", dnnl_status2str(opened));
    if (runtime == DNNL_RUNTIME_SEQ || (runtime == DNNL_RUNTIME_OMP && set_threads && max_threads))
        return TRI_OK;
    return base_fail(TRI_FAILED, "oneDNN was built with the threads of %s; only OpenMP or none can "
                                 "be kept to one thread", dnnl_runtime2str(runtime));
}

static bool has(dnnl_cpu_isa_t wanted) {
    return ((unsigned)dnnl_get_effective_cpu_isa() & (unsigned)wanted) == (unsigned)wanted;
}

bool dnnl_glue_has_bf16(void) { return has(dnnl_cpu_isa_avx512_core); }

void dnnl_glue_describe(char *text, size_t bytes) {
    static const struct {
        dnnl_cpu_isa_t isa;
        const char *name;
    } names[] = {
        {dnnl_cpu_isa_avx512_core_amx, "AVX-512 with AMX"},
        {dnnl_cpu_isa_avx512_core_bf16, "AVX-512 with bf16"},
        {dnnl_cpu_isa_avx512_core_vnni, "AVX-512 with VNNI"},
        {dnnl_cpu_isa_avx512_core, "AVX-512"},
        {dnnl_cpu_isa_avx2_vnni, "AVX2 with VNNI"},
        {dnnl_cpu_isa_avx2, "AVX2"},
        {dnnl_cpu_isa_avx, "AVX"},
        {dnnl_cpu_isa_sse41, "SSE4.1"},
    };
    const dnnl_version_t *v = dnnl_version();
    size_t i = 0;
    while (i < COUNT(names) && !has(names[i].isa)) i++;
    snprintf(text, bytes, "oneDNN %d.%d.%d, %s", v->major, v->minor, v->patch,
             i < COUNT(names) ? names[i].name : "no vector instructions that it knows");
}

/* ---- making a job ---- */

static tri_status failed(const tri_node *n, const char *what, dnnl_status_t status) {
    return status ? base_fail(TRI_FAILED, "%s (%s): oneDNN cannot %s: %s", n->name,
                              n->entry->op->name, what, dnnl_status2str(status))
                  : TRI_OK;
}

static dnnl_data_type_t type_of(const tri_spec *s) {
    return s->type == TRI_BF16 ? dnnl_bf16 : dnnl_f32;
}

/* A memory with a buffer of its own, or without, to be bound. */
static tri_status add_memory(struct job *j, const tri_node *n, const dnnl_memory_desc_t *md,
                             bool buffer, dnnl_memory_t *out) {
    struct owned *o = &j->owned[j->n_memories];
    CHECK(j->n_memories < (int)COUNT(j->owned));
    if (buffer) {
        o->bytes = dnnl_memory_desc_get_size(md);
        o->buffer = dev_host_allocate(o->bytes);
        if (!o->buffer) return base_no_memory(n->name);
    }
    dnnl_status_t s =
        dnnl_memory_create(&o->memory, md, engine, buffer ? o->buffer : DNNL_MEMORY_NONE);
    if (s && buffer) dev_host_release(o->buffer, o->bytes);
    if (s) return failed(n, "make a tensor", s);
    j->n_memories++;
    *out = o->memory;
    return TRI_OK;
}

/* Takes the description of a primitive and what it is executed with. */
static tri_status add_step(struct job *j, const tri_node *n, const_dnnl_primitive_desc_t pd,
                           int n_args, const dnnl_exec_arg_t *arg) {
    struct step *s = &j->step[j->n_steps];
    CHECK(j->n_steps < (int)COUNT(j->step) && n_args <= MAX_TENSORS);
    const dnnl_memory_desc_t *scratch =
        dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    memcpy(s->arg, arg, (size_t)n_args * sizeof *arg);
    s->n_args = n_args;
    if (scratch && dnnl_memory_desc_get_size(scratch)) {
        s->arg[s->n_args].arg = DNNL_ARG_SCRATCHPAD;
        tri_status status = add_memory(j, n, scratch, true, &s->arg[s->n_args++].memory);
        if (status) return status;
    }
    dnnl_status_t created = dnnl_primitive_create(&s->primitive, pd);
    if (!created) j->n_steps++;
    return failed(n, "prepare it", created);
}

static tri_status add_reorder(struct job *j, const tri_node *n, dnnl_memory_t from,
                              const dnnl_memory_desc_t *from_md, dnnl_memory_t to,
                              const dnnl_memory_desc_t *to_md) {
    dnnl_primitive_desc_t pd;
    dnnl_status_t s =
        dnnl_reorder_primitive_desc_create(&pd, from_md, engine, to_md, engine, attributes);
    if (s) return failed(n, "reorder a tensor", s);
    const dnnl_exec_arg_t arg[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    tri_status status = add_step(j, n, pd, 2, arg);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

/* A tensor of the primitive as the caller has it: which input (-1: output 0), in which layout. */
struct tensor {
    int arg;
    int input;
    dnnl_memory_desc_t plain;
};

/* Steps for the primitive and the reorders around it. */
static tri_status fill(struct job *j, const tri_node *n, const_dnnl_primitive_desc_t pd,
                       int n_tensors, const struct tensor *t) {
    dnnl_exec_arg_t arg[MAX_TENSORS];
    dnnl_memory_t user[MAX_TENSORS];
    const dnnl_memory_desc_t *wanted[MAX_TENSORS];
    tri_status status = failed(n, "make a stream",
                               dnnl_stream_create(&j->stream, engine, dnnl_stream_default_flags));
    for (int i = 0; i < n_tensors && !status; i++) {
        wanted[i] = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, t[i].arg);
        status = add_memory(j, n, &t[i].plain, false, &user[i]);
        if (status) break;
        j->bound[j->n_bound++] = (struct bound){user[i], t[i].input};
        arg[i] = (dnnl_exec_arg_t){t[i].arg, user[i]};
        if (dnnl_memory_desc_equal(wanted[i], &t[i].plain)) continue;
        status = add_memory(j, n, wanted[i], true, &arg[i].memory);
        if (!status && t[i].input >= 0)
            status = add_reorder(j, n, user[i], &t[i].plain, arg[i].memory, wanted[i]);
    }
    if (!status) status = add_step(j, n, pd, n_tensors, arg);
    for (int i = 0; i < n_tensors && !status; i++)
        if (t[i].input < 0 && arg[i].memory != user[i])
            status = add_reorder(j, n, arg[i].memory, wanted[i], user[i], &t[i].plain);
    return status;
}

static tri_status make(const tri_node *n, const_dnnl_op_desc_t desc,
                       const_dnnl_primitive_desc_t hint, int n_tensors, const struct tensor *t,
                       void **job) {
    dnnl_primitive_desc_t pd;
    dnnl_status_t s = dnnl_primitive_desc_create(&pd, desc, attributes, engine, hint);
    if (s) return failed(n, "do it for these types and shapes", s);
    struct job *j = calloc(1, sizeof *j);
    tri_status status = j ? fill(j, n, pd, n_tensors, t) : base_no_memory(n->name);
    dnnl_primitive_desc_destroy(pd);
    if (status)
        dnnl_glue_release(j);
    else
        *job = j;
    return status;
}

/* ---- matmul ---- */

static dnnl_status_t view_md(const struct dnnl_view *v, dnnl_data_type_t type,
                             dnnl_memory_desc_t *md) {
    return dnnl_memory_desc_init_by_strides(md, v->rank, v->dim, type, v->stride);
}

static tri_status matmul(const tri_node *n, const struct dnnl_view *a, const struct dnnl_view *b,
                         const struct dnnl_view *y, void **job) {
    dnnl_data_type_t type = type_of(&n->out->spec);
    struct tensor t[] = {{.arg = DNNL_ARG_SRC, .input = 0},
                         {.arg = DNNL_ARG_WEIGHTS, .input = 1},
                         {.arg = DNNL_ARG_DST, .input = -1}};
    dnnl_status_t s = view_md(a, type, &t[0].plain);
    if (!s) s = view_md(b, type, &t[1].plain);
    if (!s) s = view_md(y, type, &t[2].plain);
    dnnl_matmul_desc_t desc;
    if (!s) s = dnnl_matmul_desc_init(&desc, &t[0].plain, &t[1].plain, NULL, &t[2].plain);
    return s ? failed(n, "describe it", s) : make(n, &desc, NULL, (int)COUNT(t), t, job);
}

/* ---- convolution ---- */

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

static tri_status forward(const tri_node *n, const struct convolution *c, void **job) {
    bool bias = n->n_in > 2;
    dnnl_convolution_desc_t d;
    dnnl_status_t s = forward_desc(c, bias, &d);
    const struct tensor t[] = {{DNNL_ARG_SRC, 0, c->plain_x},
                               {DNNL_ARG_WEIGHTS, 1, c->plain_w},
                               {DNNL_ARG_DST, -1, c->plain_y},
                               {DNNL_ARG_BIAS, 2, c->bias}};
    return s ? failed(n, "describe it", s) : make(n, &d, NULL, bias ? 4 : 3, t, job);
}

static tri_status backward(const tri_node *n, const struct convolution *c, bool dx, void **job) {
    dnnl_convolution_desc_t d, f;
    dnnl_primitive_desc_t hint = NULL;
    dnnl_status_t s =
        dx ? dnnl_dilated_convolution_backward_data_desc_init(
                 &d, dnnl_convolution_direct, &c->x, &c->w, &c->y, c->stride, c->dilation, c->pad,
                 c->pad)
           : dnnl_dilated_convolution_backward_weights_desc_init(
                 &d, dnnl_convolution_direct, &c->x, &c->w, NULL, &c->y, c->stride, c->dilation,
                 c->pad, c->pad);
    const struct tensor data[] = {{DNNL_ARG_DIFF_DST, 0, c->plain_y},
                                  {DNNL_ARG_WEIGHTS, 1, c->plain_w},
                                  {DNNL_ARG_DIFF_SRC, -1, c->plain_x}};
    const struct tensor weights[] = {{DNNL_ARG_DIFF_DST, 0, c->plain_y},
                                     {DNNL_ARG_SRC, 1, c->plain_x},
                                     {DNNL_ARG_DIFF_WEIGHTS, -1, c->plain_w}};
    if (!s) s = forward_desc(c, false, &f);
    if (!s) s = dnnl_primitive_desc_create(&hint, &f, attributes, engine, NULL);
    if (s) return failed(n, "describe it", s);
    tri_status status = make(n, &d, hint, 3, dx ? data : weights, job);
    dnnl_primitive_desc_destroy(hint);
    return status;
}

static tri_status convolution(const tri_node *n, enum dnnl_convolution kind,
                              const struct window *w, void **job) {
    struct convolution c;
    dnnl_status_t s = describe_convolution(w, type_of(&n->out->spec), &c);
    if (s) return failed(n, "describe it", s);
    return kind == CONVOLUTION ? forward(n, &c, job) : backward(n, &c, kind == CONVOLUTION_DX, job);
}

/* ---- what others see, on one thread ---- */

tri_status dnnl_glue_matmul(const tri_node *n, const struct dnnl_view *a, const struct dnnl_view *b,
                            const struct dnnl_view *y, void **job) {
    tri_status status = dnnl_glue_open();
    if (status) return status;
    int threads = one_thread();
    status = matmul(n, a, b, y, job);
    threads_back(threads);
    return status;
}

tri_status dnnl_glue_convolution(const tri_node *n, enum dnnl_convolution kind,
                                 const struct window *w, void **job) {
    tri_status status = dnnl_glue_open();
    if (status) return status;
    int threads = one_thread();
    status = convolution(n, kind, w, job);
    threads_back(threads);
    return status;
}

static dnnl_status_t execute(const struct job *j, const tri_call *c) {
    dnnl_status_t s = dnnl_success;
    /* oneDNN's handles are not const, but it does not write to its sources. */
    for (int i = 0; i < j->n_bound && !s; i++) {
        int input = j->bound[i].input;
        s = dnnl_memory_set_data_handle(j->bound[i].memory,
                                        input < 0 ? c->out[0] : (void *)c->in[input]);
    }
    for (int i = 0; i < j->n_steps && !s; i++)
        s = dnnl_primitive_execute(j->step[i].primitive, j->stream, j->step[i].n_args,
                                   j->step[i].arg);
    return s ? s : dnnl_stream_wait(j->stream);
}

void dnnl_glue_run(const tri_call *c) {
    int threads = one_thread();
    dnnl_status_t s = execute(c->state, c);
    threads_back(threads);
    if (s) tri_call_fail(c, "oneDNN cannot run it: %s", dnnl_status2str(s));
}

void dnnl_glue_release(void *job) {
    struct job *j = job;
    if (!j) return;
    for (int i = 0; i < j->n_steps; i++) dnnl_primitive_destroy(j->step[i].primitive);
    for (int i = 0; i < j->n_memories; i++) {
        dnnl_memory_destroy(j->owned[i].memory);
        dev_host_release(j->owned[i].buffer, j->owned[i].bytes);
    }
    if (j->stream) dnnl_stream_destroy(j->stream);
    free(j);
}
