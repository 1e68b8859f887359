/* SPDX-License-Identifier: Apache-2.0
 * What passes ask of the device that a graph is made for. All may be null. */
#ifndef GRAPH_TARGET_H
#define GRAPH_TARGET_H

#include "graph/graph.h"

enum { LAYOUT_ANY = -1 };

struct target {
    /* Whether it runs these nodes, in the graph's order, as one unit. Asked as a unit grows: without
     * the last node it does, or they are a joint of units that it does. */
    bool (*fuses)(const tri_node *const *node, int n);
    /* How it would have a node's tensors lie: a block for each input and output (tri_tensor.block; 0:
     * plain), or LAYOUT_ANY for those that may have any block, all of them the same one. False: all
     * plain. Null: always. */
    bool (*lays)(const tri_node *n, int *in, int *out);
    /* Null if it has instructions for products of this type, else what it lacks: a static text. */
    const char *(*lacks)(tri_type type);
};

#endif
