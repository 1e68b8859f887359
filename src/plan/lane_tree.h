/* SPDX-License-Identifier: Apache-2.0
 * The fixed binary tree over the lanes through which everything goes that a lane yields. Its shape
 * follows from the number of lanes alone: two neighbours of equal size are one node, and what is left
 * at the end is put together from the right: V = 6 gives ((0+1)+(2+3))+(4+5).
 *
 * The uppermost sums are made where they are used, block by block, rather than beforehand: the *tops*
 * are the nodes below them, from left to right. How many levels are left to the user changes no bit. */
#ifndef PLAN_LANE_TREE_H
#define PLAN_LANE_TREE_H

#include "base/base.h"

struct lane_node {
    int parent, sibling; /* -1: the root */
    int left, right;     /* -1: a lane */
    int top;             /* which of the tops it is; -1: none */
};

struct lane_tree {
    int lanes, n_nodes; /* the lanes, then the sums; the last is the root */
    struct lane_node *node;
    int n_tops;
    int *top; /* their nodes */
};

#define LANE_TREE_MOST 16384 /* lanes */

/* levels: how many levels of sums, counted from the root, are left to who uses them. */
tri_status lane_tree_make(int64_t lanes, int levels, struct lane_tree *out);
void lane_tree_free(struct lane_tree *t);

#endif
