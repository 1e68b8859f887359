/* SPDX-License-Identifier: Apache-2.0
 * What the nodes of a lane can do along one axis of a mesh, while what they do along the other one
 * is given: be whole, split along any of their factors, in blocks as neighbours suggest, or add up
 * partial sums. */
#ifndef SEARCH_CANDIDATES_H
#define SEARCH_CANDIDATES_H

#include "plan/layout.h"
#include "plan/use.h"

#define CANDIDATES_MOST 8 /* of a node */
#define SEARCH_AXES 2     /* the most that a mesh may have */

/* A layout of so few axes. */
struct spread {
    struct split axis[SEARCH_AXES];
};

struct candidate {
    struct use use;
    struct split *split;  /* along the axis: of inputs, then of outputs, before layout_normal */
    struct spread *need;  /* by input, as layout_settle makes them */
    struct spread *has;   /* by output */
    bool whole[SEARCH_AXES]; /* along an axis that the mesh has */
    double own, part;     /* of the node's work, that of the seat with most: by the axis, by both */
};

/* The inputs that read a tensor. */
struct reader {
    int node, input;
};

struct candidates {
    const tri_graph *g;
    struct mesh mesh;
    int axis;
    const struct candidate *const *held; /* by node: along the other axis; null: all are whole */
    tri_node **forward; /* of forward_nodes */
    struct {
        struct candidate of[CANDIDATES_MOST]; /* the first is whole */
        int n;
    } *node;            /* by node; n 0: a source, or a copy that does what its original does */
    bool full;          /* some node might have had more */
    size_t *first;      /* by tensor: its readers are reader[first[t]] up to first[t + 1] */
    struct reader *reader;
    struct arena arena;
};

/* Needs candidates_free also after a failure. */
tri_status candidates_find(const tri_graph *g, const struct mesh *m, int axis,
                           const struct candidate *const *held, struct candidates *out);
void candidates_free(struct candidates *c);
/* The node whose candidates this one has: the original of a copy, or itself. */
int candidates_owner(const struct candidates *c, const tri_node *n);

/* 1: the mesh has no such axis. */
int64_t search_seats(const struct mesh *m, int axis);
struct layout spread_layout(const struct spread *s);
bool spread_equal(const struct spread *a, const struct spread *b);

#endif
