/* SPDX-License-Identifier: Apache-2.0
 * The cheapest way to split a lane over the only axis of a mesh: a choice for every operator,
 * forward and backward, by exact elimination. Within its space: the candidates of each operator,
 * and for a tensor that several operators need otherwise than it is, one layout that they share. */
#ifndef SEARCH_SPLITS_H
#define SEARCH_SPLITS_H

#include "plan/lanes.h"
#include "search/candidates.h"

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
    bool one_store;
    double states;
    double keep; /* seconds that a byte costs which a seat keeps of what is read again later */
};

/* A tensor that moves; result: to the store, or to where the parameter is kept. */
struct split_move {
    int tensor;
    bool result;
    struct split to;
    size_t bytes;
};

struct splits {
    struct candidates all;
    int *value;    /* by node: which of its candidates */
    int64_t cost;  /* picoseconds of a lane */
    bool exact;    /* else some table was too large */
    int variables; /* of which cells are tables; computed: those that are different */
    int64_t cells, computed;
    double seconds; /* of the elimination */
    struct split_move *move;
    size_t n_moves, capacity;
};

/* lane: before it is split. cut: of which it is a phase; tells without a store which result is the
 * gradient of which parameter. apart: see struct cost_sum. Needs splits_free also after a
 * failure. */
tri_status splits_find(const tri_graph *lane, const struct cut *cut, const struct mesh *m,
                       const struct split_prices *p, bool apart, struct splits *out);
void splits_free(struct splits *s);
/* Lines "use NODE USE" for all nodes, those of layers folded. */
tri_status splits_print(const struct splits *s, struct text *out);

#endif
