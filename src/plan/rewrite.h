/* SPDX-License-Identifier: Apache-2.0
 * Changing a graph in place. A pass walks the nodes that there were, in order; each stays, gives
 * way to other tensors, or has new nodes put before it:
 *
 *     for (size_t i = 0; rewrite_next(&r, i); i++) {
 *         if (...) rewrite_replace(&r, n->out, by);
 *         if (...) rewrite_keep(&r, n);
 *     }
 *     return rewrite_end(&r);
 */
#ifndef PLAN_REWRITE_H
#define PLAN_REWRITE_H

#include "graph/graph.h"

struct rewrite {
    tri_graph *g;
    size_t n_nodes;   /* when it began */
    int n_tensors;
    tri_tensor **now; /* by tensor number: what stands for it; null: itself */
    tri_node **order; /* what stays, and what is new */
    size_t n, capacity;
    size_t taken;     /* nodes of the graph that are in the order or left out */
    bool failed;
};

void rewrite_begin(struct rewrite *r, tri_graph *g);

/* Node i, whose inputs have become what now stands for them. Null behind the last, or when
 * something failed. */
tri_node *rewrite_next(struct rewrite *r, size_t i);

/* The node stays, behind new ones that were made since the last that did. */
void rewrite_keep(struct rewrite *r, tri_node *n);

void rewrite_replace(struct rewrite *r, const tri_tensor *t, tri_tensor *by);
tri_tensor *rewrite_now(const struct rewrite *r, tri_tensor *t);

/* Between these, new nodes are named "NAME.WHAT.op" after node n, whose scopes they thus are in, and
 * stand at its line; they are backward if n is. */
void rewrite_enter(struct rewrite *r, const tri_node *n, const char *what);
void rewrite_leave(struct rewrite *r);

/* The graph becomes what was kept. On failure, with a message, it is of no more use. */
tri_status rewrite_end(struct rewrite *r);

#endif
