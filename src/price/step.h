/* SPDX-License-Identifier: Apache-2.0
 * What a step takes on one process, from what its units take: the schedule of its threads in
 * virtual time. */
#ifndef PRICE_STEP_H
#define PRICE_STEP_H

#include "plan/lane_tree.h"

/* The units of a program, in their order. */
struct step_units {
    size_t n;
    double *seconds; /* of a call, summed over the threads that share it */
    int *parts;      /* into how many it is cut, which threads that share it divide; not of lanes,
                      * each of which has a thread of its own */
};

/* A phase that computes lanes: count, or lane. */
struct step_lanes {
    struct step_units size[2];      /* of the two sizes of lanes */
    const struct lane_tree *tree;   /* null: there is no such phase */
    const uint8_t *small;           /* by lane: it has the second size */
    int buckets;
    size_t *published[2]; /* by size and bucket: before which unit; n: at the end */
    double *sum;          /* by bucket: seconds of a sum of two lanes */
};

struct step_shape {
    int threads;
    struct step_lanes lanes[2]; /* count, lane */
    struct step_units pre, step;
};

struct step_price {
    double seconds;
    double lanes, pre, step; /* of these, in the phases; of count and lane together */
    double units;            /* what it would be if no thread ever waited */
};

/* Fails if there is no memory. */
tri_status step_price(const struct step_shape *s, struct step_price *out);

#endif
