/* SPDX-License-Identifier: Apache-2.0
 * The head of the store: what the agent and its workers share from the start. The store is one
 * memory file, which processes inherit through exec. After the head it has the memory that the
 * network needs, which a worker lays out once it has compiled the network (run/worker.c). Each
 * process maps the file at another address, so it contains offsets, not pointers. */
#ifndef CREW_HEAD_H
#define CREW_HEAD_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/base.h"
#include "base/tally.h"
#include "base/wait.h"
#include "checkpoint/policy_state.h"
#include "crew/board.h"
#include "crew/group.h"
#include "crew/hosts.h"
#include "crew/regions.h"
#include "crew/spend.h"
#include "plan/pipeline.h"

#define CREW_MAGIC 0x38574552434954ull /* must change when anything below does */
#define CREW_MOST_WORKERS 128
#define CREW_MOST_THREADS 512
#define CREW_NAME 56
#define CREW_LINE 512
#define CREW_CHOICE 8192
enum crew_choice { CREW_CHOOSES_FIT, CREW_CHOOSES_CUTS, CREW_CHOICES };
#define CREW_REQUEST 128
#define CREW_ANSWER 16384
#define CREW_ABOUT 65536

/* Owners of claims are numbered in one table: threads, as in the head's table of threads, and after
 * them what computes nothing. What a worker does as a whole (samples, initial values, batches of an
 * evaluation) is its first thread's. */
enum crew_owner {
    CREW_AGENT = CREW_MOST_THREADS,
    CREW_FERRY,
    CREW_OWNERS /* at most CLAIM_MOST_OWNERS */
};

/* Environment variables of a worker: the descriptor of the store's file, the worker's index in the
 * table below, and the descriptors for the reporter's output. */
#define CREW_ENV_STORE "TRIREME_STORE_FD"
#define CREW_ENV_PLACE "TRIREME_WORKER"
#define CREW_ENV_OUTPUT "TRIREME_OUTPUT_FDS"

/* What a thread is doing. */
enum crew_at {
    CREW_AT_START,    /* before tri_open */
    CREW_AT_COMPILE,  /* in tri_open */
    CREW_AT_DATA,     /* in a source of samples */
    CREW_AT_LANE,
    CREW_AT_SUM,
    CREW_AT_UPDATE,
    CREW_AT_WAIT,
    CREW_AT_CALLBACK, /* between two steps: the user's program */
    CREW_AT_EVALUATE, /* between two steps */
    CREW_AT_SAVE,
    CREW_AT_LEAVE,    /* in or after tri_close */
    CREW_AT_REST,     /* between two tasks, waiting for its team, or in a run that does not train */
    CREW_AT_COMPUTE,  /* a step, in a run of one process */
    CREW_ATS
};
const char *crew_at_name(enum crew_at at);

/* What a thread at CREW_AT_WAIT waits for, and its part: */
enum crew_for {
    CREW_FOR_STEP,    /* the end of the step, or the next one */
    CREW_FOR_LANES,   /* lanes that others compute; the phase */
    CREW_FOR_SUMS,    /* the same, when all lanes are computed */
    CREW_FOR_SLOTS,   /* the same, when no slot is free for another */
    CREW_FOR_LEGS,    /* legs that come before; the phase */
    CREW_FOR_TASKS,   /* tasks of others; the first of the sweep */
    CREW_FOR_ORDER,   /* an order; the group */
    CREW_FOR_QUIET,   /* that others end their work on one, or arrive; the group */
    CREW_FOR_MEMBERS, /* words of others that work on one; the group */
    CREW_FOR_HOSTS,   /* sums of other hosts, or their word that they have all of a step */
    CREW_FOR_PAUSE,   /* that the run goes on */
    CREW_FORS
};

/* A thread of a worker. While it lives, only the thread itself writes here. Times are in
 * nanoseconds; points in time are of CLOCK_MONOTONIC. */
