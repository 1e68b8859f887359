/* SPDX-License-Identifier: Apache-2.0
 * What passes ask the device for which a graph is compiled. Each function may be null. */
#ifndef GRAPH_TARGET_H
#define GRAPH_TARGET_H

#include "graph/graph.h"

/* A tensor's memory order, as tri_tensor's block and pack. */
#define FORMAT_ANY -1
struct format {
    int block; /* or FORMAT_ANY */
    char pack[PACK_TEXT];
};

/* How a convolution is computed, its attribute "way". All parts of a node that a mesh splits have
 * that of the whole. */
enum conv_way {
    WAY_BY_SIZES,  /* any but Winograd's, as the node's sizes suggest */
    WAY_WINOGRAD,  /* Winograd's algorithm, which has fewer products and rounds differently */
    WAY_OF_DEVICE, /* this and greater ones: the device's own */
};

struct target {
    /* Whether it runs these nodes, in the graph's order, as one unit. Asked while a unit grows: it
     * runs them without the last node, or they are a union of units that it runs. */
    bool (*fuses)(const tri_node *const *node, int n);
    /* Whether the node may head a unit: nodes that fuse with it are moved to directly after it. */
    bool (*heads)(const tri_node *n);
    /* The best way for a convolution, WAY_WINOGRAD only if it may be that. The graph is that of the
     * whole batch, the answer is for one lane. Null: there is only one. */
    int (*convolution)(const tri_node *n, bool winograd);
    /* Sets the formats that it prefers for a node's tensors; `in` and `out` are plain before.
     * Tensors that may have any block, but all the same one, become FORMAT_ANY. Null: all plain. */
    void (*formats)(const tri_node *n, struct format *in, struct format *out);
    /* Null if it has products of this type, else what it lacks (a static text). */
    const char *(*lacks)(tri_type type);
    /* Null if it has a library for products of 16-bit numbers (--math native), else what it lacks.
     * advises: a line for the user if that would be faster, else null. */
    const char *(*native)(void);
    const char *(*advises)(void);
};

#endif
