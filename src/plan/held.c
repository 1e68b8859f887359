/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/held.h"

#include <stdlib.h>

/* Operands are marked by 0 at first. The children of a node have lower numbers. */
static void index_nodes(struct held *h, int n_operands, const int *operand) {
    const struct lane_tree *t = h->tree;
    for (int i = 0; i < t->n_nodes; i++) h->index[i] = -1;
    for (int k = 0; k < n_operands; k++) h->index[operand[k]] = 0;
    for (int i = 0; i < t->n_nodes; i++) {
        const int left = t->node[i].left;
        if (h->index[i] < 0 && (left < 0 || h->index[left] < 0)) continue;
        h->index[i] = h->n;
        h->node[h->n++] = i;
    }
}

tri_status held_make(const struct lane_tree *tree, int n_operands, const int *operand, int hosts,
                     int chunks, struct held *h) {
    *h = (struct held){.tree = tree, .chunks = chunks};
    h->node = malloc(2 * (size_t)n_operands * sizeof *h->node);
    h->index = malloc((size_t)tree->n_nodes * sizeof *h->index);
    if (h->node && h->index) {
        index_nodes(h, n_operands, operand);
        const size_t n = (size_t)hosts * (size_t)chunks * (size_t)h->n;
        h->since = malloc(n * sizeof *h->since);
        for (size_t i = 0; h->since && i < n; i++) h->since[i] = HELD_NEVER;
    }
    if (h->since) return TRI_OK;
    held_free(h);
    return base_no_memory("a schedule of transfers");
}

void held_free(struct held *h) {
    free(h->node);
    free(h->index);
    free(h->since);
    *h = (struct held){0};
}

static int *since(const struct held *h, int host, int chunk, int node) {
    const size_t of = (size_t)host * (size_t)h->chunks + (size_t)chunk;
    return &h->since[of * (size_t)h->n + (size_t)h->index[node]];
}

int held_since(const struct held *h, int host, int chunk, int node) {
    return *since(h, host, chunk, node);
}

void held_add(struct held *h, int host, int chunk, int node, int round) {
    while (*since(h, host, chunk, node) > round) {
        *since(h, host, chunk, node) = round;
        const int sibling = h->tree->node[node].sibling;
        if (sibling < 0 || *since(h, host, chunk, sibling) == HELD_NEVER) return;
        node = h->tree->node[node].parent;
    }
}
