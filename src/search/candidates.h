/* SPDX-License-Identifier: Apache-2.0
 * What the nodes of a lane can do along the only axis of a mesh: be whole, split along any of their
 * factors, in blocks as neighbours suggest, or add up partial sums. */
#ifndef SEARCH_CANDIDATES_H
#define SEARCH_CANDIDATES_H

#include "plan/layout.h"
#include "plan/use.h"

#define CANDIDATES_MOST 8 /* of a node */

struct candidate {
    struct use use;
    struct split *need; /* by input, as layout_settle makes them */
    struct split *has;  /* by output */
    double part;        /* of the node's work, that of the seat with most */
};

/* The inputs that read a tensor. */
struct reader {
    int node, input;
};

struct candidates {
    const tri_graph *g;
    struct mesh mesh;
    tri_node **forward; /* of forward_nodes */
    struct {
        struct candidate of[CANDIDATES_MOST]; /* the first is whole */
        int n;
    } *node;            /* by node; n 0: a source, or a copy that does what its original does */
    size_t *first;      /* by tensor: its readers are reader[first[t]] up to first[t + 1] */
    struct reader *reader;
    struct arena arena;
};

/* Needs candidates_free also after a failure. */
tri_status candidates_find(const tri_graph *g, const struct mesh *m, struct candidates *out);
void candidates_free(struct candidates *c);
/* The node whose candidates this one has: the original of a copy, or itself. */
int candidates_owner(const struct candidates *c, const tri_node *n);

#endif
