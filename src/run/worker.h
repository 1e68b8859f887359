/* SPDX-License-Identifier: Apache-2.0
 * A worker's view of the store that it shares with others, and its part in their steps. Every worker
 * runs the same program; one of them, the reporter, opens steps, and runs what has effects outside. */
#ifndef RUN_WORKER_H
#define RUN_WORKER_H

#include "run/worker_log.h"
#include "crew/head.h"
#include "run/run.h"
#include "crew/eval_queue.h"
#include "machine/sweep.h"

/* Who asks a program that runs what it is at: of one thread. */
struct thread_context {
    struct worker *worker;
    struct crew_thread *shared;
    int number; /* of the thread among all workers' */
    int k;      /* of the lane's program: 0 count, 1 lane */
    int lane, name; /* of the first item of the program that runs; in the table of names */
    int64_t began;
    int64_t fetched; /* nanoseconds that the samples of the lane took */
    bool audits; /* the lane is another's, and stays so */
};

/* What a step of one shape is done with, beside the machine. */
struct worker_part {
    struct sweeps sweeps[2]; /* of what comes before the lanes, of the update */
    struct sweep_copy *copy;
    int first_name[6];       /* of count[2], lane[2], pre, step: in the table */
};

struct worker {
    struct crew_head *head;
    int place, threads;
    int fd;
    char *base; /* of the store, behind the head: at the begin of the addresses reserved for it */
    size_t reserved;
    struct thread_context *context; /* by thread */
    /* Once the run has been settled. */
    tri_run *run;
    struct machine_shared shared;
    struct worker_part part[CREW_MOST_SHAPES], *now; /* by the run's shapes; that of the step at work */
    claim_word *task;         /* words of all */
    _Atomic int64_t *slowest; /* by item: nanoseconds */
    uint64_t step;            /* that it works on */
    int64_t told;             /* the step that it has returned from as the reporter */
    int64_t memory_seen;
    struct eval_queue evaluation;  /* its words null: there are none that several share */
    bool writes;              /* what is written to parameters counts */
    bool reports;             /* its output has been turned to where the user looks */
    bool records;             /* it has opened metrics.jsonl, or tried to */
    struct worker_log log;
    int crash_out, crash_user; /* worker-K.out and the user's stderr, for crash reports; -1: none */
};

/* Whether this process is a worker; the first run that trains takes the place. *out is null if not. */
tri_status worker_join(struct worker **out);
/* A worker of a run that nobody has started, to see what it would take; null with a message. */
struct worker *worker_imagine(const struct crew_shape *shape);
/* Its threads are hands no more; before the team goes. */
void worker_release(struct worker *c, struct team *team);
void worker_free(struct worker *c);

/* After the run has been planned with worker_all_threads: gives the machine its memory and the store its
 * values, or those that are there. */
int worker_all_threads(const struct worker *c); /* that row at a time */
int worker_processes(const struct worker *c);
int worker_audit_slots(const struct worker *c); /* that audits hold */
tri_status worker_settle(struct worker *c, tri_run *run);
/* The same without memory: only the sizes are known then. */
tri_status worker_measure(struct worker *c, tri_run *run);

/* One step or more, as tri_step. False: the run has ended, or failed with a message (*status). */
bool worker_step(struct worker *c, tri_run *run, tri_status *status);
/* The step that it has returned from is this worker's to call back for, and to show. */
bool worker_tells(const struct worker *c, const tri_run *run);
/* No step is open, or nothing of its update has begun: parameters are as the step before has left them. */
bool worker_is_between(const struct worker *c);
/* The end of the loop: waits until it is known who reports to the end. True: this worker. */
bool worker_finish(struct worker *c, tri_run *run);
/* Who reports begins metrics.jsonl, or goes on with it; then what it tells of the step goes there. */
tri_status worker_open_record(struct worker *c, tri_run *run);
void worker_record(struct worker *c, tri_run *run);
/* What is printed on stdout when all is done: by the agent, so that no worker's death loses or doubles it. */
void worker_last_line(struct worker *c, const char *line);
/* The run is closed, with this exit code. */
void worker_leave(struct worker *c, int code);

/* The run goes on from a checkpoint of this step; before the first step, by who reports. */
void worker_begin_at(struct worker *c, int64_t step);
int64_t worker_base(const struct worker *c); /* that step; 0: it began anew */
/* The number of a wish that has not been answered; 0: there is none. */
uint32_t worker_save_asked(const struct worker *c);
void worker_save_answer(struct worker *c, uint32_t asked, const char *error, int64_t step);
/* A checkpoint could not be written, says the text: for the agent. */
void worker_save_failed(struct worker *c, const char *text);

/* Bad samples are counted by all workers together. */
void worker_count_bad(struct worker *c, const tri_run *run);
/* Nobody reads what this worker prints: the run is to end. */
void worker_note_unread(struct worker *c);
/* The run is to end. */
bool worker_asked_to_end(const struct worker *c);
/* Of all that the run's evaluations share: batches and bytes; once they have been planned. */
uint64_t worker_evaluation_bytes(const tri_run *run, int64_t *batches);
void worker_evaluation_bind(struct worker *c, const tri_run *run);
/* As tri_evaluate, with the help of all that wait for it: by who reports, behind the step just done. */
tri_status worker_evaluate(struct worker *c, tri_run *run, tri_data *data);
/* What evaluations have come to; it stays, whoever reports. */
void worker_set_policy(struct worker *c, const struct policy_state *is);

/* The run, and this worker, turn to the shape of a step. */
void worker_take_shape(struct worker *c, tri_run *run, uint64_t step);
bool worker_reports(const struct worker *c);
struct crew_worker *worker_self(const struct worker *c);
/* What it prints goes to where the user looks from here on. */
void worker_turn_output(struct worker *c);
int worker_rank(const struct worker *c);
int worker_size(const struct worker *c);
void worker_at(struct worker *c, enum crew_at at, int part); /* part: the callback; or -1 */

#endif
