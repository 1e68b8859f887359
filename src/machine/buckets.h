/* SPDX-License-Identifier: Apache-2.0
 * Divides the results of a lane into buckets, in the order in which the lane's program completes
 * them. Each bucket is summed over the lanes on its own, as soon as it is complete: the gradients
 * of the last layers while the backward pass still computes those before them. So a thread keeps
 * about one bucket, and further ones only until another lane has completed the same bucket. What is
 * in which bucket changes no bit. */
#ifndef MACHINE_BUCKETS_H
#define MACHINE_BUCKETS_H

#include "machine/program.h"
#include "plan/legs.h"

/* Before an item, a thread takes memory for a bucket (opens it), or publishes it (closes it). */
struct bucket_event {
    size_t item;
    int bucket;
    bool opens;
};

/* For one of the lane's programs; see struct program. */
struct bucket_events {
    struct bucket_event *event;
    size_t *stop; /* by event: its item */
    int n;
    int leg[LEGS_MOST + 1]; /* the first event of each leg, and n */
};

/* The buckets of a leg are neighbours; without stages, there is one leg. The last one of each is
 * open all the time, and has no events. So has a bucket of what a leg hands to others, which is not
 * summed. */
struct buckets {
    int n;   /* at least one per leg */
    int *of; /* by number in the whole graph; -1: no result of a lane */
    int n_of;
    int legs, last[LEGS_MOST];  /* by leg: its last bucket */
    int *leg;                   /* by bucket */
    struct leg_set *readers;    /* by bucket: the legs that read it; none: it is summed */
};

/* How to divide. */
struct bucket_rule {
    size_t bytes;   /* a bucket is closed when it has so many */
    int most;       /* buckets, beside those that are handed over */
    size_t from;    /* results that items before this one touch are in the last bucket */
    const int *own; /* by number in the whole graph: results with the same number > 0 have a bucket
                     * of their own; nullable */
};

/* lane: the programs of the two sizes of lanes; null: none. */
tri_status buckets_make(const struct program *const *lane, const struct bucket_rule *rule,
                        struct buckets *out);
bool buckets_is_summed(const struct buckets *b, int bucket);
bool buckets_is_last(const struct buckets *b, int bucket); /* of its leg */
/* When the program, which has the same results, touches the buckets. */
tri_status buckets_events(const struct buckets *b, const struct program *lane,
                          struct bucket_events *out);
/* How many that are summed are open at the same time at most, the last included. */
int buckets_open(const struct bucket_events *e);
void buckets_free(struct buckets *b);
void buckets_events_free(struct bucket_events *e);

/* The first and last item that touch each result, for free(); null: out of memory. */
struct touched {
    size_t first, last;
};
struct touched *buckets_spans(const struct program *lane);

#endif
