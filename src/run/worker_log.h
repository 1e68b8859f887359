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

struct worker;

/* What a place's hands have spent together, by all who have ever had it: nanoseconds. data is not part of
 * compute here. */
struct worker_spent {
    int64_t compute, wait, reduce, data;
    uint64_t lanes, lost;
};
struct worker_spent worker_spent_of(const struct crew_head *h, int place);

#define WORKER_LOG_STEPS 31 /* whose median counts */

struct worker_log {
    struct log log;
    int64_t joined;           /* nanoseconds */
    struct worker_spent before; /* it joined */
    int rank;
    bool reports;
    uint64_t steps; /* it took part in */
    struct worker_spent step_before;
    int64_t step_began;
    int64_t took[WORKER_LOG_STEPS], median; /* of the latest steps; 0: not known yet */
    int64_t slow_told, lost_told;         /* when; 0: never */
    uint64_t lost;                        /* lanes lost that have been told */
};

/* None of these fails: what cannot be written is not. */
void worker_log_join(struct worker *c);
void worker_log_compiled(struct worker *c);
void worker_log_changes(struct worker *c); /* between two steps: who it is now */
void worker_log_step_begins(struct worker *c);
void worker_log_step_ends(struct worker *c);
/* error null: it is whole. */
void worker_log_checkpoint(struct worker *c, int64_t step, size_t bytes, double seconds, const char *error);
void worker_log_failure(struct worker *c, const char *text);
void worker_log_leave(struct worker *c);
void worker_log_close(struct worker *c);

#endif
