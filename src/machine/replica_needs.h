/* SPDX-License-Identifier: Apache-2.0
 * Finds what the executors of a replica must wait for. */
#ifndef MACHINE_REPLICA_NEEDS_H
#define MACHINE_REPLICA_NEEDS_H

#include "machine/program.h"

/* That an executor has published at least `value`: one more than the number of a round of its. */
struct replica_need {
    uint32_t executor, value;
};

/* Item i has the rounds replica_round_of(i, 1) and replica_round_of(i, 2). Round 0 is that of the
 * captain's stop before it. */
static inline size_t replica_round_of(size_t item, int round) { return 3 * item + (size_t)round; }

struct replica_needs {
    struct replica_need *need;
    size_t n, capacity;
    size_t *first; /* by round, from the first of the range: the begin of its needs, in `need` */
};

/* Items that are run together: all, or those of a leg, which need nothing of the others in the
 * arena. */
struct replica_range {
    size_t begin, end;
    const size_t *stop; /* items before which there is a stop, ascending, from begin up to end */
    int n_stops;
};

/* The parts [*begin, *end), counted over both rounds, that executor e of n does in round 1 or 2. */
void replica_parts(const struct program_item *item, int round, int64_t e, int64_t n,
                   int64_t *begin, int64_t *end);
/* Whether the item has nothing to do: its result is its input. */
bool replica_skips(const struct program *p, size_t item);

/* An executor's needs of itself are listed for the others, and some needs follow from earlier ones
 * of only some executors. False: out of memory. */
bool replica_find_needs(const struct program *p, const struct replica_range *range,
                        struct replica_needs *out);

#endif
