/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/cpu/chain.h"

#include <stdlib.h>

#include "dev/cpu/conv_dw.h"
#include "dev/cpu/conv_own.h"
#include "dev/cpu/dnnl_glue.h"
#include "dev/cpu/isa.h"
#include "dev/cpu/tail.h"
#include "ops/op.h"

#define VECTOR_TABLES(X, isa)                                                               \
    X(attention, isa) X(batch_norm, isa) X(gather, isa) X(loss, isa) X(norm, isa)           \
    X(order, isa) X(pool, isa) X(random, isa) X(reduce, isa) X(shape, isa) X(softmax, isa)  \
    X(whole, isa)
#define CONV_TABLES(X, isa) X(conv_few, isa) X(conv_across, isa) X(conv_wino, isa)

#define DECLARE_ONE(name, isa) extern const struct dev_row cpu_##name##_##isa[];
#define DECLARE(isa) VECTOR_TABLES(DECLARE_ONE, isa) CONV_TABLES(DECLARE_ONE, isa)
EVERY_ISA(DECLARE)

#define TABLE(name, isa) cpu_##name##_##isa,
#define TABLES(isa) {cpu_elementwise, cpu_matmul, cpu_conv, VECTOR_TABLES(TABLE, isa) NULL},
#define FEW(isa) {cpu_conv_few_##isa, NULL},
#define ACROSS(isa) {cpu_conv_across_##isa, NULL},
#define WINO(isa) {cpu_conv_wino_##isa, NULL},
static const struct dev_row *const tables[][20] = {EVERY_ISA(TABLES)};
static const struct dev_row *const few[][2] = {EVERY_ISA(FEW)};
static const struct dev_row *const across[][2] = {EVERY_ISA(ACROSS)};
static const struct dev_row *const wino[][2] = {EVERY_ISA(WINO)};
static const struct dev_row *const weights[] = {cpu_conv_dw, NULL};

static const struct dev_row *row_of(const tri_node *n) {
    const char *op = n->entry->op->name;
    enum isa isa = isa_best();
    const struct dev_row *own = conv_wino_takes(n) ? dev_row_find(wino[isa], op) : NULL;
    if (own && !dev_row_refuses(own, n)) return own; /* the library takes whatever order there is */
    const struct dev_row *const *of = conv_across_takes(n) ? across[isa]
                                      : conv_few_takes(n)  ? few[isa]
                                      : conv_dw_takes(n)   ? weights
                                                           : tables[isa];
    return dev_row_find(of, op);
}

/* ---- the device ---- */

static const char *declines(const tri_node *n) {
    const struct dev_row *r = row_of(n);
    if (!r && !n->entry->op->kernel) return "it has no kernel for it";
    const char *why = dev_row_refuses(r, n);
    if (why || !r) return why;
    return r->supports ? r->supports(n) : NULL;
}

static void lays(const tri_node *n, struct lying *in, struct lying *out) {
    const struct dev_row *r = row_of(n);
    if (r && r->lays) r->lays(n, in, out);
}

static tri_status prepare_row(const tri_node *n, const struct dev_row *r, const struct tail *tail,
                              struct kernel *out) {
    *out = (struct kernel){.run = r->run};
    tri_status status = r->prepare ? r->prepare(n, &out->state) : TRI_OK;
    if (status) return status;
    out->release = r->release;
    if (tail) r->follow(out->state, tail);
    if (r->plan) r->plan(n, out);
    return TRI_OK;
}

bool cpu_leads(const tri_node *n) {
    const struct dev_row *r = row_of(n);
    return r && r->leads && !declines(n) && r->leads(n);
}

tri_status cpu_prepare_head(const tri_node *n, const struct tail *tail, struct kernel *out) {
    return prepare_row(n, row_of(n), tail, out);
}

static tri_status prepare(const struct unit *u, struct kernel *out) {
    const tri_node *n = u->node[0];
    if (u->n > 1 && tail_fits((const tri_node *const *)u->node, u->n)) return tail_unit(u, out);
    if (u->n > 1) return elementwise_unit(u, out);
    const struct dev_row *r = row_of(n);
    if (r) return prepare_row(n, r, NULL, out);
    *out = (struct kernel){.run = n->entry->op->kernel};
    return TRI_OK;
}

static bool fuses(const tri_node *const *node, int n) {
    return chain_fits(node, n, NULL) || tail_fits(node, n);
}

static tri_status open_device(void) {
    tri_status status = isa_open();
    return status ? status : dnnl_glue_open();
}

/* What oneDNN does without the instructions is slower than f32. */
static const char *lacks(tri_type type) {
    if (type == TRI_F16) return "cpu has no products of f16";
    if (type != TRI_BF16 || dnnl_glue_native_bf16()) return NULL;
    if (getenv("DNNL_MAX_CPU_ISA"))
        return "DNNL_MAX_CPU_ISA leaves no instructions for bf16 (AVX-512 with bf16, or AMX), or this "
               "CPU has none: the run goes on in f32";
    return "this CPU has no instructions for bf16 (AVX-512 with bf16, or AMX): the run goes on in "
           "f32";
}

static const struct target target = {.winograd = cpu_winograd, .fuses = fuses, .heads = cpu_leads,
                                     .lays = lays, .lacks = lacks};

const struct dev dev_cpu = {
    .name = "cpu",
    .space = SPACE_HOST,
    .describe = dnnl_glue_describe,
    .open = open_device,
    .allocate = dev_host_allocate,
    .release = dev_host_release,
    .copy_in = dev_host_copy,
    .copy_out = dev_host_copy,
    .copy = dev_host_copy,
    .target = &target,
    .declines = declines,
    .prepare = prepare,
};

/* ---- what kernels share ---- */

/* Without places there is nothing to put in blocks. */
static bool alike(const tri_shape *s, const tri_shape *main) {
    return s->rank >= 3 && s->rank == main->rank && s->dim[1] == main->dim[1] &&
           cpu_span(s, 2, s->rank) > 1;
}

void cpu_lays_alike(const tri_node *n, struct lying *in, struct lying *out) {
    const tri_shape *main = &cpu_out(n, 0)->shape;
    for (int i = 0; i < n->n_in; i++)
        if (alike(&cpu_in(n, i)->shape, main)) in[i].block = LYING_ANY;
    for (int i = 0; i < n->n_out; i++)
        if (alike(&cpu_out(n, i)->shape, main)) out[i].block = LYING_ANY;
}

int64_t cpu_span(const tri_shape *s, int from, int to) {
    int64_t count = 1;
    for (int d = from; d < to; d++) count *= s->dim[d];
    return count;
}

int cpu_axis(const tri_node *n) {
    int axis;
    CHECK(op_axis(n, "axis", 0, &axis));
    return axis;
}

struct cpu_axis_view cpu_axis_view(const tri_shape *s, int axis) {
    return (struct cpu_axis_view){cpu_span(s, 0, axis), s->dim[axis],
                                  cpu_span(s, axis + 1, s->rank)};
}

#define LEAST_PART 8192 /* elements: some microseconds */
#define MOST_PARTS 48   /* even shares for 1, 2, 3, 4, 6, 8, 12, 16 threads */

int64_t cpu_parts(int64_t units, int64_t elements) {
    int64_t most = units < MOST_PARTS ? units : MOST_PARTS;
    int64_t parts = units * elements / LEAST_PART;
    return parts < 1 ? 1 : parts < most ? parts : most;
}

tri_status cpu_state(const tri_node *n, size_t bytes, void **state) {
    *state = calloc(1, bytes ? bytes : 1);
    return *state ? TRI_OK : base_no_memory(n->name);
}
