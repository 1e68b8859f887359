/* SPDX-License-Identifier: Apache-2.0
 * Makes the graph of a lane that contains the nodes of all seats of a mesh. A node has an instance
 * per coordinate along each axis that it is split along, or computes partial results along; along
 * other axes one instance is shared. Slices, concats and fixed trees of sums bring tensors into the
 * layouts that nodes need: there are no other collectives. */
#ifndef PLAN_EXPAND_H
#define PLAN_EXPAND_H

#include "plan/dist.h"

/* The expanded graph, with the owner of each node and the move it belongs to. Null with a
 * message. */
tri_graph *expand(const struct dist *d);

#endif
