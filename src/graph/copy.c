/* SPDX-License-Identifier: Apache-2.0
 * Copying nodes into other graphs, for passes. */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

tri_graph *graph_like(const tri_graph *g) {
    tri_graph *like = tri_graph_new(g->batch);
    if (like) like->lanes = g->lanes, like->native = g->native, like->mesh = g->mesh;
    return like;
}

void graph_format_like(tri_tensor *t, const tri_tensor *like) {
    t->block = like->block;
    memcpy(t->pack, like->pack, sizeof t->pack);
}

/* Copies what passes have recorded in a node. */
static void annotate(tri_node *copy, const tri_node *n) {
    for (int i = 0; i < n->n_out && i < copy->n_out; i++)
        graph_format_like(&copy->out[i], &n->out[i]);
    copy->backward = n->backward;
    copy->stage = n->stage;
    copy->leg = n->leg;
    copy->of = n->of ? arena_copy(&copy->graph->arena, n->of) : NULL;
    memcpy(copy->owner, n->owner, sizeof copy->owner);
    copy->move = n->move;
}

/* The file's name in the graph's own arena, as the copy may outlive the original. Consecutive nodes
 * of one file share it. */
static const char *own_file(tri_graph *g, const char *file) {
    const char *last = g->n_nodes ? g->node[g->n_nodes - 1]->file : NULL;
    if (!file) return "";
    if (last && !strcmp(last, file)) return last;
    file = arena_copy(&g->arena, file);
    return file ? file : "";
}

tri_node *graph_copy(tri_graph *g, const tri_node *n, tri_tensor *const *in, const tri_attr *attrs,
                     const char *name) {
    const char *file = g->file;
    int line = g->line;
    g->file = own_file(g, n->file);
    g->line = n->line;
    tri_node *copy = graph_add(g, n->entry, in, n->n_in, attrs, name);
    g->file = file;
    g->line = line;
    if (copy != g->poison_node) annotate(copy, n);
    return copy;
}

/* The new list is no longer than the old one, so it fits in the same array. */
void graph_arrange(tri_graph *g, tri_node *const *order, size_t n) {
    CHECK(n <= g->n_nodes);
    g->n_tensors = 0;
    for (size_t i = 0; i < n; i++) {
        g->node[i] = order[i];
        g->node[i]->id = (int)i;
        for (int k = 0; k < g->node[i]->n_out; k++) g->node[i]->out[k].id = g->n_tensors++;
    }
    g->n_nodes = n;
}

void graph_sources_first(tri_graph *g) {
    tri_node **order = malloc((g->n_nodes + 1) * sizeof(tri_node *));
    size_t n = 0;
    for (int runs = 0; order && runs < 2; runs++)
        for (size_t i = 0; i < g->n_nodes; i++)
            if (node_runs(g->node[i]) == runs) order[n++] = g->node[i];
    if (order) graph_arrange(g, order, n);
    else graph_fail(g, TRI_FAILED, "out of memory for the graph");
    free(order);
}
