/* SPDX-License-Identifier: Apache-2.0
 * The cpu device: its table of kernels, and which of them runs a node. */
#include "dev/cpu/chain.h"

#include <stdio.h>
#include <stdlib.h>

#include "dev/cpu/conv_dw.h"
#include "dev/cpu/conv_own.h"
#ifdef HAVE_DNNL
#include "dev/cpu/dnnl_glue.h"
#endif
#include "dev/cpu/isa.h"
#include "dev/cpu/matmul.h"
#include "dev/cpu/multiply.h"
#include "dev/cpu/tail.h"
#include "dev/cpu/tile.h"

#define VECTOR_TABLES(X, isa)                                                               \
    X(attention, isa) X(batch_norm, isa) X(gather, isa) X(loss, isa) X(norm, isa)           \
    X(order, isa) X(pool, isa) X(random, isa) X(reduce, isa) X(softmax, isa) X(whole, isa)
#define CONV_TABLES(X, isa) \
    X(conv_few, isa) X(conv_across, isa) X(conv_wino, isa) X(conv_depth, isa)               \
    X(conv_depth_dw, isa) X(conv_thin, isa)
#define PRODUCT_TABLES(X, isa) X(conv_direct, isa)

#define DECLARE_ONE(name, isa) extern const struct dev_row cpu_##name##_##isa[];
#define DECLARE(isa) VECTOR_TABLES(DECLARE_ONE, isa) CONV_TABLES(DECLARE_ONE, isa)
EVERY_ISA(DECLARE)
#define DECLARE_PRODUCTS(isa) PRODUCT_TABLES(DECLARE_ONE, isa)
EVERY_PRODUCT_ISA(DECLARE_PRODUCTS)

#define TABLE(name, isa) cpu_##name##_##isa,
#define TABLES(isa) {cpu_elementwise, cpu_shape, VECTOR_TABLES(TABLE, isa) NULL},
#define FEW(isa) {cpu_conv_few_##isa, NULL},
#define ACROSS(isa) {cpu_conv_across_##isa, NULL},
#define WINO(isa) {cpu_conv_wino_##isa, NULL},
#define DIRECT(isa) {cpu_conv_direct_##isa, NULL},
#define DEPTH(isa) {cpu_conv_depth_##isa, cpu_conv_depth_dw_##isa, NULL},
#define THIN(isa) {cpu_conv_thin_##isa, NULL},
static const struct dev_row *const tables[][20] = {EVERY_ISA(TABLES)};
static const struct dev_row *const few[][2] = {EVERY_ISA(FEW)};
static const struct dev_row *const across[][2] = {EVERY_ISA(ACROSS)};
static const struct dev_row *const wino[][2] = {EVERY_ISA(WINO)};
static const struct dev_row *const direct[][2] = {EVERY_PRODUCT_ISA(DIRECT)};
static const struct dev_row *const depth[][3] = {EVERY_ISA(DEPTH)};
static const struct dev_row *const thin[][2] = {EVERY_ISA(THIN)};
static const struct dev_row *const weights[] = {cpu_conv_dw, NULL};
static const struct dev_row *const product[] = {cpu_matmul, NULL};

#ifdef HAVE_DNNL
static const struct dev_row *const native[] = {cpu_matmul_dnnl, cpu_conv_dnnl, NULL};
#else
static const struct dev_row *const native[] = {NULL};
#endif

static bool is_product(const tri_node *n) {
    return node_is(n, "matmul") || node_is(n, "conv2d") || node_is(n, "conv2d_dx") ||
           node_is(n, "conv2d_dw");
}

static const struct dev_row *row_of(const tri_node *n) {
    const char *op = n->entry->op->name;
    const enum isa isa = isa_best();
    const bool half = is_product(n) && cpu_in(n, 0)->type == TRI_BF16;
    if (n->graph->native && half)
        return dev_row_find(native, op);
    const struct dev_row *own = conv_wino_takes(n) ? dev_row_find(wino[isa], op) : NULL;
    if (own && !dev_row_refuses(own, n)) return own;
    const struct dev_row *const *of = conv_across_takes(n)   ? across[isa]
                                      : conv_few_takes(n)    ? few[isa]
                                      : conv_depth_takes(n)  ? depth[isa]
                                      : conv_thin_takes(n)   ? thin[isa]
                                      : conv_direct_takes(n) ? direct[isa_products(half)]
                                      : conv_dw_takes(n)     ? weights
                                      : matmul_takes(n)      ? product
                                                             : tables[isa];
    const struct dev_row *listed = dev_row_find(of, op);
    return listed ? listed : tile_has(n) ? &cpu_tile_row : NULL;
}

/* ---- the device ---- */

static const char *declines(const tri_node *n) {
    const struct dev_row *r = row_of(n);
    if (is_product(n) && cpu_in(n, 0)->type == TRI_F16)
        return "it has no products of f16; cast to f32 or bf16";
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
    *out = (struct kernel){.threads = out->threads, .run = r->run};
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

static tri_status prepare(struct dev *d, const struct unit *u, struct kernel *out) {
    (void)d;
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

static const char *instructions(struct dev *d, const char **remark) {
    (void)d;
    if (remark) *remark = isa_products_why();
    return isa_names[isa_products(true)];
}

#ifdef HAVE_DNNL
static void describe(struct dev *d, bool math_native, char *text, size_t bytes) {
    (void)d;
    const int n = snprintf(text, bytes, "arithmetic %d%s", CPU_ARITHMETIC, math_native ? ", " : "");
    if (math_native) dnnl_glue_describe(text + n, bytes - (size_t)n);
}

static tri_status open_device(struct dev *d) {
    (void)d;
    tri_status status = isa_open();
    return status ? status : dnnl_glue_open();
}

static const char *lacks_native(void) {
    return dnnl_glue_takes_bf16() ? NULL
                                  : "oneDNN computes bf16 with AVX-512 alone, which it may not use "
                                    "here: leave out --math native";
}

#define NATIVE "--math native computes bf16"
#else
static void describe(struct dev *d, bool math_native, char *text, size_t bytes) {
    (void)d, (void)math_native;
    snprintf(text, bytes, "arithmetic %d", CPU_ARITHMETIC);
}

static tri_status open_device(struct dev *d) {
    (void)d;
    return isa_open();
}

static const char *lacks_native(void) {
    return "this build has no oneDNN: configure one with -Ddnnl=enabled";
}

#define NATIVE "a build with -Ddnnl=enabled and --math native compute bf16"
#endif

static const char *advises(void) {
    return isa_has_amx() ? "this processor has AMX: " NATIVE
                           " faster in convolutions, with bits that follow the processor"
                         : NULL;
}

static double multiply(struct dev *d) {
    (void)d;
#define MULTIPLY(isa) cpu_multiply_##isa,
    static cpu_multiply_fn *const every[] = {EVERY_ISA(MULTIPLY)};
    float x[3] = {0.5f, 1};
    return every[isa_best()](x);
}

static const char *lacks(tri_type type) {
    return type == TRI_F16 ? "cpu has no products of f16" : NULL;
}

static const struct target target = {.convolution = cpu_convolution, .fuses = fuses,
                                     .heads = cpu_leads,
                                     .formats = formats, .lacks = lacks, .native = lacks_native,
                                     .advises = advises};

static const struct dev_kind kind = {
    .name = "cpu",
    .space = SPACE_HOST,
    .target = &target,
    .declines = declines,
    .describe = describe,
    .instructions = instructions,
    .open = open_device,
    .prepare = prepare,
    .multiply = multiply,
};

struct dev dev_cpu = {&kind};
