/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl_debug.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dev/cpu/dnnl_job.h"

/* Of the OpenMP that oneDNN brought along; null if it has none. The setting belongs to the calling
 * thread: it is made for every use and put back after it, for the user may have another. */
static void (*set_threads)(int threads);
static int (*max_threads)(void);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine;
static dnnl_primitive_attr_t attributes; /* strict fp32, scratchpads are ours */
static dnnl_status_t opened;

dnnl_engine_t job_engine(void) { return engine; }
const_dnnl_primitive_attr_t job_attributes(void) { return attributes; }

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

/* On other processors than x86 these numbers mean other sets. */
static bool has(dnnl_cpu_isa_t wanted) {
#ifdef __x86_64__
    return ((unsigned)dnnl_get_effective_cpu_isa() & (unsigned)wanted) == (unsigned)wanted;
#else
    (void)wanted;
    return false;
#endif
}

bool dnnl_glue_takes_bf16(void) { return has(dnnl_cpu_isa_avx512_core); }

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
    char other[32];
    snprintf(other, sizeof other, "instruction set %d", (int)dnnl_get_effective_cpu_isa());
    snprintf(text, bytes, "oneDNN %d.%d.%d, %s", v->major, v->minor, v->patch,
             i < COUNT(names) ? names[i].name : other);
}

/* ---- making a job ---- */

static int one_thread(void) {
    int before = max_threads ? max_threads() : 0;
    if (set_threads) set_threads(1);
    return before;
}

void job_end(int threads) {
    if (set_threads) set_threads(threads);
}

tri_status job_begin(int *threads) {
    tri_status status = dnnl_glue_open();
    *threads = status ? 0 : one_thread();
    return status;
}

tri_status job_failed(const tri_node *n, const char *what, dnnl_status_t status) {
    return status ? base_fail(TRI_FAILED, "%s (%s): oneDNN cannot %s: %s", n->name,
                              n->entry->op->name, what, dnnl_status2str(status))
                  : TRI_OK;
}

dnnl_data_type_t job_type(const tri_spec *s) {
    return s->type == TRI_BF16 ? dnnl_bf16 : dnnl_f32;
}

static tri_status add_memory(struct dnnl_job *j, const tri_node *n, const dnnl_memory_desc_t *md,
                             struct job_memory where, dnnl_memory_t *out) {
    struct job_memory *m = &j->memory[j->n_memories];
    CHECK(j->n_memories < (int)COUNT(j->memory));
    *m = where;
    dnnl_status_t s = dnnl_memory_create(&m->memory, md, engine, DNNL_MEMORY_NONE);
    if (s) return job_failed(n, "make a tensor", s);
    j->n_memories++;
    *out = m->memory;
    return TRI_OK;
}

static tri_status add_scratch(struct dnnl_job *j, const tri_node *n, const dnnl_memory_desc_t *md,
                              dnnl_memory_t *out) {
    struct job_memory where = {.kind = JOB_SCRATCH, .offset = j->scratch};
    j->scratch += (dnnl_memory_desc_get_size(md) + 63) / 64 * 64;
    return add_memory(j, n, md, where, out);
}

/* Takes the description of a primitive and what it is executed with. */
static tri_status add_step(struct dnnl_job *j, const tri_node *n, const_dnnl_primitive_desc_t pd,
                           int n_args, const dnnl_exec_arg_t *arg) {
    struct job_step *s = &j->step[j->n_steps];
    CHECK(j->n_steps < (int)COUNT(j->step) && n_args <= JOB_TENSORS);
    const dnnl_memory_desc_t *scratch =
        dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    memcpy(s->arg, arg, (size_t)n_args * sizeof *arg);
    s->n_args = n_args;
    if (scratch && dnnl_memory_desc_get_size(scratch)) {
        s->arg[s->n_args].arg = DNNL_ARG_SCRATCHPAD;
        tri_status status = add_scratch(j, n, scratch, &s->arg[s->n_args++].memory);
        if (status) return status;
    }
    dnnl_status_t created = dnnl_primitive_create(&s->primitive, pd);
    if (!created) j->n_steps++;
    return job_failed(n, "prepare it", created);
}

