/* SPDX-License-Identifier: Apache-2.0
 * Orders a graph's units so that they need less memory at once. */
#ifndef PLAN_ORDER_H
#define PLAN_ORDER_H

#include "graph/graph.h"

/* Units that free at least as much memory as they take run as early as possible; the others keep
 * their order. The old order stays if the new one needs no less memory. The result depends on the
 * graph alone; all results keep their bits. */
tri_status order_for_memory(tri_graph *g);

#endif
