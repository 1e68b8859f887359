/* SPDX-License-Identifier: Apache-2.0
 * How tensors lie in memory: as the device would have them, with as few reorders as can be. */
#ifndef PLAN_LAYOUT_H
#define PLAN_LAYOUT_H

#include "graph/target.h"

/* Nodes that the device leaves the choice follow their neighbours; where two disagree, a reorder
 * stands between them, one for each tensor and order. What the graph is given, and what it gives,
 * lies plainly. A graph in which something lies otherwise stays as it is. */
tri_status format_choose(tri_graph *g, const struct target *target);

#endif