static tri_status add_reorder(struct dnnl_job *j, const tri_node *n, dnnl_memory_t from,
                              const dnnl_memory_desc_t *from_md, dnnl_memory_t to,
                              const dnnl_memory_desc_t *to_md) {
    dnnl_primitive_desc_t pd;
    dnnl_status_t s =
        dnnl_reorder_primitive_desc_create(&pd, from_md, engine, to_md, engine, attributes);
    if (s) return job_failed(n, "reorder a tensor", s);
    const dnnl_exec_arg_t arg[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    tri_status status = add_step(j, n, pd, 2, arg);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

/* Steps for the primitive and the reorders around it. */
static tri_status fill(struct dnnl_job *j, const tri_node *n, const_dnnl_primitive_desc_t pd,
                       int n_tensors, const struct job_tensor *t) {
    dnnl_exec_arg_t arg[JOB_TENSORS];
    dnnl_memory_t outside[JOB_TENSORS];
    const dnnl_memory_desc_t *wanted[JOB_TENSORS];
    tri_status status = job_failed(
        n, "make a stream", dnnl_stream_create(&j->stream, engine, dnnl_stream_default_flags));
    for (int i = 0; i < n_tensors && !status; i++) {
        struct job_memory where = {.kind = t[i].input < 0 ? JOB_OUTPUT : JOB_INPUT,
                                   .index = t[i].input};
        wanted[i] = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, t[i].arg);
        status = add_memory(j, n, &t[i].outside, where, &outside[i]);
        if (status) break;
        arg[i] = (dnnl_exec_arg_t){t[i].arg, outside[i]};
        if (dnnl_memory_desc_equal(wanted[i], &t[i].outside)) continue;
        status = add_scratch(j, n, wanted[i], &arg[i].memory);
        if (!status && t[i].input >= 0)
            status = add_reorder(j, n, outside[i], &t[i].outside, arg[i].memory, wanted[i]);
    }
    if (!status) status = add_step(j, n, pd, n_tensors, arg);
    for (int i = 0; i < n_tensors && !status; i++)
        if (t[i].input < 0 && arg[i].memory != outside[i])
            status = add_reorder(j, n, arg[i].memory, wanted[i], outside[i], &t[i].outside);
    return status;
}

tri_status job_make_of(const tri_node *n, const_dnnl_primitive_desc_t pd, int n_tensors,
                       const struct job_tensor *t, struct dnnl_job **out) {
    struct dnnl_job *j = calloc(1, sizeof *j);
    tri_status status = j ? fill(j, n, pd, n_tensors, t) : base_no_memory(n->name);
    if (status)
        dnnl_glue_release(j);
    else
        *out = j;
    return status;
}

tri_status job_make(const tri_node *n, const_dnnl_op_desc_t desc,
                    const_dnnl_primitive_desc_t hint, int n_tensors, const struct job_tensor *t,
                    struct dnnl_job **out) {
    dnnl_primitive_desc_t pd;
    dnnl_status_t s = dnnl_primitive_desc_create(&pd, desc, attributes, engine, hint);
    if (s) return job_failed(n, "do it for these types and shapes", s);
    tri_status status = job_make_of(n, pd, n_tensors, t, out);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

tri_status job_make_reorder(const tri_node *n, const dnnl_memory_desc_t *from,
                            const dnnl_memory_desc_t *to, struct dnnl_job **out) {
    dnnl_primitive_desc_t pd;
    dnnl_status_t s = dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, attributes);
    if (s) return job_failed(n, "reorder a tensor", s);
    const struct job_tensor t[] = {{DNNL_ARG_FROM, 0, *from}, {DNNL_ARG_TO, -1, *to}};
    tri_status status = job_make_of(n, pd, 2, t, out);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

/* ---- how tensors lie ---- */

static int64_t cut(const dnnl_blocking_desc_t *b, int dim) {
    int64_t all = 1;
    for (int i = 0; i < b->inner_nblks; i++)
        if (b->inner_idxs[i] == dim) all *= b->inner_blks[i];
    return all;
}

/* Strides of the dimensions that lie in this order, with the blocks inside. */
static void set_strides(dnnl_blocking_desc_t *b, int rank, const int *order,
                        const dnnl_dims_t dims) {
    int64_t stride = 1;
    for (int i = 0; i < b->inner_nblks; i++) stride *= b->inner_blks[i];
    for (int i = rank - 1; i >= 0; i--) {
        b->strides[order[i]] = stride;
        stride *= dims[order[i]] / cut(b, order[i]);
    }
}

void job_md(const struct pack *p, int rank, const dnnl_dims_t dims, dnnl_data_type_t type,
            dnnl_memory_desc_t *md) {
    dnnl_blocking_desc_t *b = &md->format_desc.blocking;
    *md = (dnnl_memory_desc_t){.ndims = rank, .data_type = type, .format_kind = dnnl_blocked};
    for (int d = 0; d < rank; d++) md->dims[d] = md->padded_dims[d] = dims[d];
    b->inner_nblks = p->blocks;
    for (int i = 0; i < p->blocks; i++) {
        b->inner_idxs[i] = p->dim[i];
        b->inner_blks[i] = p->size[i];
    }
    set_strides(b, rank, p->order, dims);
}

bool job_pack(const dnnl_memory_desc_t *md, struct pack *p) {
    const dnnl_blocking_desc_t *b = &md->format_desc.blocking;
    if (md->format_kind != dnnl_blocked || md->offset0 || md->extra.flags ||
        b->inner_nblks > PACK_BLOCKS)
        return false;
    *p = (struct pack){.rank = md->ndims, .blocks = b->inner_nblks};
    for (int i = 0; i < p->blocks; i++) {
        p->dim[i] = (int)b->inner_idxs[i];
        p->size[i] = b->inner_blks[i];
    }
    for (int d = 0; d < md->ndims; d++) {
        int at = d;
        if (md->padded_dims[d] != md->dims[d]) return false;
        for (; at > 0 && b->strides[p->order[at - 1]] < b->strides[d]; at--)
            p->order[at] = p->order[at - 1];
        p->order[at] = d;
    }
    dnnl_blocking_desc_t dense = *b;
    set_strides(&dense, md->ndims, p->order, md->dims);
    for (int d = 0; d < md->ndims; d++)
        if (md->dims[d] / cut(b, d) > 1 && dense.strides[d] != b->strides[d]) return false;
    return true;
}

/* ---- running ---- */

static dnnl_status_t execute(const struct dnnl_job *j, const tri_call *c) {
    dnnl_status_t s = dnnl_success;
    for (int i = 0; i < j->n_memories && !s; i++) {
        const struct job_memory *m = &j->memory[i];
        /* oneDNN's handles are not const, but it does not write to its sources. */
        void *at = m->kind == JOB_INPUT    ? (void *)c->in[m->index]
                   : m->kind == JOB_OUTPUT ? c->out[0]
                                           : (char *)c->scratch + m->offset;
        s = dnnl_memory_set_data_handle(m->memory, at);
    }
    for (int i = 0; i < j->n_steps && !s; i++)
        s = dnnl_primitive_execute(j->step[i].primitive, j->stream, j->step[i].n_args,
                                   j->step[i].arg);
    return s ? s : dnnl_stream_wait(j->stream);
}

void dnnl_glue_run(const struct dnnl_job *j, const tri_call *c) {
    int threads = one_thread();
    dnnl_status_t s = execute(j, c);
    job_end(threads);
    if (s) tri_call_fail(c, "oneDNN cannot run it: %s", dnnl_status2str(s));
}

size_t dnnl_glue_scratch(const struct dnnl_job *j) { return j->scratch; }

void dnnl_glue_release(struct dnnl_job *j) {
    if (!j) return;
    for (int i = 0; i < j->n_steps; i++) dnnl_primitive_destroy(j->step[i].primitive);
    for (int i = 0; i < j->n_memories; i++) dnnl_memory_destroy(j->memory[i].memory);
    if (j->stream) dnnl_stream_destroy(j->stream);
    free(j);
}
