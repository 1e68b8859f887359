/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/tree.h"

#include <stdlib.h>
#include <string.h>

/* ---- making ---- */

static bool place_roots(struct tree *t) {
    const struct program *p = &t->merge[0];
    for (int i = 0; i < p->n_result; i++)
        if (p->result[i].of >= t->n_offsets) t->n_offsets = p->result[i].of + 1;
    t->offset = malloc(((size_t)t->n_offsets + 1) * sizeof *t->offset);
    if (!t->offset) return false;
    for (int i = 0; i < t->n_offsets; i++) t->offset[i] = TREE_NONE;
    t->slot_bytes = MEMORY_ALIGN; /* so that slots differ even if there are no roots */
    for (int i = 0; i < p->n_result; i++) {
        t->offset[p->result[i].of] = t->slot_bytes;
        t->slot_bytes += memory_bytes(t->g->output[i].tensor);
    }
    return true;
}

static void join(struct tree *t, int left, int right, int sum) {
    t->node[left] = (struct tree_node){.parent = sum, .sibling = right};
    t->node[right] = (struct tree_node){.parent = sum, .sibling = left, .right = true};
    t->node[sum] = (struct tree_node){.parent = -1, .sibling = -1};
}

/* Lanes are pushed on a stack; as long as the two topmost have equal sizes, they become one. */
bool tree_nodes(struct tree *t, int lanes) {
    struct {
        int node, lanes;
    } stack[64];
    int depth = 0, n = lanes;
    t->node = calloc(2 * (size_t)lanes, sizeof *t->node);
    if (!t->node) return false;
    t->node[0] = (struct tree_node){.parent = -1, .sibling = -1};
    for (int lane = 0; lane < lanes; lane++) {
        stack[depth].node = lane;
        stack[depth++].lanes = 1;
        while (depth > 1 && (stack[depth - 1].lanes == stack[depth - 2].lanes || lane == lanes - 1)) {
            join(t, stack[depth - 2].node, stack[depth - 1].node, n);
            depth--;
            stack[depth - 1].node = n++;
            stack[depth - 1].lanes += stack[depth].lanes;
        }
    }
    t->n_nodes = n;
    return true;
}

/* No order of lanes and sums needs more: test_threads tries them all for small numbers. For each
 * thread a sum may wait on each level beside the lane that it computes; and one more is being made. */
int tree_slots(int64_t lanes, int threads) {
    int levels = 0;
    for (int64_t v = lanes; v > 1; v = (v + 1) / 2) levels++;
    int64_t waiting = (int64_t)threads * levels + 2, all = lanes + threads;
    return (int)(waiting < all ? waiting : all);
}

tri_status tree_make(const tri_graph *merge, const struct dev *dev, int64_t lanes, int threads,
                     struct tree *t) {
    *t = (struct tree){.g = merge, .n_slots = tree_slots(lanes, threads)};
    pthread_mutex_init(&t->mutex, NULL);
    t->used = calloc((size_t)t->n_slots, sizeof *t->used);
    t->merge = calloc((size_t)threads, sizeof *t->merge);
    tri_status status = TRI_OK;
    if (!t->used || !t->merge || !tree_nodes(t, (int)lanes)) status = base_no_memory("the tree");
    for (; !status && t->threads < threads; t->threads++)
        status = program_make(merge, dev, true, 1, &t->merge[t->threads]);
    if (!status && !place_roots(t)) status = base_no_memory("the tree");
    if (status) tree_free(t);
    return status;
}

size_t tree_bytes(const struct tree *t) { return t->slot_bytes * (size_t)t->n_slots; }

tri_status tree_allocate(struct tree *t) {
    t->slots = t->merge->dev->allocate(tree_bytes(t));
    return t->slots ? TRI_OK : base_fail(TRI_FAILED, "out of memory for %zu bytes of partial sums",
                                         tree_bytes(t));
}

void tree_free(struct tree *t) {
    if (t->slots) t->merge->dev->release(t->slots, tree_bytes(t));
    for (int i = 0; i < t->threads; i++) program_free(&t->merge[i]);
    pthread_mutex_destroy(&t->mutex);
    free(t->merge);
    free(t->node);
    free(t->offset);
    free(t->used);
    *t = (struct tree){0};
}

/* ---- summing ---- */

void tree_begin(struct tree *t) {
    for (int i = 0; i < t->n_nodes; i++) t->node[i].slot = NULL;
    if (t->used) memset(t->used, 0, (size_t)t->n_slots);
}

static char *take(struct tree *t) {
    int i = 0;
    while (t->used[i]) CHECK(++i < t->n_slots);
    t->used[i] = true;
    return t->slots + t->slot_bytes * (size_t)i;
}

static void drop(struct tree *t, const char *slot) {
    t->used[(size_t)(slot - t->slots) / t->slot_bytes] = false;
}

char *tree_slot(struct tree *t) {
    pthread_mutex_lock(&t->mutex);
    char *slot = take(t);
    pthread_mutex_unlock(&t->mutex);
    return slot;
}

/* Null: no root of this tree. */
static char *root(const struct tree *t, char *slot, int of) {
    return of < t->n_offsets && t->offset[of] != TREE_NONE ? slot + t->offset[of] : NULL;
}

void tree_bind_outputs(const struct tree *t, struct program *p, char *slot) {
    for (int i = 0; i < p->n_result; i++) {
        char *at = root(t, slot, p->result[i].of);
        if (at) program_bind(p, p->result[i].tensor, at);
    }
}

void tree_bind_givens(const struct tree *t, struct program *p, char *slot) {
    for (int i = 0; i < p->n_given; i++) {
        char *at = root(t, slot, p->given[i].of);
        if (at) program_bind(p, p->given[i].tensor, at);
    }
}

static bool merge(struct tree *t, struct program *p, char *left, char *right, char *sum,
                  const struct program_step *step) {
    for (int i = 0; i < p->n_given; i++) {
        int of = p->given[i].of;
        program_bind(p, p->given[i].tensor, root(t, of % 2 ? right : left, of / 2));
    }
    tree_bind_outputs(t, p, sum);
    return program_run(p, NULL, step);
}

/* The sibling's slot and one for the sum, if the sibling is there: then it is ours to sum. */
static char *meet(struct tree *t, int node, char *slot, char **sum) {
    pthread_mutex_lock(&t->mutex);
    int sibling = t->node[node].sibling;
    char *other = sibling < 0 ? NULL : t->node[sibling].slot;
    t->node[node].slot = slot;
    if (other) *sum = take(t);
    pthread_mutex_unlock(&t->mutex);
    return other;
}

bool tree_put(struct tree *t, int64_t lane, char *slot, int thread,
              const struct program_step *step) {
    int node = (int)lane;
    for (char *other, *sum; (other = meet(t, node, slot, &sum)); slot = sum) {
        bool right = t->node[node].right;
        if (!merge(t, &t->merge[thread], right ? other : slot, right ? slot : other, sum, step))
            return false;
        pthread_mutex_lock(&t->mutex);
        drop(t, slot);
        drop(t, other);
        pthread_mutex_unlock(&t->mutex);
        node = t->node[node].parent;
    }
    return true;
}

char *tree_sums(const struct tree *t) { return t->node[t->n_nodes - 1].slot; }
