/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/lane_tree.h"

#include <stdlib.h>

static void join(struct lane_tree *t, int left, int right, int sum) {
    t->node[sum] = (struct lane_node){.parent = -1, .sibling = -1, .left = left, .right = right,
                                      .top = -1};
    t->node[left].parent = t->node[right].parent = sum;
    t->node[left].sibling = right;
    t->node[right].sibling = left;
}

/* Pushes the lanes on a stack; while the two topmost entries are of equal size, joins them. */
static void grow(struct lane_tree *t) {
    struct {
        int node, lanes;
    } stack[64];
    int depth = 0, n = t->lanes, last = t->lanes - 1;
    for (int lane = 0; lane < t->lanes; lane++) {
        t->node[lane] = (struct lane_node){-1, -1, -1, -1, -1};
        stack[depth].node = lane;
        stack[depth++].lanes = 1;
        while (depth > 1 && (stack[depth - 1].lanes == stack[depth - 2].lanes || lane == last)) {
            join(t, stack[depth - 2].node, stack[depth - 1].node, n);
            depth--;
            stack[depth - 1].node = n++;
            stack[depth - 1].lanes += stack[depth].lanes;
        }
    }
    t->n_nodes = n;
}

static void mark_tops(struct lane_tree *t, int node, int levels) {
    struct lane_node *n = &t->node[node];
    if (levels > 0 && n->left >= 0) {
        mark_tops(t, n->left, levels - 1);
        mark_tops(t, n->right, levels - 1);
        return;
    }
    n->top = t->n_tops;
    t->top[t->n_tops++] = node;
}

tri_status lane_tree_make(int64_t lanes, int levels, struct lane_tree *t) {
    *t = (struct lane_tree){0};
    if (lanes > LANE_TREE_MOST)
        return base_fail(TRI_USAGE, "%lld lanes; the most is %d", (long long)lanes,
                         LANE_TREE_MOST);
    t->lanes = (int)lanes;
    t->node = calloc(2 * (size_t)lanes, sizeof *t->node);
    t->top = calloc((size_t)lanes, sizeof *t->top);
    if (!t->node || !t->top) {
        lane_tree_free(t);
        return base_no_memory("the tree of lanes");
    }
    grow(t);
    mark_tops(t, t->n_nodes - 1, levels);
    return TRI_OK;
}

int lane_tree_first(const struct lane_tree *t, int node) {
    while (t->node[node].left >= 0) node = t->node[node].left;
    return node;
}

int lane_tree_last(const struct lane_tree *t, int node) {
    while (t->node[node].right >= 0) node = t->node[node].right;
    return node;
}

int lane_tree_depth(const struct lane_tree *t, int node) {
    int depth = 0;
    while ((node = t->node[node].parent) >= 0) depth++;
    return depth;
}

static int cut(const struct lane_tree *t, int node, int depth, int n, int *first) {
    const struct lane_node *is = &t->node[node];
    if (depth > 0 && is->left >= 0)
        return cut(t, is->right, depth - 1, cut(t, is->left, depth - 1, n, first), first);
    if (first) first[n] = lane_tree_first(t, node);
    return n + 1;
}

int lane_tree_cut(const struct lane_tree *t, int depth, int *first) {
    return cut(t, t->n_nodes - 1, depth, 0, first);
}

void lane_tree_free(struct lane_tree *t) {
    free(t->node);
    free(t->top);
    *t = (struct lane_tree){0};
}
