/* SPDX-License-Identifier: Apache-2.0
 * Units: nodes that run as one kernel. Most units are single nodes; passes combine several by
 * giving them the same number (tri_node.unit). A unit runs in the place of its last node. */
#ifndef GRAPH_UNIT_H
#define GRAPH_UNIT_H

#include "graph/graph.h"

#define UNIT_MOST 64 /* nodes per unit */

struct unit {
    tri_node **node; /* in the graph's order */
    int n;
    /* Of a single node its inputs and outputs. Of several nodes the tensors from outside, each
     * once, and those used outside, in the order of their first appearance. */
    tri_tensor **in, **out;
    int n_in, n_out;
};

struct units {
    struct unit *unit; /* in the order in which they run */
    size_t n;
    struct arena arena;
};

/* The units of a graph. Sources, which do not run, are in none. Fails if a unit cannot run as one:
 * a node between its nodes depends on one of them and is needed by another. */
tri_status units_of(const tri_graph *g, struct units *out);
void units_free(struct units *u);

/* Whether the same seats of a mesh compute all n nodes. A unit never crosses owners. */
bool unit_has_one_owner(const tri_node *const *node, int n);

/* Whether only the shape of input i of the unit is used. */
bool unit_shape_only(const struct unit *u, int i);

/* The tensor's index among the inputs or outputs; -1: it is none of them. */
int unit_in(const struct unit *u, const tri_tensor *t);
int unit_out(const struct unit *u, const tri_tensor *t);

#endif
