/* SPDX-License-Identifier: Apache-2.0
 * What the agent and its workers share before anything else is known: the head of the store. The store
 * is one memory file, handed down through exec; behind the head lies what the network needs (crew.c
 * lays it out, once a worker has compiled it). Nothing here is a pointer: each process maps it
 * elsewhere. */
#ifndef CREW_HEAD_H
#define CREW_HEAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/base.h"
#include "checkpoint/policy_state.h"
#include "data/tally.h"
#include "base/wait.h"

#define CREW_MAGIC 0x3f574552434952ull /* changes with anything below */
#define CREW_MOST_WORKERS 128
#define CREW_MOST_THREADS 512
#define CREW_MOST_SHAPES 8 /* of the steps of one run */
#define CREW_MOST_SCALARS 64
#define CREW_MOST_VALUES 64
#define CREW_NAME 56
#define CREW_LINE 512

/* How a worker finds its store: environment variables that name the file's descriptor and its place
 * among the workers, and where messages of the one who reports go. */
#define CREW_ENV_STORE "TRIREME_STORE_FD"
#define CREW_ENV_PLACE "TRIREME_WORKER"
#define CREW_ENV_OUTPUT "TRIREME_OUTPUT_FDS"

/* What a hand is at, for whoever watches. */
enum crew_at {
    CREW_AT_START,    /* before tri_open */
    CREW_AT_COMPILE,  /* in tri_open */
    CREW_AT_DATA,     /* in the user's or the program's source of samples */
    CREW_AT_LANE,
    CREW_AT_SUM,
    CREW_AT_UPDATE,
    CREW_AT_WAIT,
    CREW_AT_CALLBACK, /* between two steps: the user's program */
    CREW_AT_EVALUATE, /* between two steps */
    CREW_AT_SAVE,
    CREW_AT_LEAVE,    /* behind tri_close */
    CREW_AT_REST,     /* between two pieces of work, or waiting for the team's others; a run that does not train */
    CREW_AT_COMPUTE,  /* a step, of a run that one process computes */
    CREW_ATS
};
const char *crew_at_name(enum crew_at at);

/* A thread that computes. The words are written by it alone. */
struct crew_thread {
    _Alignas(128) pthread_mutex_t life; /* robust, held for the thread's life */
    atomic_int held;                    /* life was locked: its loss means death */
    atomic_int tid;                     /* of the kernel; 0: not known yet */
    _Atomic uint64_t turns;             /* grows as long as it makes progress */
    _Atomic int64_t since;              /* when what it is at began: nanoseconds, CLOCK_MONOTONIC */
    atomic_int at;                      /* of worker_at */
    atomic_int lane, item;              /* lane: or batch of an evaluation, or callback; item: in the table of names; -1: none */
    _Atomic uint32_t step;
    _Atomic int64_t lane_began;         /* the lane that it is at: nanoseconds; 0: it is at none */
    _Atomic int64_t lane_time;          /* what a lane takes it, nanoseconds, on average; 0: not known */
    _Atomic int64_t pure_time;          /* the same without its samples */
    _Atomic int64_t compute, wait, reduce, data; /* nanoseconds since it began */
    _Atomic uint64_t lanes_done, lanes_lost;     /* lost: another was first */
    _Atomic uint64_t rows;              /* the step whose rows of outputs it is writing; 0: none */
    atomic_int again;                   /* 1 + the lane of another's that it computes too; 0: none */
    atomic_int failed_lane;             /* of `step`; -1: none */
    char fault[512];
};

enum crew_state {
    CREW_EMPTY,
    CREW_STARTING, /* started, has not come to its first step */
    CREW_READY,    /* in, or between, steps */
    CREW_LEFT,     /* it closed its run */
};