struct crew_thread {
    _Alignas(128) pthread_mutex_t life;          /* robust, locked for the thread's life */
    atomic_int held;                             /* life is locked: losing it means death */
    atomic_int tid;                              /* the kernel's number; 0: not known yet */
    _Atomic uint64_t heartbeat;                  /* grows while the thread makes progress */
    /* When it began what it is doing: the operators of a lane, or its tasks of a sweep, are one. */
    _Atomic int64_t since;
    atomic_int at;                               /* enum crew_at */
    atomic_int lane;                             /* or a batch, or a callback; -1: none */
    atomic_int leg;                              /* of the lane; -1: the lane is one piece */
    atomic_int item;                             /* index in the table of names; -1: none */
    _Atomic uint32_t step;
    _Atomic uint64_t waits_for;                  /* enum crew_for, times 2^32, plus its part */
    /* When it began its lane, or one that its worker computes with all its threads; 0: none. */
    _Atomic int64_t lane_began;
    _Atomic int64_t lane_time;                   /* average time of a lane; 0: not known */
    _Atomic int64_t pure_time;                   /* the same, without waiting for samples */
    struct spending spending;                    /* of all workers that have had the place */
    /* Of members of a replica, all in which they took part. lost: another thread was first. */
    _Atomic uint64_t lanes_done, lanes_lost;
    _Atomic uint64_t rows;                       /* step whose outputs' rows it writes, or 0 */
    atomic_int again; /* 1 + (leg * lanes +) the slow lane that it repeats */
    atomic_int failed_lane;                      /* of `step`; -1: none */
    char fault[512];
};

enum crew_state {
    CREW_EMPTY,
    CREW_STARTING, /* before its first step */
    CREW_READY,
    CREW_LEFT, /* it has closed its run */
};

/* A worker process, which writes this. The agent writes rank, pid, leave, restarts and core, and
 * clears the rest for the next process in this place. */
struct crew_worker {
    _Alignas(64) atomic_int state; /* enum crew_state */
    atomic_int rank;               /* -1: a spare */
    atomic_int pid;
    atomic_int leave;    /* it is asked to leave after the step */
    atomic_int restarts; /* counted by the agent */
    _Atomic int64_t peak; /* bytes of memory */
    _Atomic int64_t first_claimed; /* when it first claimed a lane with its present rank, in
                                    * nanoseconds; 0: not yet; -1: the agent has seen it */
    atomic_int core;
    char failure[CREW_LINE]; /* its last message before it ended by itself */
    /* Written by the handler of a signal that its own code caused, such as SIGSEGV: */
    atomic_int crashed;    /* 1 + the thread's index; 0: none, or not known */
    atomic_int traced;     /* the signal, if a trace is in its output; else 0 */
    atomic_int reads_lane; /* 1 + the lane whose samples a reading thread was at; 0: none */
    _Atomic uint32_t reads_step;
    atomic_int sender; /* process that sent the signal; 0: none; -1: of another namespace */
};

/* What the user has been shown, so that the next reporter does not show it again. */
struct crew_shown {
    atomic_int notes;           /* on the data, on idle workers, ... */
    atomic_int head;            /* the first lines */
    _Atomic int64_t step;       /* of the last line of progress */
    _Atomic int64_t evaluation; /* step of the last evaluation */
    atomic_int predicted;       /* how well the plan predicted a step */
    atomic_int not_finite;      /* the warning that the loss is not finite, while it holds */
};

enum crew_ending {
    CREW_RUNS,
    CREW_FINISHED, /* all steps are done, or the reporter has closed the run */
    CREW_STOPPED,  /* on request */
    CREW_FAILED,   /* an operator or the data failed */
};

/* Why a run must end after the current step. */
enum crew_stop {
    CREW_STOP_NO,
    CREW_STOP_ASKED,  /* by a signal to the agent, `trireme ctl` or launch/timing.c */
    CREW_STOP_UNREAD, /* nobody reads stdout or stderr any more */
};

/* The size of a run. The agent writes it before it starts a worker; it never changes. */
struct crew_size {
    int workers, spares; /* at the start */
    int threads;         /* per worker */
    int most;            /* workers that can take part in a step; 0: `workers` */
    double audit;        /* fraction of the lanes that a second worker computes */
    int hosts;           /* of the run; 0: one */
    bool paths;          /* their sums may take another path than the exchange */
    int weight[HOSTS_MOST]; /* by host: its share of the lanes while all take part */
    /* Computed by crew_head_begin: */
    int places;        /* used entries of `worker`: most + spares */
    int place_threads; /* used entries of `thread`: of all places */
    int cores;
};

