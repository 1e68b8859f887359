/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/ref/ref.h"

#include <stdio.h>

static const struct dev_row *const tables[] = {
    ref_elementwise, ref_shape, ref_reduce, ref_matmul, ref_conv,
    ref_pool,        ref_norm,  ref_loss,   ref_random, ref_attention, NULL,
};

static void describe(struct dev *d, bool native, char *text, size_t bytes) {
    (void)d, (void)native;
    snprintf(text, bytes, "plain loops in C");
}

static const char *declines(const tri_node *n) {
    const struct dev_row *r = dev_row_find(tables, n->entry->op->name);
    if (!r && !n->entry->op->kernel) return "it has no kernel for it";
    const char *why = dev_row_refuses(r, n);
    if (why || !r) return why;
    return r->supports ? r->supports(n) : NULL;
}

static tri_status prepare(struct dev *d, const struct unit *u, struct kernel *out) {
    (void)d;
    const tri_node *n = u->node[0];
    CHECK(u->n == 1);
    const struct dev_row *r = dev_row_find(tables, n->entry->op->name);
    *out = (struct kernel){.run = r ? r->run : n->entry->op->kernel};
    if (!r || !r->prepare) return TRI_OK;
    out->release = r->release;
    return r->prepare(n, &out->state);
}

static const struct dev_kind kind = {
    .name = "ref",
    .space = SPACE_HOST,
    .declines = declines,
    .describe = describe,
    .prepare = prepare,
};

struct dev dev_ref = {&kind};
