/* SPDX-License-Identifier: Apache-2.0
 * The cheapest way to split a lane over a mesh: a choice for every operator, forward and backward,
 * by elimination. Along one axis it is exact. Two axes are taken by turns, each of them exactly
 * while the other is held, and a bound says how far from the best the result may be. The space: the
 * candidates of each operator, and for a tensor that several operators need otherwise than it is,
 * one layout that they share. */
#ifndef SEARCH_SPLITS_H
#define SEARCH_SPLITS_H

#include "search/tables.h"

/* A tensor that moves; result: to the store. */
struct split_move {
    int tensor;
    bool result;
    struct spread to;
    size_t bytes;
};

struct splits {
    const tri_graph *g;
    struct mesh mesh;
    struct use (*use)[SEARCH_AXES]; /* by node; of copies as of what they repeat */
    int64_t cost;  /* picoseconds of a lane */
    int64_t bound; /* no assignment costs less; of one axis it is the cost. Below 0: not known, as a
                    * table was too large, or of two axes a list of choices */
    int variables; /* of the largest of all eliminations, of which cells are tables; computed: those
                    * that are different */
    int64_t cells, computed;
    double seconds; /* of that elimination alone */
    struct split_move *move; /* without a store: what moves between operators alone */
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