/* What takes long to choose is chosen by one worker for all. Whoever holds the lock reads and
 * writes it; once it is there, nobody changes it. */
struct crew_chosen {
    pthread_mutex_t lock; /* robust */
    int is_there;
    char text[CREW_CHOICE];
};

/* Who takes part. The agent alone writes this: after a death, and when the number of workers
 * changes. All read it at any time. */
struct crew_workers {
    _Alignas(64) _Atomic uint32_t epoch; /* counts deaths after their recovery */
    atomic_int ranks;                    /* workers that take part in a step */
    atomic_int reporter;                 /* index of the reporter */
};

/* What is asked of a run that has begun. `trireme ctl` writes this; also the agent, at a signal or
 * when a measurement ends, and a worker whose output nobody reads (stop alone). The agent acts on
 * `wanted`, the reporter on the rest, between two steps. */
struct crew_asked {
    _Alignas(64) atomic_int paused; /* not 0: no step is opened; another number at each request */
    atomic_int wanted;              /* number of workers; 0: no change */
    atomic_int stop;                /* enum crew_stop */
    _Atomic uint32_t saves;         /* counts requests to save */
    double until_loss; /* set at the start: measure when the loss gets so low; 0: not */
    /* To the coordinator of a run over several hosts. Whoever sets `by` to its process, from 0 or
     * from one that is dead, may write the text and then count `requests`. When told.answered is
     * equal, or it gives up, it sets `by` to 0. */
    atomic_int by;
    _Atomic uint32_t requests;
    char request[CREW_REQUEST];
};

/* The layout of the store. The reporter writes it once, then sets `published`; other workers
 * compare it with theirs, and the agent frees what a dead worker held by it. The agent clears the
 * first two words if the run starts again before its first step. */
struct crew_layout {
    _Alignas(64) atomic_int checked; /* the memory of all workers fits the limit */
    atomic_int published;            /* all that follows is there */
    _Atomic int64_t planned;         /* bytes of all workers together; 0: not known yet */
    uint8_t digest[32];              /* of everything that must be the same in all workers */
    uint64_t store_bytes;
    int lanes;    /* of a step of the first shape */
    struct legs legs; /* of a lane; without stages, none */
    struct pipeline_wish schedule; /* of the legs */
    int claimers; /* threads of a worker that claim lanes or legs */
    int seats;    /* of the mesh; 0: each worker computes alone, else they form groups */
    int n_shapes; /* of steps, see run/executables.h */
    struct {
        int lanes, levels;
        struct {
            int buckets; /* 0: no such phase */
            int boards;  /* index of the first bucket's board among all */
            int rounds;  /* nodes with so many sums above them, or fewer, are rounded; -1: none */
            size_t apart; /* see struct tree */
        } tree[2];
    } shape[CREW_MOST_SHAPES];
    int nodes[2]; /* by phase: of all shapes and buckets */
    uint64_t seed;
    int64_t batch;
    struct region region[REGIONS];
};

/* The course of the run. The reporter writes it before it opens a step or between two steps, unless
 * a comment names another writer; the committer is the thread that finds a step done. All read it
 * at any time. The agent clears it if the run starts again before its first step. The words that
 * waiting threads look at share no cache line with those that change during a step. */
