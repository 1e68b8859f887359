/* SPDX-License-Identifier: Apache-2.0
 * What the nodes of a backward pass belong to. */
#ifndef PLAN_FORWARD_H
#define PLAN_FORWARD_H

#include "graph/graph.h"

/* By node: the earlier one that tri_node.of names, or null. To be freed; null: out of memory. */
tri_node **forward_nodes(const tri_graph *g);

/* The node that a copy made by recompute repeats; null: n is no copy. */
const tri_node *forward_repeated(tri_node *const *forward, const tri_node *n);

/* Input i; of a copy the repeated tensor, so that computing again changes no decision. */
const tri_tensor *forward_input(tri_node *const *forward, const tri_node *n, int i);

#endif
