/* SPDX-License-Identifier: Apache-2.0
 * The assignment of variables with the least sum of costs, found by eliminating one variable after
 * another: exact, whatever the costs, as long as the tables that arise are small. Equal tables are
 * one object, and what was computed once of the same tables is not computed again, so that the
 * layers of a network cost as much as one of them. */
#ifndef SEARCH_ELIMINATE_H
#define SEARCH_ELIMINATE_H

#include "base/base.h"

#define COST_NEVER (INT64_MAX / 4) /* of what must not be; sums of costs stay below it */
#define SCOPE_MOST 32              /* variables of a table */

/* Costs by the values of its variables, which differ; those of the last one are neighbours. */
struct cost_table {
    int n;
    const int *var;
    const int64_t *cost;
};

struct cost_sum {
    int n_vars;
    const int *values; /* by variable: how many it has, at most 255 */
    const struct cost_table *table;
    size_t n_tables;
    const int *first;  /* by variable: the value that it takes if tables become too large */
    int64_t most_cells;
    bool apart;        /* nothing is shared: for tests */
};

struct cost_least {
    int *value; /* by variable; of equal sums, that with the lowest values of the variables that are
                 * eliminated last; to be freed */
    int64_t cost;
    bool exact;
    int64_t cells, computed; /* of all tables that arose; those that were not there already */
};

/* Fails if there is no memory, or if no assignment is allowed. */
tri_status eliminate(const struct cost_sum *s, struct cost_least *out);

#endif
