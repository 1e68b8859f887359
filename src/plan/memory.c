/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/memory.h"

#include <stdlib.h>
#include <string.h>

struct hole {
    size_t begin, end;
};

/* The free parts of the arena in the order of their offsets; the last one is open-ended. */
struct holes {
    struct hole *hole;
    size_t n, capacity;
    size_t top; /* the highest offset ever used */
};

static size_t rounded(const tri_tensor *t) {
    return (base_spec_bytes(&t->spec) + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN;
}

/* First fit. */
static size_t take(struct holes *h, size_t bytes) {
    size_t i = 0;
    while (h->hole[i].end - h->hole[i].begin < bytes) i++;
    size_t at = h->hole[i].begin;
    h->hole[i].begin += bytes;
    if (h->hole[i].begin == h->hole[i].end)
        memmove(&h->hole[i], &h->hole[i + 1], (--h->n - i) * sizeof *h->hole);
    if (at + bytes > h->top) h->top = at + bytes;
    return at;
}

static bool give(struct holes *h, size_t begin, size_t bytes) {
    if (!ARRAY_GROW(h->hole, h->n, h->capacity)) return false;
    size_t i = 0;
    while (h->hole[i].begin < begin) i++;
    memmove(&h->hole[i + 1], &h->hole[i], (h->n++ - i) * sizeof *h->hole);
    h->hole[i] = (struct hole){begin, begin + bytes};
    for (size_t k = i + 1; k > 0 && k + 1 > i; k--) { /* join with the next, then the previous */
        if (k >= h->n || h->hole[k - 1].end != h->hole[k].begin) continue;
        h->hole[k - 1].end = h->hole[k].end;
        memmove(&h->hole[k], &h->hole[k + 1], (--h->n - k) * sizeof *h->hole);
    }
    return true;
}

/* The last node that reads each tensor; n_nodes where it lives to the end, its own node where
 * nobody reads it. */
static void last_uses(const tri_graph *g, int *last) {
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tri_node *n = g->node[i];
        for (int k = 0; k < n->n_out; k++) last[n->out[k].id] = n->id;
        for (int k = 0; k < n->n_in; k++)
            if (!(k < 32 && n->entry->op->shape_only >> k & 1)) last[n->in[k]->id] = n->id;
    }
    for (size_t i = 0; i < g->n_outputs; i++) last[g->output[i].tensor->id] = (int)g->n_nodes;
    for (size_t i = 0; i < g->n_updates; i++) {
        last[g->update[i].value->id] = (int)g->n_nodes;
        if (g->update[i].condition) last[g->update[i].condition->id] = (int)g->n_nodes;
    }
}

/* Tensors that die at a node are listed by it: first[node] leads to a chain of tensors. */
static bool plan(const tri_graph *g, size_t *offset, struct holes *h, int *last, int *first,
                 int *next, const tri_tensor **tensor) {
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tri_node *n = g->node[i];
        for (int k = 0; k < n->n_out; k++) {
            const tri_tensor *t = &n->out[k];
            if (offset[t->id] == MEMORY_OUTSIDE) continue;
            offset[t->id] = take(h, rounded(t));
            tensor[t->id] = t;
            next[t->id] = first[last[t->id]];
            first[last[t->id]] = t->id;
        }
        for (int id = first[i]; id >= 0; id = next[id])
            if (!give(h, offset[id], rounded(tensor[id]))) return false;
    }
    return true;
}

bool memory_plan(const tri_graph *g, size_t *offset, size_t *total) {
    size_t tensors = (size_t)g->n_tensors + 1;
    struct holes h = {0};
    int *last = calloc(tensors, sizeof *last), *next = calloc(tensors, sizeof *next);
    int *first = malloc((g->n_nodes + 1) * sizeof *first);
    const tri_tensor **tensor = calloc(tensors, sizeof *tensor);
    bool ok = last && next && first && tensor && ARRAY_GROW(h.hole, h.n, h.capacity);
    if (ok) {
        for (size_t i = 0; i <= g->n_nodes; i++) first[i] = -1;
        h.hole[h.n++] = (struct hole){0, SIZE_MAX};
        last_uses(g, last);
        ok = plan(g, offset, &h, last, first, next, tensor);
        *total = h.top;
    }
    free(last);
    free(next);
    free(first);
    free(tensor);
    free(h.hole);
    return ok;
}
