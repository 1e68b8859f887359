/* SPDX-License-Identifier: Apache-2.0
 * What the threads of a run of one process spend their time on (crew/spend.h). A step may take a
 * microsecond, so short steps of the first thread are not all timed: what passes while some are
 * left out is shared out as the last timed step was spent. Evaluations, saves and callbacks are
 * always timed. */
#ifndef RUN_OWN_TIME_H
#define RUN_OWN_TIME_H

#include <pthread.h>

#include "crew/spend.h"

struct team;

struct own_time {
    struct spender *spender;   /* by thread of the team; null: another run has the threads */
    struct spending *spending; /* the same */
    int threads;
    pthread_t opener; /* another thread that makes steps is not counted */
    bool on;       /* the first thread's time is counted now, else shared out later */
    int64_t left;  /* so many steps to come are left out */
    int64_t out;   /* steps left out since it was counted last */
    int64_t each;  /* so many were left out the last time */
    int64_t began; /* the timed step; 0: none is, or more than a step is in it */
    int64_t before[SPENTS], share[SPENTS], took; /* when it began; of the last timed step */
};

/* Counts the calling thread and those of its team (nullable). Failure only lacks the counts. */
void own_time_open(struct own_time *o, struct team *team);
void own_time_close(struct own_time *o, struct team *team);

/* A step begins. Returns when, if the step that ends now has been timed (o->took); else 0. */
int64_t own_time_turn(struct own_time *o);
static inline int64_t own_time_step(struct own_time *o) {
    return o->left ? o->left--, 0 : own_time_turn(o);
}
/* The step that has just begun is timed. */
void own_time_whole(struct own_time *o);
/* Something begins that is no part of a usual step, and is counted exactly. */
void own_time_apart(struct own_time *o);

#endif
