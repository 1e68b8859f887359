/* SPDX-License-Identifier: Apache-2.0
 * Units: what runs as one kernel. Most are single nodes; passes put several into one by giving them
 * the same number (tri_node.unit). A unit runs where the last of its nodes stands. */
#ifndef GRAPH_UNIT_H
#define GRAPH_UNIT_H

#include "graph/graph.h"

#define UNIT_MOST 64 /* nodes of one */

struct unit {
    tri_node **node; /* in the graph's order */
    int n;
    /* A single node: its inputs and outputs as they are. Several: what comes from outside, each
     * tensor once, and what is used outside, in the order of their first appearance. */
    tri_tensor **in, **out;
    int n_in, n_out;
};

struct units {
    struct unit *unit; /* in the order in which they run */
    size_t n;
    struct arena arena;
};

/* The units of a graph; nodes that only name what comes from outside (no inputs, no kernel) are in
 * none. Fails where nodes are put together that something between them depends on. */
tri_status units_of(const tri_graph *g, struct units *out);
void units_free(struct units *u);

/* Whether only the shape of input i of the unit is used. */
bool unit_shape_only(const struct unit *u, int i);

/* The tensor's place among the inputs, or outputs; -1: it is none. */
int unit_in(const struct unit *u, const tri_tensor *t);
int unit_out(const struct unit *u, const tri_tensor *t);

#endif