/* A process. */
struct crew_worker {
    _Alignas(64) atomic_int state;
    atomic_int rank; /* -1: a spare */
    atomic_int pid;
    atomic_int leave;    /* it is asked to leave between two steps */
    atomic_int restarts; /* by the agent's count */
    _Atomic int64_t peak; /* bytes of memory */
    _Atomic int64_t drew_lane; /* when it drew its first lane since it has its rank: nanoseconds; 0: not
                               yet; -1: the agent has seen it */
    atomic_int core;
    char failure[CREW_LINE]; /* what it has told last, before it ended by itself */
    atomic_int crashed; /* 1 + the hand that a signal of its own code came to; 0: none, or not known */
    atomic_int traced; /* a signal of its own code: it has left a trace in its output */
    atomic_int reads_lane; /* 1 + the lane whose samples a thread was reading that crashed and is no hand; 0: none */
    _Atomic uint32_t reads_step;
    atomic_int sender; /* the process that has sent it such a signal; 0: none has; -1: one of
                          another namespace */
};

/* What the user has been shown, by whoever reported: no other shows it again. */
struct crew_shown {
    atomic_int notes; /* on the data */
    atomic_int head;
    _Atomic int64_t step; /* of the last line of progress */
    _Atomic int64_t evaluation; /* the step of the last one that was shown */
    atomic_int not_finite;      /* that the loss is not finite, or updates are skipped; until that is over */
};

enum crew_ending {
    CREW_RUNS,
    CREW_FINISHED, /* all steps are done, or the reporter closed the run */
    CREW_STOPPED,  /* it was asked to stop */
    CREW_FAILED,   /* an operator failed, or the data */
};

/* Why a run is to end after the step that is open. */
enum crew_stop {
    CREW_STOP_NO,
    CREW_STOP_ASKED,  /* by a signal to the agent, `trireme ctl`, or timing.c */
    CREW_STOP_UNREAD, /* nobody reads stdout or stderr any more */
};

/* What is said when a run is asked to end, by whoever hears it. */
#define RUN_ENDS_SOON "the step is finished, then the run ends (again: at once)"
#define RUN_IS_UNREAD "nobody reads stdout or stderr any more: the step is finished, then the run ends"

/* What several workers can do about it. */
#define CREW_LESS_MEMORY \
    "a smaller --batch, --recompute or --amp O1 need less; `trireme memory -n N` tells how much"

struct crew_head {
    uint64_t magic;
    uint64_t bytes; /* of this head: programs that differ do not attach */
    int64_t agent;
    int workers, spares; /* asked for at first */
    int most;            /* workers that can ever row at a time */
    int threads, places; /* of each worker; in the table: most and spares */
    int cores;
    double audit; /* share of the lanes that another computes once more */

    _Alignas(64) wait_queue event; /* rung by whoever changes what others may wait for */
    _Alignas(64) wait_queue data;  /* the same of samples, and of the steps that they are of */
    _Alignas(64) _Atomic uint32_t epoch; /* deaths recovered from */
    atomic_int ranks;    /* lanes are divided among so many */
    atomic_int reporter; /* the place of who opens steps, calls back, prints, saves */
    atomic_int paused;   /* no step is opened */
    atomic_int wanted;   /* workers that somebody asks for; 0: as many as there are */

    /* Founding: the reporter lays the store out, others compare. */
    _Alignas(64) atomic_int checked; /* there is memory for all */
    atomic_int founded;
    _Atomic int64_t planned; /* bytes, of all workers; 0: not known yet */
    uint8_t digest[32]; /* of all that must be the same in all workers */
    uint64_t store_bytes;
    int lanes, n_items; /* lanes: of the usual step */
    int n_shapes;       /* of steps, see shapes.h */
    struct {
        int lanes, levels;
        struct {
            int nodes, first; /* 0 nodes: there is none; first: see board.h */
        } tree[2];
    } shape[CREW_MOST_SHAPES];
    int shape_of[2]; /* of odd and of even steps, written before they are opened */
    struct {
        int nodes, slots; /* of all shapes */
        uint64_t board;   /* where from the store's begin */
    } tree[2];
    uint64_t tasks;
    int n_tasks;
    uint64_t undo, undo_bytes, names, slowest, audits;
    uint64_t loads; /* words of what is read of the samples of coming steps */
    int n_loads;
    uint64_t evaluation; /* see crew/eval_queue.h */
    int64_t n_batches;   /* of it; 0: who reports evaluates alone */
    int audit_roots;
    int all_threads;
    char value_name[CREW_MOST_VALUES][CREW_NAME];
    int n_values;
    int64_t batch;

