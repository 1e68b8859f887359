/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/legs.h"

#include <stdio.h>
#include <stdlib.h>

#include "plan/lanes.h"

/* ---- numbers ---- */

struct legs legs_of(int stages, bool weights) {
    return (struct legs){stages ? stages * (weights ? 3 : 2) : 1, stages, weights};
}

struct leg legs_at(const struct legs *l, int number) {
    int per = l->weights ? 2 : 1, back = number - l->stages;
    if (back < 0) return (struct leg){number, LEG_FORWARD};
    return (struct leg){l->stages - 1 - back / per, back % per ? LEG_WEIGHTS : LEG_BACKWARD};
}

int legs_number(const struct legs *l, struct leg leg) {
    int per = l->weights ? 2 : 1;
    if (leg.kind == LEG_FORWARD) return leg.stage;
    if (leg.kind == LEG_WEIGHTS && !l->weights) return -1;
    return l->stages + (l->stages - 1 - leg.stage) * per + (leg.kind == LEG_WEIGHTS);
}

char legs_letter(enum leg_kind kind) { return "FBW"[kind]; }

void legs_name(const struct legs *l, int number, char name[LEG_TEXT]) {
    struct leg leg = legs_at(l, number);
    snprintf(name, LEG_TEXT, "%c%d", legs_letter(leg.kind), leg.stage);
}

struct leg_set *legs_readers(const tri_graph *g) {
    struct leg_set *readers = calloc((size_t)g->n_tensors + 1, sizeof *readers);
    for (size_t i = 0; readers && i < g->n_nodes; i++) {
        const tri_node *n = g->node[i];
        for (int k = 0; k < n->n_in; k++) {
            const tri_tensor *t = n->in[k];
            if (node_runs(t->node) && node_reads(n, k) && t->node->leg != n->leg)
                leg_set_add(&readers[t->id], n->leg);
        }
    }
    return readers;
}

/* ---- which leg computes a node ---- */

enum { ANYWHERE = -1 };

static int later(int a, int b) { return a > b ? a : b; }

/* The leg of its stage, or that of its latest input. Nodes that depend on sources alone may run
 * anywhere. */
static void assign_forth(tri_graph *g, const struct legs *l) {
    for (size_t i = 0; i < g->n_nodes; i++) {
        tri_node *n = g->node[i];
        n->leg = ANYWHERE;
        if (!node_runs(n)) continue;
        if (n->stage >= 0 && n->stage < l->stages)
            n->leg = legs_number(l, (struct leg){n->stage, n->backward ? LEG_BACKWARD
                                                                       : LEG_FORWARD});
        for (int k = 0; k < n->n_in; k++) n->leg = later(n->leg, n->in[k]->node->leg);
    }
}

/* Nodes that may run anywhere run where they are needed first. */
static void assign_back(tri_graph *g) {
    for (size_t i = g->n_nodes; i-- > 0;) {
        const tri_node *n = g->node[i];
        for (int k = 0; k < n->n_in; k++) {
            tri_node *from = n->in[k]->node;
            bool floats = node_runs(from) && (from->leg == ANYWHERE || from->leg > n->leg);
            if (floats) from->leg = n->leg;
        }
    }
    for (size_t i = 0; i < g->n_nodes; i++)
        if (g->node[i]->leg == ANYWHERE) g->node[i]->leg = 0;
}

/* What no other leg needs of a backward leg only computes gradients of weights. */
static tri_status split_weights(tri_graph *g, const struct legs *l) {
    bool *needed = calloc(g->n_nodes + 1, sizeof *needed);
    if (!needed) return base_no_memory("legs");
    for (size_t i = g->n_nodes; i-- > 0;) {
        const tri_node *n = g->node[i];
        for (int k = 0; k < n->n_in; k++) {
            const tri_node *from = n->in[k]->node;
            needed[from->id] |= needed[i] || from->leg != n->leg;
        }
    }
    for (size_t i = 0; i < g->n_nodes; i++) {
        tri_node *n = g->node[i];
        if (node_runs(n) && !needed[i] && legs_at(l, n->leg).kind == LEG_BACKWARD) n->leg++;
    }
    free(needed);
    return TRI_OK;
}

/* ---- what goes from leg to leg ---- */

/* Results of the lane that later legs read. */
static void copy_results(tri_graph *g, const struct leg_set *readers) {
    int n = g->n_tensors;
    for (size_t i = 0; i < g->n_outputs && !g->status; i++) {
        tri_tensor *t = g->output[i].tensor;
        if (t->id >= n || leg_set_is_empty(&readers[t->id])) continue;
        tri_tensor *copy = (tri_reshape)(t, t->spec.shape);
        copy->node->leg = t->node->leg;
        copy->node->backward = t->node->backward;
        graph_format_like(copy, t);
        g->output[i].tensor = copy;
    }
}

static void hand_over(tri_graph *g, const struct leg_set *readers, int n, int handed) {
    for (size_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->node[i]->n_out; k++) {
            tri_tensor *t = &g->node[i]->out[k];
            if (t->id < n && !leg_set_is_empty(&readers[t->id]))
                phase_put(g, handed++, t);
        }
}

static bool arrange(tri_graph *g, int legs) {
    tri_node **order = calloc(g->n_nodes + 1, sizeof *order);
    size_t n = 0;
    for (int leg = -1; order && leg < legs; leg++) /* first the sources */
        for (size_t i = 0; i < g->n_nodes; i++) {
            tri_node *node = g->node[i];
            if (leg < 0 ? !node_runs(node) : node_runs(node) && node->leg == leg) order[n++] = node;
        }
    if (order) graph_arrange(g, order, n);
    free(order);
    return order;
}

tri_status legs_cut(tri_graph *g, const struct legs *l, int handed) {
    assign_forth(g, l);
    assign_back(g);
    tri_status status = l->weights ? split_weights(g, l) : TRI_OK;
    struct leg_set *readers = status ? NULL : legs_readers(g);
    if (!status && !readers) status = base_no_memory("legs");
    if (!status) {
        int n = g->n_tensors;
        g->legs = l->n;
        g->handed = handed;
        copy_results(g, readers);
        hand_over(g, readers, n, handed);
        status = tri_graph_status(g);
    }
    free(readers);
    if (!status && !arrange(g, l->n)) status = base_no_memory("legs");
    return status;
}
