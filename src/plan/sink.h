/* SPDX-License-Identifier: Apache-2.0
 * The opposite of hoist (ZeRO level 3): what depends on weights alone, such as weights in another
 * type or packed, is computed in the lanes, again for each operator that reads it, and dropped
 * after it. It costs time and saves the memory of all these copies. */
#ifndef PLAN_SINK_H
#define PLAN_SINK_H

#include "graph/graph.h"

/* Copies what the lane takes from `pre` and depends on weights alone to where it is read. */
tri_status sink(const tri_graph *pre, tri_graph *lane);

/* Removes from `pre` the results that none of the n graphs, some of which may be null, takes any
 * more, and what only they need; it is freed and null if nothing is left. */
tri_status sink_forget(tri_graph **pre, tri_graph *const *graph, size_t n);

#endif
