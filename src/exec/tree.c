/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/tree.h"

#include <stdlib.h>
#include <string.h>

#include "plan/memory.h"

static bool place_roots(struct tree *t) {
    const struct program *p = &t->merge;
    for (int i = 0; i < p->n_result; i++)
        if (p->result[i].of >= t->n_offsets) t->n_offsets = p->result[i].of + 1;
    t->offset = malloc(((size_t)t->n_offsets + 1) * sizeof *t->offset);
    if (!t->offset) return false;
    for (int i = 0; i < t->n_offsets; i++) t->offset[i] = TREE_NONE;
    t->slot_bytes = MEMORY_ALIGN; /* so that slots differ even if there are no roots */
    for (int i = 0; i < p->n_result; i++) {
        size_t bytes = base_spec_bytes(&t->g->output[i].tensor->spec);
        t->offset[p->result[i].of] = t->slot_bytes;
        t->slot_bytes += (bytes + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN;
    }
    return true;
}

tri_status tree_make(const tri_graph *merge, const struct dev *dev, int64_t lanes, struct tree *t) {
    *t = (struct tree){.g = merge};
    /* One partial a level, the lane's own, and the sum being made. */
    t->n_slots = 3;
    for (int64_t v = lanes; v > 1; v /= 2) t->n_slots++;
    t->used = calloc((size_t)t->n_slots, sizeof *t->used);
    tri_status status =
        t->used ? program_make(merge, dev, true, 1, &t->merge) : base_no_memory("the tree");
    if (!status && !place_roots(t)) status = base_no_memory("the tree");
    if (!status) {
        t->slots = dev->allocate(t->slot_bytes * (size_t)t->n_slots);
        if (!t->slots)
            status = base_fail(TRI_FAILED, "out of memory for %zu bytes of partial sums",
                               t->slot_bytes * (size_t)t->n_slots);
    }
    if (status) tree_free(t);
    return status;
}

void tree_free(struct tree *t) {
    if (t->slots) t->merge.dev->release(t->slots, t->slot_bytes * (size_t)t->n_slots);
    program_free(&t->merge);
    free(t->offset);
    free(t->used);
    *t = (struct tree){0};
}

void tree_begin(struct tree *t) {
    t->depth = 0;
    if (t->used) memset(t->used, 0, (size_t)t->n_slots);
}

char *tree_slot(struct tree *t) {
    int i = 0;
    while (t->used[i]) i++;
    CHECK(i < t->n_slots);
    t->used[i] = true;
    return t->slots + t->slot_bytes * (size_t)i;
}

static void drop(struct tree *t, const char *slot) {
    t->used[(size_t)(slot - t->slots) / t->slot_bytes] = false;
}

/* Null: no root of this tree. */
static char *root(const struct tree *t, char *slot, int of) {
    return of < t->n_offsets && t->offset[of] != TREE_NONE ? slot + t->offset[of] : NULL;
}

void tree_bind_outputs(const struct tree *t, struct program *p, char *slot) {
    for (int i = 0; i < p->n_result; i++) {
        char *at = root(t, slot, p->result[i].of);
        if (at) p->value[p->result[i].tensor] = at;
    }
}

void tree_bind_givens(const struct tree *t, struct program *p, char *slot) {
    for (int i = 0; i < p->n_given; i++) {
        char *at = root(t, slot, p->given[i].of);
        if (at) p->value[p->given[i].tensor] = at;
    }
}

/* Sums the two topmost. */
static bool merge_top(struct tree *t, const struct program_step *step) {
    char *left = t->stack[t->depth - 2].slot, *right = t->stack[t->depth - 1].slot;
    char *sum = tree_slot(t);
    for (int i = 0; i < t->merge.n_given; i++) {
        int of = t->merge.given[i].of;
        t->merge.value[t->merge.given[i].tensor] = root(t, of % 2 ? right : left, of / 2);
    }
    tree_bind_outputs(t, &t->merge, sum);
    bool ok = program_run(&t->merge, NULL, step);
    drop(t, left);
    drop(t, right);
    t->depth--;
    t->stack[t->depth - 1].slot = sum;
    t->stack[t->depth - 1].leaves += t->stack[t->depth].leaves;
    return ok;
}

bool tree_put(struct tree *t, char *slot, const struct program_step *step) {
    CHECK(t->depth < TREE_DEPTH);
    t->stack[t->depth].slot = slot;
    t->stack[t->depth++].leaves = 1;
    while (t->depth > 1 && t->stack[t->depth - 1].leaves == t->stack[t->depth - 2].leaves)
        if (!merge_top(t, step)) return false;
    return true;
}

char *tree_end(struct tree *t, const struct program_step *step) {
    while (t->depth > 1)
        if (!merge_top(t, step)) return NULL;
    return t->stack[0].slot;
}
