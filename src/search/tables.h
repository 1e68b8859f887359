/* SPDX-License-Identifier: Apache-2.0
 * The costs of splitting a lane along one axis of a mesh, while the other one is held: tables over
 * variables, of which each stands for the candidates of a node, for the one other layout in which
 * readers share a tensor, or for where a parameter is kept. */
#ifndef SEARCH_TABLES_H
#define SEARCH_TABLES_H

#include "plan/lanes.h"
#include "search/candidates.h"
#include "search/eliminate.h"

/* What splits are compared by. */
struct split_prices {
    const void *of; /* what the two functions are given */
    /* Seconds in which a seat makes so many operations of the node, and reads and writes so many
     * bytes; and those of a move, of which a seat receives so many bytes, one after the other in so
     * many rounds. */
    double (*node)(const void *of, const tri_node *n, double flops, double bytes);
    double (*move)(const void *of, int rounds, double bytes);
    /* The seats are in one store: they divide what is whole, for which they wait for each other,
     * read parts of parameters for nothing, and gather gradients. Else each computes what is whole,
     * and keeps its part of a parameter, of the gradient, and `states` times as much again. */
    bool one_store; /* what commands search; the other case is for devices of their own */
    double states;
    double keep; /* seconds that a byte costs which a seat keeps of what is read again later */
};

/* The share of the cost of nodes, and of that of moves, that counts: for bounds, which are rounded
 * down; else 1. */
struct shares {
    double nodes, moves;
};

struct tables {
    struct cost_sum sum; /* of picoseconds */
    int *values;
    struct cost_table *table;
    size_t n_vars;
    bool full; /* a tensor might have had another copy, or a parameter another home */
    int *var;  /* by node; below 0: it has one candidate */
    struct arena arena;
};

/* Needs tables_free also after a failure. cut: see splits_find. */
tri_status tables_make(const struct candidates *c, const struct cut *cut,
                       const struct split_prices *p, struct shares shares, struct tables *out);
void tables_free(struct tables *t);
/* Of what a tensor is, for one who needs it so: what moves, as in struct move; 0: nothing. */
double tables_moved(const struct mesh *m, const tri_tensor *t, const struct spread *has,
                    const struct spread *need);

#endif