struct crew_course {
    _Alignas(64) _Atomic uint64_t opened;    /* the current step, from 1 */
    _Alignas(64) _Atomic uint64_t committed; /* steps done; committer */
    _Atomic uint64_t total;                  /* steps */
    _Atomic uint64_t base;                   /* steps done when the run began */
    atomic_int ending;  /* enum crew_ending; whoever ends the run */
    atomic_int failing; /* 1 + the enum crew_owner that writes `failure`; 0: none */
    atomic_int closed;  /* the reporter has closed the run: nothing is left to do */
    atomic_int keeps;   /* the run writes checkpoints; each worker */
    _Alignas(64) double rate; /* learning rate of the current step */
    double set_rate; /* that a program has set instead of the schedule's; NaN: none */
    float scalar[CREW_MOST_SCALARS];
    int shape_of[2]; /* index of the shape of even and odd steps */
    struct {
        _Atomic uint64_t step; /* 0: being written */
        double loss;           /* NaN: not known */
        double rate;
        int skips; /* consecutive updates skipped, this one included */
    } values[2];   /* of even and odd steps; committer */
    _Atomic uint64_t reached;     /* the first step with until_loss; committer */
    _Atomic int64_t reached_at;   /* in nanoseconds of CLOCK_MONOTONIC; committer */
    _Atomic int64_t committed_at; /* when the last step was done; committer */
    _Atomic int64_t opened_at;    /* when the current step was opened */
    /* The slowest step since the meter took it away, which writes 0. Microseconds and the step. */
    _Atomic uint64_t slowest;
    _Atomic int64_t began;        /* when the first step began */
    _Atomic uint64_t evaluated;   /* step after which an evaluation now runs; 0: none */
    struct policy_state policy_state[2]; /* the last one is at n_policy_states % 2 */
    _Atomic uint32_t n_policy_states;
    _Atomic uint64_t audited; /* lanes; threads that audit */
    char failure[1024]; /* written by the owner in `failing`, which then sets `ending` */
    /* Average time of a leg; 0: not known. Written by whoever computes it. */
    _Alignas(64) _Atomic int64_t leg_time[LEGS_MOST];
};

/* A profile: spans of the threads of all workers in some steps. Each state is set by whom it
 * names. */
enum crew_profile_state {
    PROFILE_NONE,    /* the agent, at the end */
    PROFILE_ASKED,   /* whoever asks, while it writes what it wants */
    PROFILE_WANTED,  /* the same: the reporter, or `trireme profile` */
    PROFILE_OPENS,   /* the reporter, before it opens the first step; the agent makes the files */
    PROFILE_READY,   /* the agent; without a directory it has failed */
    PROFILE_RECORDS, /* the reporter */
    PROFILE_ENDS,    /* the reporter, after the last step; the agent writes what is left */
};

struct crew_profile {
    _Alignas(64) atomic_int state;
    _Atomic uint64_t first, last; /* steps; first 0: the next one is, and `last` is their number */
    _Atomic int64_t most;        /* bytes */
    _Atomic uint64_t own;        /* first step of the latest that the program has asked for */
    atomic_int listed;           /* items.jsonl is there; the reporter */
    atomic_int transfers;        /* the number of its first item that is a transfer, of board 0 */
    _Atomic uint32_t over;       /* counts profiles that are over; the agent, and what follows */
    _Atomic int64_t spans, lost, bytes;
    char directory[PATH_MAX], error[CREW_LINE]; /* of the latest one; before READY */
};

/* Reports for users, the agent and `trireme ctl`. The reporter writes them, unless a comment names
 * another writer. No step depends on them. */
struct crew_told {
    _Alignas(64) char out[PATH_MAX]; /* the run's directory, absolute; empty: none; the agent */
    char title[128];                 /* of the run; the agent, before it starts a worker */
    /* Of several hosts, for these and the next three: the agent, unless this host tells. */
    _Atomic uint64_t paused;        /* 1 + the step after which the teller has paused; 0: no */
    _Atomic uint32_t answered;      /* the latest of asked.requests with an answer: */
    int answer_code;                /* a tri_status */
    char answer[CREW_ANSWER];       /* lines, or the reason for the failure */
    _Atomic uint32_t save_answered; /* the latest of asked.saves with an answer */
    _Atomic uint64_t saved;         /* step of the last answer */
    char save_error[CREW_LINE];     /* of the last answer; empty: it was saved */
    _Atomic uint32_t save_failures; /* count */
    char save_failure[CREW_LINE];   /* message of the last */
    int earlier;                    /* in `out`, see observe/earlier.h; the agent, at the start */
    atomic_int continues;           /* the run goes on with the files of an earlier one */
    atomic_int recorded;            /* metrics.jsonl has been opened by this run */
    atomic_int described;           /* what the network's process knows of the run is there: */
    char about[CREW_ABOUT];         /* for run.json (observe/run_file.h) */
    struct crew_shown shown;
    struct tally bad[2];         /* unreadable samples: of training, of evaluation; any thread */
    _Atomic uint64_t crash_told; /* hash of the last crash that was reported; any thread */
    atomic_int code;             /* exit status of the worker that closed the run */
    char last_line[CREW_LINE];   /* of a finished run; the agent prints it at the end */
};

