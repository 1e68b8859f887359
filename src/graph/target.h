/* SPDX-License-Identifier: Apache-2.0
 * What passes ask of the device that a graph is made for. All may be null. */
#ifndef GRAPH_TARGET_H
#define GRAPH_TARGET_H

#include "graph/graph.h"

/* How a tensor is to lie: as tri_tensor's block and pack say. */
#define FORMAT_ANY -1
struct format {
    int block; /* or FORMAT_ANY */
    char pack[PACK_TEXT];
};

struct target {
    /* Whether it runs these nodes, in the graph's order, as one unit. Asked as a unit grows: without
     * the last node it does, or they are a joint of units that it does. */
    bool (*fuses)(const tri_node *const *node, int n);
    /* Whether this one may head a unit: others that fuse with it are brought to stand behind it. */
    bool (*heads)(const tri_node *n);
    /* Whether Winograd's way pays for a node that has the choice: asked of a graph of the whole batch,
     * for one lane. Null: never. */
    bool (*winograd)(const tri_node *n);
    /* How it would have a node's tensors lie, in and out being plain before. Those that may have any
     * block, all of them the same one, become FORMAT_ANY. Null: all plain. */
    void (*formats)(const tri_node *n, struct format *in, struct format *out);
    /* Null if it has instructions for products of this type, else what it lacks: a static text. */
    const char *(*lacks)(tri_type type);
};

#endif
