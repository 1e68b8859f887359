/* SPDX-License-Identifier: Apache-2.0
 * Changes a graph in place. A pass walks the nodes in order. It keeps a node, replaces its outputs
 * by other tensors, or inserts new nodes before it:
 *
 *     for (size_t i = 0; rewrite_next(&r, i); i++) {
 *         if (...) rewrite_replace(&r, n->out, by);
 *         if (...) rewrite_keep(&r, n);
 *     }
 *     return rewrite_end(&r);
 * */
#ifndef PLAN_REWRITE_H
#define PLAN_REWRITE_H

#include "graph/graph.h"

struct rewrite {
    tri_graph *g;
    size_t n_nodes;   /* at the begin */
    int n_tensors;
    tri_tensor **now; /* by tensor number: its replacement; null: itself */
    tri_node **order; /* nodes that stay, and new ones */
    size_t n, capacity;
    size_t taken;     /* nodes of the graph that are in `order` or were left out */
    bool failed;
};

void rewrite_begin(struct rewrite *r, tri_graph *g);

/* Node i, with replaced inputs. Null after the last, or after a failure. */
tri_node *rewrite_next(struct rewrite *r, size_t i);

/* Keeps the node, after the new nodes that were made since the last call. */
void rewrite_keep(struct rewrite *r, tri_node *n);

void rewrite_replace(struct rewrite *r, const tri_tensor *t, tri_tensor *by);
tri_tensor *rewrite_now(const struct rewrite *r, tri_tensor *t);

/* Between these calls new nodes are named "NAME.WHAT.op" after node n, so they are in its scopes.
 * They get its file and line, and its mark `backward`. */
void rewrite_enter(struct rewrite *r, const tri_node *n, const char *what);
void rewrite_leave(struct rewrite *r);

/* Makes the kept nodes the graph. After a failure, with a message, the graph cannot be used. */
tri_status rewrite_end(struct rewrite *r);

#endif
