/* SPDX-License-Identifier: Apache-2.0
 * The order in which a graph's units run, so that less memory is needed at once. */
#ifndef PLAN_ORDER_H
#define PLAN_ORDER_H

#include "graph/graph.h"

/* What frees more than it takes runs as soon as it can, else all is as it was; and all stays as it
 * was if that needs no less. A function of the graph alone; every result keeps its bits. */
tri_status order_for_memory(tri_graph *g);

#endif