/* The head, by who writes it. The last three are tables: by place, by place, and by thread, place
 * by place. */
struct crew_head {
    uint64_t magic;
    uint64_t bytes; /* of this head; only programs with the same magic and bytes attach */
    int64_t agent;
    int rings; /* the descriptor of the file of rings, as the store's; see crew_ring_at */
    struct crew_size size;
    struct crew_chosen chosen[CREW_CHOICES];
    _Alignas(64) wait_queue event; /* woken by every change that a thread may wait for */
    _Alignas(64) wait_queue data;  /* the same for samples, and the steps that need them */
    struct crew_workers workers;
    struct crew_asked asked;
    struct crew_layout layout;
    struct crew_course course;
    struct crew_told told;
    struct crew_profile profile;
    struct crew_hosts hosts;
    struct crew_worker worker[CREW_MOST_WORKERS];
    struct group_place place[CREW_MOST_WORKERS];
    struct crew_thread thread[CREW_MOST_THREADS];
};

/* The store begins so many bytes after the begin of the file. */
static inline size_t crew_head_bytes(void) {
    return (sizeof(struct crew_head) + CREW_PAGE - 1) / CREW_PAGE * CREW_PAGE;
}

/* Rings for spans are in a file of their own, which takes memory only once it is used: of a place
 * those of its threads, then SPEND_BESIDE others; after those of all places, the ferry's. */
int crew_rings_each(const struct crew_head *h); /* of a place */
size_t crew_ring_at(const struct crew_head *h, int place, int i); /* its offset */

/* Fails if a size is out of range. */
tri_status crew_check(const struct crew_size *size);
/* Writes the head of a store without a layout. */
void crew_head_begin(struct crew_head *h, const struct crew_size *size);
/* Maps the head of a store of this version, and keeps its descriptor from programs that are started
 * from now on. */
tri_status crew_attach(int fd, struct crew_head **h);

/* The group of the worker in this place; -1: it has no rank, or there are no groups. */
int crew_group_of(const struct crew_head *h, int place);

struct group crew_group(struct crew_head *h, char *base, int number);

/* What the worker computes of a lane; false: it has no seats. */
bool crew_seats_of(const struct crew_head *h, int place, struct crew_seats *out);
/* ", replica 1, seats 0-3", or nothing. */
#define CREW_SEATS 48
const char *crew_name_seats(const struct crew_head *h, int place, char text[CREW_SEATS]);

/* " F1", or nothing: the leg of the lane that the thread is at. */
const char *crew_name_leg(const struct crew_head *h, const struct crew_thread *t,
                          char text[LEG_TEXT + 1]);

/* Whether a step has been opened since the run began. */
bool crew_begun(const struct crew_head *h);

/* A step that has taken so long, in nanoseconds; the committer. */
void crew_note_slow(struct crew_course *c, uint64_t step, int64_t took);
/* Takes the slowest step away. Returns the time that it took, to 1 us; 0: there is none. */
int64_t crew_take_slowest(struct crew_course *c, uint64_t *step);

/* Wakes all threads that wait for a change of the head. */
void crew_notify(struct crew_head *h);
/* Also those that wait for samples: the step or the run has ended, or is to end. */
void crew_notify_end(struct crew_head *h);
/* Asks for a profile; see struct crew_profile. False: somebody else asks, or one is not over. */
bool crew_ask_profile(struct crew_head *h, uint64_t first, uint64_t last, int64_t most);
/* Whether the threads of all workers exceed the cores. If so, waiting threads do not spin. */
bool crew_crowded(const struct crew_head *h);
/* Waits until the condition holds; see wait_until. Meanwhile *heartbeat (nullable) grows, so that
 * the agent does not take it for a stall. */
void crew_wait(struct crew_head *h, bool (*holds)(void *arg), void *arg,
               _Atomic uint64_t *heartbeat);
/* The same, but also checks the condition at the time `when` of base_now, for conditions that time
 * makes true. */
void crew_wait_until(struct crew_head *h, bool (*holds)(void *arg), void *arg, int64_t when,
                     _Atomic uint64_t *heartbeat);

#endif
