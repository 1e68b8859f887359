/* SPDX-License-Identifier: Apache-2.0
 * The cpu device: its table of kernels, and which of them runs a node. */
#include "dev/cpu/chain.h"

#include <stdio.h>
#include <stdlib.h>

#include "dev/cpu/conv_dw.h"
#include "dev/cpu/conv_own.h"
#include "dev/cpu/dnnl_glue.h"
#include "dev/cpu/isa.h"
#include "dev/cpu/matmul.h"
#include "dev/cpu/tail.h"
#include "dev/cpu/tile.h"

#define VECTOR_TABLES(X, isa)                                                               \
    X(attention, isa) X(batch_norm, isa) X(gather, isa) X(loss, isa) X(norm, isa)           \
    X(order, isa) X(pool, isa) X(random, isa) X(reduce, isa) X(shape, isa) X(softmax, isa)  \
    X(whole, isa)
#define CONV_TABLES(X, isa) \
    X(conv_few, isa) X(conv_across, isa) X(conv_wino, isa)
#define PRODUCT_TABLES(X, isa) X(conv_direct, isa)

#define DECLARE_ONE(name, isa) extern const struct dev_row cpu_##name##_##isa[];
#define DECLARE(isa) VECTOR_TABLES(DECLARE_ONE, isa) CONV_TABLES(DECLARE_ONE, isa)
EVERY_ISA(DECLARE)
#define DECLARE_PRODUCTS(isa) PRODUCT_TABLES(DECLARE_ONE, isa)
EVERY_PRODUCT_ISA(DECLARE_PRODUCTS)

#define TABLE(name, isa) cpu_##name##_##isa,
#define TABLES(isa) {cpu_elementwise, cpu_matmul_dnnl, cpu_conv, VECTOR_TABLES(TABLE, isa) NULL},
#define FEW(isa) {cpu_conv_few_##isa, NULL},
#define ACROSS(isa) {cpu_conv_across_##isa, NULL},
#define WINO(isa) {cpu_conv_wino_##isa, NULL},
#define DIRECT(isa) {cpu_conv_direct_##isa, NULL},
static const struct dev_row *const tables[][20] = {EVERY_ISA(TABLES)};
static const struct dev_row *const few[][2] = {EVERY_ISA(FEW)};
static const struct dev_row *const across[][2] = {EVERY_ISA(ACROSS)};
static const struct dev_row *const wino[][2] = {EVERY_ISA(WINO)};
static const struct dev_row *const direct[][2] = {EVERY_PRODUCT_ISA(DIRECT)};
static const struct dev_row *const weights[] = {cpu_conv_dw, NULL};
static const struct dev_row *const product[] = {cpu_matmul, NULL};

static const struct dev_row *row_of(const tri_node *n) {
    const char *op = n->entry->op->name;
    enum isa isa = isa_best();
    const struct dev_row *own = conv_wino_takes(n) ? dev_row_find(wino[isa], op) : NULL;
    if (own && !dev_row_refuses(own, n)) return own;
    const struct dev_row *const *of = conv_across_takes(n)   ? across[isa]
                                      : conv_few_takes(n)    ? few[isa]
                                      : conv_direct_takes(n) ? direct[isa_products()]
                                      : conv_dw_takes(n)     ? weights
                                      : matmul_takes(n)      ? product
                                                             : tables[isa];
    const struct dev_row *listed = dev_row_find(of, op);
    return listed ? listed : tile_has(n) ? &cpu_tile_row : NULL;
}

/* ---- the device ---- */

static const char *declines(const tri_node *n) {
    const struct dev_row *r = row_of(n);
    if (!r && !n->entry->op->kernel) return "it has no kernel for it";
    const char *why = dev_row_refuses(r, n);
    if (why || !r) return why;
    return r->supports ? r->supports(n) : NULL;
}

static void formats(const tri_node *n, struct format *in, struct format *out) {
    const struct dev_row *r = row_of(n);
    if (r && r->formats) r->formats(n, in, out);
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

static void describe(char *text, size_t bytes) {
    const int n = snprintf(text, bytes, "arithmetic %d, ", CPU_ARITHMETIC);
    dnnl_glue_describe(text + n, bytes - (size_t)n);
}

static tri_status open_device(void) {
    tri_status status = isa_open();
    return status ? status : dnnl_glue_open();
}

/* Without native instructions oneDNN is slower than f32. */
static const char *lacks(tri_type type) {
    if (type == TRI_F16) return "cpu has no products of f16";
    if (type != TRI_BF16 || dnnl_glue_native_bf16()) return NULL;
    if (getenv("DNNL_MAX_CPU_ISA"))
        return "DNNL_MAX_CPU_ISA leaves no instructions for bf16 (AVX-512 with bf16, or AMX), or "
               "this "
               "CPU has none: the run goes on in f32";
    return "this CPU has no instructions for bf16 (AVX-512 with bf16, or AMX): the run goes on in "
           "f32";
}

static const struct target target = {.winograd = cpu_winograd, .fuses = fuses, .heads = cpu_leads,
                                     .formats = formats, .lacks = lacks};

const struct dev dev_cpu = {
    .name = "cpu",
    .space = SPACE_HOST,
    .describe = describe,
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
