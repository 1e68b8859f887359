/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/replay.h"

#include <stdlib.h>

struct replay {
    tri_graph *g;
    tri_node **old;
    size_t n;
    tri_tensor **now; /* by the number of a tensor that goes: what takes its place */
};

/* Nodes that go have number -1; their tensors keep the numbers they had. */
static tri_tensor *now(const struct replay *r, tri_tensor *t) {
    return t && t->node->backward && t->node->id < 0 ? r->now[t->id] : t;
}

static void append(struct replay *r, tri_node *n) {
    tri_graph *g = r->g;
    if (!ARRAY_GROW(g->node, g->n_nodes, g->node_capacity)) {
        graph_fail(g, TRI_FAILED, "out of memory for gradients");
        return;
    }
    for (int k = 0; k < n->n_in; k++) n->in[k] = now(r, n->in[k]);
    n->id = (int)g->n_nodes;
    g->node[g->n_nodes++] = n;
    for (int k = 0; k < n->n_out; k++) n->out[k].id = g->n_tensors++;
}

static void repeat(struct replay *r, struct graph_gradient d) {
    tri_tensor **wrt = calloc(2 * (size_t)d.n + 1, sizeof *wrt);
    if (!wrt) {
        graph_fail(r->g, TRI_FAILED, "out of memory for gradients");
        return;
    }
    tri_tensor **out = wrt + d.n;
    for (int i = 0; i < d.n; i++) wrt[i] = now(r, d.pair[2 * i]);
    tri_grad(now(r, d.y), wrt, d.n, out);
    for (int i = 0; i < d.n && !r->g->status; i++) {
        const tri_tensor *was = d.pair[2 * i + 1];
        r->now[was->id] = tri_cast(out[i], was->spec.type);
    }
    free(wrt);
}

/* The names of nodes that go are free again. */
static bool forget(struct replay *r) {
    tri_graph *g = r->g;
    bool ok = true;
    free(g->names.slot);
    g->names = (struct names){0};
    for (size_t i = 0; i < r->n; i++)
        if (r->old[i]->backward) r->old[i]->id = -1;
        else ok = ok && graph_unique(g, r->old[i]->name);
    g->node = NULL;
    g->n_nodes = g->node_capacity = 0;
    g->n_tensors = 0;
    return ok;
}

static void restore_results(const struct replay *r) {
    tri_graph *g = r->g;
    for (size_t i = 0; i < g->n_outputs; i++) g->output[i].tensor = now(r, g->output[i].tensor);
    for (size_t i = 0; i < g->n_updates; i++) {
        g->update[i].value = now(r, g->update[i].value);
        g->update[i].condition = now(r, g->update[i].condition);
    }
    g->loss = now(r, g->loss);
}

tri_status replay_gradients(tri_graph *g) {
    struct replay r = {g, g->node, g->n_nodes, calloc((size_t)g->n_tensors + 1, sizeof *r.now)};
    size_t calls = g->n_gradients;
    if (!r.now) return base_no_memory("gradients");
    if (!forget(&r)) graph_fail(g, TRI_FAILED, "out of memory for gradients");
    for (size_t i = 0; i < r.n && !g->status; i++) {
        if (!r.old[i]->backward) append(&r, r.old[i]);
        for (size_t k = 0; k < calls && !g->status; k++)
            if (g->gradient[k].first->node == r.old[i]) repeat(&r, g->gradient[k]);
    }
    if (!g->status) restore_results(&r);
    free(r.now);
    free(r.old);
    return tri_graph_status(g);
}
