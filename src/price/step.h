/* SPDX-License-Identifier: Apache-2.0
 * What a step takes, from what its units take: the schedule of its threads, of all workers, in
 * virtual time. */
#ifndef PRICE_STEP_H
#define PRICE_STEP_H

#include "plan/lane_tree.h"
#include "plan/pipeline.h"

/* The units of a program, in their order. */
struct step_units {
    size_t n;
    double *seconds; /* of a call, summed over the threads that share it */
    int *parts;      /* into how many it is cut, which threads that share it divide */
};

/* What the units take if so many threads run each together. *work grows by the seconds of all
 * threads. */
double step_together(const struct step_units *u, int threads, double *work);

/* A phase that computes lanes: count, or lane. */
struct step_lanes {
    const struct lane_tree *tree; /* null: there is no such phase */
    const uint8_t *small;         /* by lane: it has the second size */
    int claimers;                 /* threads, workers or replicas, which compute a lane each */
    int threads;                  /* of a claimer */
    int buckets;
    double *at[2];  /* by size and bucket: seconds from the lane's begin until it is complete */
    double work[2]; /* by size: seconds of all threads of the claimer */
    double *sum;    /* by bucket: seconds of a sum of two lanes */
    /* With stages; else null: */
    const struct pipeline *pipeline;
    const struct legs *legs;
    const int *leg_of; /* by bucket */
    double *leg; /* by leg: seconds of it */
    /* With several hosts; else null. By bucket: */
    double *transfers; /* seconds, if nothing else moves */
    double *delays;    /* seconds by which what is computed meanwhile takes longer */
    double *above;     /* seconds of sums of what has arrived */
};

/* Which share the lanes of a step. */
struct step_hosts {
    int n;               /* 0: one */
    const int *begin;    /* host h computes the lanes begin[h] to begin[h + 1] - 1 */
    const int *workers;  /* by host; that with most has the claimers of a phase */
    double opening;      /* seconds until all have a step's opening */
};

struct step_shape {
    int threads; /* of all workers of a host, which share `pre` and `step` */
    struct step_hosts hosts;
    struct step_lanes lanes[2]; /* count, lane */
    struct step_units pre, step;
    double overhead; /* seconds of a step beyond all that */
};

struct step_price {
    double seconds;
    double lanes, pre, step; /* of these, in the phases; of count and lane together */
    double exposed;          /* of lanes: after they are computed, until all hosts have all sums */
    double units;            /* what it would be if no thread ever waited */
};

/* Fails if there is no memory. */
tri_status step_price(const struct step_shape *s, struct step_price *out);

#endif
