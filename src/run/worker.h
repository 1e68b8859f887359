/* SPDX-License-Identifier: Apache-2.0
 * A worker's view of the store that the workers share, and its part in their steps. All workers run
 * the same program. One of them, the reporter, opens steps and does whatever has effects
 * outside. */
#ifndef RUN_WORKER_H
#define RUN_WORKER_H

#include "crew/eval_queue.h"
#include "crew/head.h"
#include "machine/sweep.h"
#include "run/run.h"
#include "run/worker_log.h"

/* Per-thread context, also for a program's callback. */
struct thread_context {
    struct worker *worker;
    struct crew_thread *shared;
    struct spender spender;
    int number;      /* of the thread among the threads of all workers */
    int k;           /* which program of a lane: 0 count, 1 lane */
    int leg;         /* of the lane; 0 if it is in one piece */
    int lane, name;  /* name: of the program's first item, in the table of names */
    int64_t began;   /* when the thread began what it does now, not each operator of it */
    struct noted {
        int at, lane, leg;
        uint32_t step;
    } noted; /* the last activity, see worker_note */
    int64_t fetched; /* how long the samples of the lane took, nanoseconds */
    bool audits;     /* it computes a lane of another worker, which stays that worker's */
};

/* What a worker has for each executable, besides the executable. */
struct worker_executable {
    struct sweeps sweeps[2]; /* before the lanes, and of the update */
    struct sweep_copy *copy;
    int first_name[6]; /* of count[2], lane[2], pre and step, in the table of names */
};

struct worker {
    struct crew_head *head;
    int place, threads;
    pthread_t opener; /* the first thread: it makes the steps */
    int fd;
    char *base; /* of the store, after the head; the first of the reserved addresses */
    size_t reserved, bytes; /* bytes: of the store, after the head */
    struct thread_context *context; /* by thread */
    /* Set by worker_settle. */
    tri_run *run;
    struct region region[REGIONS]; /* as in the head */
    /* By executable of the run; current: that of the step at work. */
    struct worker_executable executable[CREW_MOST_SHAPES], *current;
    uint64_t step;            /* the step it works on */
    int64_t reported;         /* the latest step from which it returned as the reporter */
    int64_t memory_seen;      /* when its memory was measured */
    struct group group;  /* that it is a member of now; shared is null: of none */
    bool leads;          /* it is the group's captain */
    int64_t patience;    /* until then it waits for late members of the group */
    uint64_t order;      /* the latest order that it has worked on */
    /* A lane that nobody needs any more, whose slots a late member may still write to. Until it has
     * left, they stay taken, and the group computes nothing. */
    struct tree_lane left;
    bool leaves_slots;
    struct eval_queue evaluation; /* its words are null if no evaluation is shared */
    bool writes;                  /* values it writes to parameters take effect */
    bool reports;                 /* its output has been redirected to the user's */
    bool rings_tried;             /* the rings for spans are mapped, or that has failed */
    int64_t stepped;              /* when it began the step before, for spans */
    bool records;                 /* it has opened metrics.jsonl, or tried to */
    struct worker_log log;
    int crash_out, crash_user; /* worker-K.out and the user's stderr, for crash reports; -1: none */
};

/* Number i of a region. */
static inline void *worker_region(const struct worker *c, enum region_number r, int64_t i) {
    return region_at(c->region, c->base, r, i);
}

/* Joins the agent's store, if this process is a worker; *out is null if it is not. Only the first
 * run that trains is the workers' run. */
tri_status worker_join(struct worker **out);
/* A worker of a run that is only planned, to learn how much memory it needs. Null with a
 * message. */
struct worker *worker_for_plan(const struct crew_size *size);
/* Detaches its threads; call it before the team is freed. */
void worker_release(struct worker *c, struct team *team);
void worker_free(struct worker *c);

/* What a worker has chosen for all. Null: this one must choose; the others wait until it calls
 * worker_chose, or dies. */
const char *worker_choice(struct worker *c, enum crew_choice of);
/* text: null: there is no choice. One that is too long is not kept: others choose again. */
void worker_chose(struct worker *c, enum crew_choice of, const char *text);

int worker_all_threads(const struct worker *c); /* of the workers that can compute at a time */
int worker_processes(const struct worker *c);
int worker_auditors(const struct worker *c); /* threads that audit lanes */
/* Gives the planned executables their memory, and the store its values unless another worker has
 * done so. */
tri_status worker_settle(struct worker *c, tri_run *run);
/* The same without memory: only the sizes are known after it. */
tri_status worker_measure(struct worker *c, tri_run *run);

/* As tri_step; computes one or more steps. False: the run has ended, or failed with a message
 * (*status). */
bool worker_step(struct worker *c, tri_run *run, tri_status *status);
/* Whether this worker prints the latest step and calls back for it. */
bool worker_reports_step(const struct worker *c, const tri_run *run);
/* Whether no step is open, or the update of the open one has not begun: parameters are as the step
 * before left them. */
bool worker_is_between(const struct worker *c);
/* The end of the loop: waits until the run is closed, or this worker is the reporter (true). */
bool worker_finish(struct worker *c, tri_run *run);
/* The reporter begins or continues metrics.jsonl, then writes the metrics of its steps there. */
tri_status worker_open_record(struct worker *c, tri_run *run);
void worker_record(struct worker *c, tri_run *run);
/* The last line for stdout. The agent prints it, so that no death of a worker loses or repeats
 * it. */
void worker_last_line(struct worker *c, const char *line);
/* The run is closed, with this exit code. */
void worker_leave(struct worker *c, int code);

/* The run continues from a checkpoint of this step. For the reporter, before the first step. */
void worker_begin_at(struct worker *c, int64_t step);
int64_t worker_base(const struct worker *c); /* that step; 0: the run started at the beginning */
/* The number of a request to save that has not been answered; 0: none. */
uint32_t worker_save_asked(const struct worker *c);
void worker_save_answer(struct worker *c, uint32_t asked, const char *error, int64_t step);
/* Tells the agent that a checkpoint could not be written, and why. */
void worker_save_failed(struct worker *c, const char *text);

/* Lets all workers count bad samples together. */
void worker_count_bad(struct worker *c, const tri_run *run);
/* Ends the run, because nobody reads what this worker prints. */
void worker_note_unread(struct worker *c);
/* Whether the run has been asked to end. */
bool worker_asked_to_end(const struct worker *c);
/* What the run's planned evaluations share. */
void worker_evaluation_size(const tri_run *run, struct region *out);
void worker_evaluation_bind(struct worker *c, const tri_run *run);
/* As tri_evaluate, with the help of the workers that wait for it. For the reporter, after a
 * step. */
tri_status worker_evaluate(struct worker *c, tri_run *run, tri_data *data);
/* Stores the state of the evaluation policy for later reporters. */
void worker_set_policy(struct worker *c, const struct policy_state *is);

/* Selects the executable for a step, for the run and this worker. */
void worker_select_executable(struct worker *c, tri_run *run, uint64_t step);
/* Whether this worker is the reporter of its host, which opens steps there; and whether its host is
 * the teller's, so that it decides how, calls back, prints and saves. */
bool worker_opens(const struct worker *c);
bool worker_reports(const struct worker *c);
struct crew_worker *worker_self(const struct worker *c);
/* Redirects stdout and stderr to those of the user. */
void worker_redirect_output(struct worker *c);
int worker_rank(const struct worker *c);
int worker_size(const struct worker *c);
/* Notes what thread 0 does. part: the callback; or -1. */
void worker_at(struct worker *c, enum crew_at at, int part);

#endif
