/* SPDX-License-Identifier: Apache-2.0
 * The fixed binary tree in which the results of lanes are summed. Its shape follows from the number
 * of lanes alone: two neighbours of equal size have a common parent, and the remaining nodes are
 * joined from the right: 6 lanes give ((0+1)+(2+3))+(4+5).
 *
 * The uppermost sums are computed where they are used, block by block, instead of in advance. The
 * *tops* are the nodes below these sums, from left to right. The number of such levels changes no
 * bit. */
#ifndef PLAN_LANE_TREE_H
#define PLAN_LANE_TREE_H

#include "base/base.h"

struct lane_node {
    int parent, sibling; /* -1: the root */
    int left, right;     /* -1: a lane */
    int top;             /* its index among the tops; -1: it is none */
};

struct lane_tree {
    int lanes, n_nodes; /* nodes: the lanes, then the sums; the last is the root */
    struct lane_node *node;
    int n_tops;
    int *top; /* by index: the node */
};

#define LANE_TREE_MOST 16384 /* lanes */

/* levels: how many levels of sums, counted from the root, are computed where they are used. */
tri_status lane_tree_make(int64_t lanes, int levels, struct lane_tree *out);
void lane_tree_free(struct lane_tree *t);
/* The lanes below a node are neighbours: the first and the last. */
int lane_tree_first(const struct lane_tree *t, int node);
int lane_tree_last(const struct lane_tree *t, int node);
/* How many sums there are above a node. */
int lane_tree_depth(const struct lane_tree *t, int node);
/* How many nodes are left if those with fewer than `depth` sums above them are taken apart, lanes
 * excepted. first (nullable): of each, its first lane, from left to right. */
int lane_tree_cut(const struct lane_tree *t, int depth, int *first);

#endif
