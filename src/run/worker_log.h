/* SPDX-License-Identifier: Apache-2.0
 * The log of a worker: worker-K.log in the run's directory, where K is the worker's place
 * (src/observe/log.h). An event is a line with worker, step and lane, if they are known:
 *
 *     join       it was started: pid, rank, threads, core, memory (bytes available to it)
 *     compiled   its network is ready to run: seconds, store and peak (bytes)
 *     first-step the first step it took part in is done: seconds since it joined
 *     takeover   it got the rank of another worker, or is the reporter now
 *     rests      it lost its rank: it waits, or leaves
 *     slow-step  a step took more than ten times the median: seconds, median, and how long this
 *                worker computed, waited, summed and read data. At most once a minute
 *     lanes-lost it computed lanes that another worker published first: how many since the last
 *                event. At most once a minute
 *     failure    the run has failed, or cannot be opened: text
 *     leave      steps it took part in, lanes, seconds by what they were spent on
 *     crash      its own code was killed by a signal (src/run/crash.h)
 *
 * The log has no events for single steps or lanes: metrics.jsonl has those. */
#ifndef RUN_WORKER_LOG_H
#define RUN_WORKER_LOG_H

#include "crew/head.h"
#include "observe/log.h"

struct worker;

/* What the threads of a place have spent, nanoseconds, over all workers that have had the place. */
struct worker_spent {
    int64_t time[SPENTS];
    uint64_t lanes, lost;
};
struct worker_spent worker_spent_of(const struct crew_head *h, int place);

#define WORKER_LOG_STEPS 31 /* the median is over so many steps */

struct worker_log {
    struct log log;
    int64_t joined;             /* when, nanoseconds */
    struct worker_spent before; /* when it joined */
    int rank;
    bool reports;
    uint64_t steps; /* that it took part in */
    struct worker_spent step_before;
    int64_t step_began;
    int64_t took[WORKER_LOG_STEPS], median; /* of the latest steps; 0: not known yet */
    int64_t slow_logged, lost_logged;       /* when such an event was last written; 0: never */
    uint64_t lost;                          /* lanes lost, up to the last event */
};

/* None of these fails: an event that cannot be written is left out. */
void worker_log_join(struct worker *c);
void worker_log_compiled(struct worker *c);
void worker_log_changes(struct worker *c); /* between two steps: of rank or reporter */
void worker_log_step_begins(struct worker *c);
void worker_log_step_ends(struct worker *c);
/* error: null if the checkpoint is complete. */
void worker_log_checkpoint(struct worker *c, int64_t step, size_t bytes, double seconds,
                           const char *error);
void worker_log_failure(struct worker *c, const char *text);
void worker_log_leave(struct worker *c);
void worker_log_close(struct worker *c);

#endif
