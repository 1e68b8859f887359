/* SPDX-License-Identifier: Apache-2.0
 * What passes ask of the device that a graph is made for. All may be null. */
#ifndef GRAPH_TARGET_H
#define GRAPH_TARGET_H

#include "graph/graph.h"

struct target {
    /* Whether it runs these nodes, in the graph's order, as one unit. Asked as a unit grows: without
     * the last node it does, or they are a joint of units that it does. */
    bool (*fuses)(const tri_node *const *node, int n);
};

#endif
