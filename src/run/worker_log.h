/* SPDX-License-Identifier: Apache-2.0
 * What a worker tells of itself, in the run's directory: worker-K.log, K its place (src/observe/log.h). An
 * event is a line with worker, step, lane where they are known:
 *
 *     join       it was started: pid, rank, threads, core, memory (bytes that there are for it)
 *     compiled   its network is ready to run: seconds, store and peak (bytes)
 *     first-step the first step that it took part in is done: seconds since it joined
 *     takeover   it was given the rank of another; it is the reporter now
 *     rests      its rank was taken away: it waits, or leaves
 *     slow-step  a step took more than ten times as long as most: seconds, median, and how much of it this
 *                worker computed, waited, summed, read data. Once a minute at most
 *     lanes-lost it computed lanes that another had done by then: how many since it said so last. Once a
 *                minute at most
 *     failure    the run has failed, or cannot be opened: text
 *     leave      steps it took part in, lanes, seconds of what it spent
 *     crash      its own code was killed by a signal (src/run/crash.h)
 *
 * Nothing is told of single steps or lanes: metrics.jsonl has those. */
#ifndef RUN_WORKER_LOG_H
#define RUN_WORKER_LOG_H

#include "crew/head.h"
#include "observe/log.h"

struct crew;

/* What a place's hands have spent together, by all who have ever had it: nanoseconds. data is not part of
 * compute here. */
struct crew_spent {
    int64_t compute, wait, reduce, data;
    uint64_t lanes, lost;
};
struct crew_spent crew_spent_of(const struct crew_head *h, int place);

#define CREW_LOG_STEPS 31 /* whose median counts */

struct crew_log {
    struct log log;
    int64_t joined;           /* nanoseconds */
    struct crew_spent before; /* it joined */
    int rank;
    bool reports;
    uint64_t steps; /* it took part in */
    struct crew_spent step_before;
    int64_t step_began;
    int64_t took[CREW_LOG_STEPS], median; /* of the latest steps; 0: not known yet */
    int64_t slow_told, lost_told;         /* when; 0: never */
    uint64_t lost;                        /* lanes lost that have been told */
};

/* None of these fails: what cannot be written is not. */
void crew_log_join(struct crew *c);
void crew_log_compiled(struct crew *c);
void crew_log_changes(struct crew *c); /* between two steps: who it is now */
void crew_log_step_begins(struct crew *c);
void crew_log_step_ends(struct crew *c);
/* error null: it is whole. */
void crew_log_checkpoint(struct crew *c, int64_t step, size_t bytes, double seconds, const char *error);
void crew_log_failure(struct crew *c, const char *text);
void crew_log_leave(struct crew *c);
void crew_log_close(struct crew *c);

#endif