    /* The course of the run. */
    _Alignas(64) _Atomic uint64_t opened;    /* the step that is worked on, from 1 */
    _Alignas(64) _Atomic uint64_t committed; /* steps that are done */
    _Atomic uint64_t audited; /* lanes */
    _Atomic uint64_t total;
    _Atomic uint64_t base; /* steps that were done when the run began */
    atomic_int ending;
    atomic_int keeps;  /* it writes checkpoints */
    _Atomic uint32_t save_asked, save_answered; /* counted */
    _Atomic uint64_t saved; /* the step of the last answer */
    char save_error[CREW_LINE]; /* of the last answer; empty: it was saved */
    _Atomic uint32_t save_failures; /* counted */
    char save_failure[CREW_LINE];   /* what was told of the last */
    atomic_int stop;   /* of crew_stop */
    atomic_int closed; /* the reporter has closed the run: nothing of it is left to be done */
    atomic_int failing; /* 1 + the place of who writes `failure`; 0: nobody */
    char failure[1024];
    char out[1024];  /* the run's directory, absolute; empty: none */
    char title[128]; /* what runs */
    double rate; /* the learning rate of the step that is open */
    double set_rate; /* that a program has set in place of the schedule's; NaN: none */
    float scalar[CREW_MOST_SCALARS];
    struct {
        _Atomic uint64_t step; /* 0: being written */
        double value[CREW_MOST_VALUES];
        double rate;
        int skips; /* updates skipped in succession, up to this one */
    } values[2]; /* of the last two steps */
    double until_loss;        /* somebody waits for the loss to be so low; 0: nobody */
    _Atomic uint64_t reached; /* the first step at which it was */
    _Atomic int64_t reached_at;
    _Atomic int64_t committed_at; /* when the latest step was done, nanoseconds */
    _Atomic int64_t began;    /* the first step, nanoseconds of CLOCK_MONOTONIC */
    atomic_int recorded;      /* metrics.jsonl is of this run */
    _Atomic uint64_t evaluated; /* the step behind which an evaluation is under way; 0: there is none */
    struct policy_state policy_state[2]; /* of evaluations: the last is that of n_policy_states */
    _Atomic uint32_t n_policy_states;
    struct crew_shown shown;
    struct tally bad[2]; /* samples of the run's data, of that of evaluations */
    _Atomic uint64_t crash_told; /* a hash of the place of the last crash that the user was told of */
    atomic_int code;           /* of who has closed the run */
    char last_line[CREW_LINE]; /* of a run whose steps are done; the agent prints it at the end */

    struct crew_worker worker[CREW_MOST_WORKERS];
    struct crew_thread thread[CREW_MOST_THREADS];
};

/* How many are asked for. */
struct crew_shape {
    int workers, spares, threads; /* of each worker */
    int most; /* workers that it can be scaled to; 0: no more */
    double audit;
};
/* Refuses what there cannot be. */
tri_status crew_check(const struct crew_shape *shape);
/* The head of a store that nobody has founded yet. */
void crew_head_begin(struct crew_head *h, const struct crew_shape *shape);

/* A step has been opened since the run began. */
bool crew_begun(const struct crew_head *h);

/* Whoever waits looks again. */
void crew_notify(struct crew_head *h);
/* As crew_until, but looks again at the latest at a time of base_now. */
void crew_until_or(struct crew_head *h, bool (*holds)(void *arg), void *arg, int64_t when,
                   _Atomic uint64_t *turns);
/* The threads of all workers exceed the cores: none of them spins. */
bool crew_crowded(const struct crew_head *h);
/* Waits until the condition holds; see wait_until. turns (nullable) grows meanwhile, for it is no stall. */
void crew_until(struct crew_head *h, bool (*holds)(void *arg), void *arg, _Atomic uint64_t *turns);

#endif
