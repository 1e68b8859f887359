/* SPDX-License-Identifier: Apache-2.0
 * A schedule of transfers, executed in unit time: in each round, any host sends whatever it had
 * when the round began. */
#ifndef PLAN_ROUNDS_H
#define PLAN_ROUNDS_H

#include "plan/transfer.h"

/* Of one bucket. What is counted are chunks of nodes: a bucket has `chunks` times the same size. */
struct rounds {
    int n, chunks;
    int *round;           /* by transfer: from 0 on; -1: it is of another bucket */
    int *sent, *received; /* by host */
    int busiest; /* the sum over all rounds of what the busiest host sends or receives in each */
};

/* begin: of the share that the schedule was made of, in which nobody had anything. */
tri_status rounds_make(const struct lane_tree *tree, const int *begin, const struct transfers *t,
                       int bucket, struct rounds *out);
void rounds_free(struct rounds *r);

#endif
