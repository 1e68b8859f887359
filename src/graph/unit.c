/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/unit.h"

#include <stdlib.h>
#include <string.h>

static bool together(const tri_node *a, const tri_node *b) {
    return a == b || (a->unit && a->unit == b->unit);
}

/* Marks tensors that are used outside of their unit. */
static void mark_used(const tri_graph *g, bool *used) {
    for (size_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->node[i]->n_in; k++)
            used[g->node[i]->in[k]->id] |= !together(g->node[i], g->node[i]->in[k]->node);
    graph_mark_results(g, used);
}

static int by_unit(const void *a, const void *b) {
    const tri_node *x = *(tri_node *const *)a, *y = *(tri_node *const *)b;
    if (x->unit != y->unit) return x->unit < y->unit ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static void add_once(tri_tensor **list, int *n, tri_tensor *t) {
    for (int i = 0; i < *n; i++)
        if (list[i] == t) return;
    list[(*n)++] = t;
}

static bool member(const struct unit *u, const tri_node *n) {
    return n->unit ? n->unit == u->node[0]->unit : n == u->node[0];
}

/* Finds the inputs and outputs of a unit whose nodes are known. */
static bool connect(struct unit *u, const bool *used, struct arena *a) {
    int in = 0, out = 0;
    for (int i = 0; i < u->n; i++) {
        in += u->node[i]->n_in;
        out += u->node[i]->n_out;
    }
    u->in = arena_alloc(a, (size_t)(in + 1) * sizeof(tri_tensor *));
    u->out = arena_alloc(a, (size_t)(out + 1) * sizeof(tri_tensor *));
    if (!u->in || !u->out) return false;
    for (int i = 0; i < u->n; i++) {
        tri_node *n = u->node[i];
        for (int k = 0; k < n->n_in; k++)
            if (u->n == 1)
                u->in[u->n_in++] = n->in[k];
            else if (!member(u, n->in[k]->node))
                add_once(u->in, &u->n_in, n->in[k]);
        for (int k = 0; k < n->n_out; k++)
            if (u->n == 1 || used[n->out[k].id]) u->out[u->n_out++] = &n->out[k];
    }
    return true;
}

/* sorted: all nodes that run; the nodes of a unit are adjacent, in order. */
static bool collect(const tri_graph *g, tri_node **sorted, size_t n, const bool *used,
                    struct units *out) {
    out->unit = arena_alloc(&out->arena, (n + 1) * sizeof *out->unit);
    struct unit **ends = arena_alloc(&out->arena, (g->n_nodes + 1) * sizeof(struct unit *));
    struct unit *all = arena_alloc(&out->arena, (n + 1) * sizeof *all);
    if (!out->unit || !ends || !all) return false;
    memset(ends, 0, (g->n_nodes + 1) * sizeof(struct unit *));
    for (size_t i = 0, size; i < n; i += size) {
        for (size = 1; i + size < n && together(sorted[i], sorted[i + size]);) size++;
        *all = (struct unit){.node = &sorted[i], .n = (int)size};
        if (!connect(all, used, &out->arena)) return false;
        ends[sorted[i + size - 1]->id] = all++;
    }
    for (size_t i = 0; i < g->n_nodes; i++)
        if (ends[i]) out->unit[out->n++] = *ends[i];
    return true;
}

/* Whether each unit reads only what earlier units have computed. */
static tri_status check_order(const tri_graph *g, const struct units *u) {
    size_t *at = calloc(g->n_nodes + 1, sizeof *at); /* of nodes that run, counted from 1 */
    if (!at) return base_no_memory("units");
    for (size_t i = 0; i < u->n; i++)
        for (int k = 0; k < u->unit[i].n; k++) at[u->unit[i].node[k]->id] = i + 1;
    tri_status status = TRI_OK;
    for (size_t i = 0; i < u->n && !status; i++)
        for (int k = 0; k < u->unit[i].n_in && !status; k++)
            if (at[u->unit[i].in[k]->node->id] > i)
                status = base_fail(TRI_USAGE, "%s runs before %s, which it needs: the nodes of "
                                   "unit ~%d cannot run as one",
                                   u->unit[i].node[0]->name, u->unit[i].in[k]->node->name,
                                   u->unit[i].in[k]->node->unit);
    free(at);
    return status;
}

tri_status units_of(const tri_graph *g, struct units *out) {
    *out = (struct units){0};
    bool *used = calloc((size_t)g->n_tensors + 1, sizeof *used);
    tri_node **sorted = arena_alloc(&out->arena, (g->n_nodes + 1) * sizeof(tri_node *));
    size_t n = 0;
    bool ok = used && sorted;
    for (size_t i = 0; ok && i < g->n_nodes; i++)
        if (node_runs(g->node[i])) sorted[n++] = g->node[i];
    if (ok) {
        qsort(sorted, n, sizeof *sorted, by_unit);
        mark_used(g, used);
        ok = collect(g, sorted, n, used, out);
    }
    free(used);
    tri_status status = ok ? check_order(g, out) : base_no_memory("units");
    if (status) units_free(out);
    return status;
}

void units_free(struct units *u) {
    arena_free(&u->arena);
    *u = (struct units){0};
}

bool unit_has_one_owner(const tri_node *const *node, int n) {
    for (int i = 1; i < n; i++)
        if (node[i]->leg != node[0]->leg ||
            memcmp(node[i]->owner, node[0]->owner, sizeof node[0]->owner))
            return false;
    return true;
}

bool unit_shape_only(const struct unit *u, int i) {
    for (int j = 0; j < u->n; j++)
        for (int k = 0; k < u->node[j]->n_in; k++)
            if (u->node[j]->in[k] == u->in[i] && (u->n > 1 || k == i) &&
                node_reads(u->node[j], k))
                return false;
    return true;
}

int unit_in(const struct unit *u, const tri_tensor *t) {
    for (int i = 0; i < u->n_in; i++)
        if (u->in[i] == t) return i;
    return -1;
}

int unit_out(const struct unit *u, const tri_tensor *t) {
    for (int i = 0; i < u->n_out; i++)
        if (u->out[i] == t) return i;
    return -1;
}
