/* SPDX-License-Identifier: Apache-2.0
 * The critical path of steps: what would have to be faster for a step to be faster. It goes
 * backward from the end of a step: from a wait to what ended it, on the thread that did that. If it
 * is not known who ended a wait, it is whoever did something last until then. */
#ifndef PROFILE_PATH_H
#define PROFILE_PATH_H

#include "profile/read.h"

struct path {
    int64_t all;          /* nanoseconds, of all steps of the first host: the sum of `time` */
    int64_t time[SPENTS]; /* a wait: from what ended it to its end, or all if that is not known */
    int64_t *item;        /* by tables_number: that of operators */
    int64_t turns;        /* how often it goes on to another thread */
    /* The latest first; pieces of one thread that follow one another are one. */
    struct path_piece {
        int thread;
        int64_t begin, end;
    } *piece; /* [n] */
    size_t n;
};

/* `item` and `piece` are of the arena. */
tri_status path_find(const struct profile *p, struct arena *arena, struct path *out);
/* "compute 71 %, sums 12 %, waits for samples 9 %": the kinds that are more than 1 %, the longest
 * first. */
void path_tell(const struct path *path, struct text *out);

#endif
