/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/rewrite.h"

#include <stdlib.h>
#include <string.h>

void rewrite_begin(struct rewrite *r, tri_graph *g) {
    *r = (struct rewrite){.g = g, .n_nodes = g->n_nodes, .n_tensors = g->n_tensors,
                          .taken = g->n_nodes};
    r->now = calloc((size_t)g->n_tensors + 1, sizeof(tri_tensor *));
    r->failed = !r->now;
}

/* The poison tensor, which builders return when they fail, has number -1. */
tri_tensor *rewrite_now(const struct rewrite *r, tri_tensor *t) {
    bool known = t && t->id >= 0 && t->id < r->n_tensors;
    return known && r->now[t->id] ? r->now[t->id] : t;
}

/* The replacement itself is never replaced later, as its node comes earlier. */
void rewrite_replace(struct rewrite *r, const tri_tensor *t, tri_tensor *by) {
    r->now[t->id] = rewrite_now(r, by);
}

tri_node *rewrite_next(struct rewrite *r, size_t i) {
    if (r->failed || r->g->status || i >= r->n_nodes) return NULL;
    tri_node *n = r->g->node[i];
    for (int k = 0; k < n->n_in; k++) n->in[k] = rewrite_now(r, n->in[k]);
    return n;
}

static void put(struct rewrite *r, tri_node *n) {
    if (!r->failed) r->failed = !ARRAY_GROW(r->order, r->n, r->capacity);
    if (!r->failed) r->order[r->n++] = n;
}

static void put_new(struct rewrite *r) {
    while (r->taken < r->g->n_nodes) put(r, r->g->node[r->taken++]);
}

void rewrite_keep(struct rewrite *r, tri_node *n) {
    put_new(r);
    put(r, n);
}

void rewrite_enter(struct rewrite *r, const tri_node *n, const char *what) {
    tri_push(r->g, "%s.%s", n->name, what);
    r->g->file = n->file ? n->file : "";
    r->g->line = n->line;
    r->g->backward = n->backward;
    r->g->of = n->of;
}

void rewrite_leave(struct rewrite *r) {
    tri_pop(r->g);
    r->g->file = NULL;
    r->g->backward = false;
    r->g->of = NULL;
}

tri_status rewrite_end(struct rewrite *r) {
    tri_graph *g = r->g;
    tri_status status = tri_graph_status(g);
    put_new(r);
    if (!status && r->failed) status = base_no_memory("a pass over the graph");
    for (size_t i = 0; !status && i < g->n_outputs; i++)
        g->output[i].tensor = rewrite_now(r, g->output[i].tensor);
    for (size_t i = 0; !status && i < g->n_updates; i++) {
        g->update[i].value = rewrite_now(r, g->update[i].value);
        g->update[i].condition = rewrite_now(r, g->update[i].condition);
    }
    if (!status) {
        g->loss = rewrite_now(r, g->loss);
        graph_arrange(g, r->order, r->n);
    }
    free(r->now);
    free(r->order);
    return status;
}
