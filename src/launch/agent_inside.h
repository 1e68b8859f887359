/* SPDX-License-Identifier: Apache-2.0
 * What the agent's files share. */
#ifndef LAUNCH_AGENT_INSIDE_H
#define LAUNCH_AGENT_INSIDE_H

#include <signal.h>

#include "launch/agent.h"
#include "launch/cores.h"
#include "launch/recover.h"
#include "launch/meter.h"
#include "observe/events.h"
#include "observe/log.h"
#include "observe/run_file.h"

struct agent;

/* Waits for the death of one worker's thread by locking its robust mutex `life`. The kernel
 * releases that at once, long before the process is gone. */
struct watcher {
    struct agent *agent;
    int number; /* of the thread, among those of all workers */
    bool started;
    pthread_t thread;
    atomic_int dead; /* it died, at this time: */
    _Atomic int64_t when;
};

#define AT_TEXT 192 /* "step 17, lane 3, operator conv1.conv2d" */

/* A worker's place, as the agent sees it. */
struct process {
    pid_t pid;    /* 0: none */
    bool dead;    /* known to be dead, but not reaped yet */
    bool pending; /* dead, but others may still write to what it has claimed */
    int64_t died; /* when, if known; else 0 */
    int stalled;  /* 1 + the thread whose stall made the agent kill it; or 0 */
    bool stopped; /* a signal had stopped that thread */
    bool freed;   /* the agent has killed it, as all workers waited for each other */
    /* For messages: worker, pid, seats, and its activity at its death. */
    char identity[AT_TEXT + CREW_SEATS + 32];
    int activity; /* where in `identity` that begins */
    /* Progress of its threads: the last count seen, and the time since it changed. */
    struct seen {
        uint64_t heartbeat;
        double still;
        int item; /* at work since then */
        bool warned, stopped;
        char state;    /* as in /proc; 0: not watched */
        double used;   /* processor time, seconds */
        double passed; /* seconds since the last check that count (stall.c) */
    } seen[CREW_MOST_THREADS];
};

enum cause {
    CAUSE_FAULT,  /* of the program itself, likely to happen again: an exit, a stall, or a signal
                     that no other process sent */
    CAUSE_MEMORY, /* killed by the kernel for lack of memory */
    CAUSE_KILL,   /* anything else, from outside */
    CAUSES
};

#define MOST_FAULTS 3 /* at one place, or deaths for lack of memory in one step: end the run */

/* Where workers died of a fault, and how often. */
struct fault_place {
    uint64_t step;
    int at, lane, item, times;
};

/* The trials of -n auto. */
struct choice {
    int ranks;      /* that take part now; 0: nothing has been tried */
    uint64_t first; /* the first step of the measurement */
    int64_t since;  /* its time */
    double rate[CREW_MOST_WORKERS + 1]; /* steps per second, by ranks; 0: not tried */
};

struct agent {
    const struct launch *launch;
    int fd; /* of the store */
    struct crew_head *head;
    struct recovery recovery;
    struct process *process; /* by place */
    struct watcher watcher[CREW_MOST_THREADS];
    int signals, deaths; /* signalfd; eventfd that watchers write to */
    sigset_t old_mask;
    bool blocks_signals; /* and holds pipes */
    struct log log;
    struct meter *meter; /* nullable */
    struct events *events;
    struct run_file *run;
    struct recorder *recorder; /* of a profile; null: none is recorded */
    int rings;                 /* the file of rings */
    int earlier;    /* the number of the files of an earlier run; 0: there are none */
    bool same_run;  /* this host has taken part in the run before */
    bool described, continues; /* as the head says; the file has it */
    struct lost {   /* by rank: what it costs that its worker has died */
        int64_t since;         /* 0: nothing */
        int64_t death, takeover; /* faults in run.json; -1: none */
    } lost[CREW_MOST_WORKERS];
    struct {        /* what workers have written to worker-K.out, see outputs.c */
        struct log log;
        int64_t noted[CREW_MOST_WORKERS], looked;
        int next;
    } outputs;
    uint32_t save_failures;        /* reported so far */
    char last_print[512];          /* the latest message */
    int address;                   /* descriptor of agent.json, locked; -1: none */
    int64_t stop_deadline, looked; /* nanoseconds; the end of --grace; the last progress check */
    bool stopped;                  /* no worker is started any more */
    int output[2];                 /* stdout and stderr for the reporter */
    struct cores cores;
    bool automatic, died; /* -n auto is still trying; a worker has died since the first step */
    struct choice choice;
    bool timed;
    bool leaves; /* a run over several hosts */
    /* While all threads wait for each other: the work done so far; seconds since it grew. */
    uint64_t done_seen;
    double idle;
    uint64_t stood; /* the last step in which that lasted too long */
    /* Deaths in a row, by place, of workers that were not killed before they could take part. */
    int failed_starts[CREW_MOST_WORKERS];
    int64_t timing_since, timing_first;
    double timing_waited;
    /* A worker has exited before the first step. Until the deadline, the reporter may meet the same
     * mistake and print it. */
    int64_t early_exit_deadline;
    int early_exit_place, early_exit_code;
    int forced_code, reporter_code;      /* exit codes: decided by the agent; of the reporter */
    struct fault_place fault_place[8];   /* the latest */
    int next_fault_place;
    struct {
        uint64_t step; /* the last step done */
        int times[CAUSES];
    } deaths_since;
    struct {
        int64_t seen; /* kills for lack of memory, as the control group counts them */
        int open;     /* of these, not attributed to a death yet */
        int64_t rose, looked; /* times of the last rise and of the last reading */
    } oom;
};

/* Prints a message on stderr and writes it to the log. */
void agent_print(struct agent *a, const char *fmt, ...) TRI_PRINTF(2, 3);
/* Runs the user's command for an event. worker, code: -1 if there is none. */
void agent_event(struct agent *a, const char *name, int worker, int code, const char *message);
void agent_path(const struct agent *a, char path[4096], const char *name); /* in the directory */
tri_status agent_open_files(struct agent *a); /* before the head is there, */
tri_status agent_write_address(struct agent *a);
tri_status agent_open_run(struct agent *a); /* run.json, once it is */
void agent_write_run(struct agent *a);
void agent_close_run(struct agent *a, int code);
/* A death, stall or takeover, for run.json; cost: NaN: not known yet. Returns its number. */
int64_t agent_fault(struct agent *a, const char *kind, int place, const char *text, double cost);
/* The rank computes nothing from then on, after this fault; it computes again in this place, or, if
 * that is -1, nobody waits for it any longer. */
void agent_rank_lost(struct agent *a, int rank, int64_t since, int64_t fault);
void agent_rank_back(struct agent *a, int rank, int place, int64_t when);
void agent_note_outputs(struct agent *a, bool all);
tri_status agent_start(struct agent *a, int place); /* starts a worker in that place */
tri_status agent_start_all(struct agent *a);
void agent_reap(struct agent *a); /* handles deaths */
enum cause agent_cause(struct agent *a, int place, int status);
/* Counts a death, and ends the run if it cannot go on. */
void agent_count_death(struct agent *a, int place, enum cause cause);
void agent_check_memory(struct agent *a); /* for kills for lack of memory */
/* The thread of a dead worker that crashed or stalled; if unknown, one that was active. */
int agent_thread_at_fault(const struct agent *a, int place);
bool agent_is_starting(const struct agent *a, int place); /* it cannot take part in steps yet */
void agent_check_progress(struct agent *a);               /* handles stalls */
void agent_check_standstill(struct agent *a, double passed); /* seconds since the last check */
void agent_choose_workers(struct agent *a);               /* -n auto */
void agent_log_first_lanes(struct agent *a); /* of workers that have begun, or replaced others */
void agent_time(struct agent *a);
void agent_scale(struct agent *a); /* to the number of workers that `trireme ctl` asked for */
/* The activity of a thread, or the one during which it died. */
void agent_describe(const struct agent *a, int thread, char text[AT_TEXT]);
void agent_kill(const struct agent *a, int place);
void agent_kill_all(struct agent *a);
void agent_join_watchers(struct agent *a);
/* A profile (recorder.c). make_rings: before a worker is started. */
tri_status agent_make_rings(struct agent *a);
void agent_profile(struct agent *a);
/* The process is dead, since then, and no other has its place yet: nothing counts its time any
 * more, and its last spans end. */
void agent_end_times(struct agent *a, int place, int64_t when);
void agent_end_profile(struct agent *a); /* at the end of the run */
/* From now on workers have --grace seconds. */
void agent_begin_grace(struct agent *a);
/* Kills all workers; the exit code is `code`. The reason has been reported. */
void agent_end_now(struct agent *a, int code);
/* Ends the run with code 1. If it writes checkpoints, the reporter, or a worker started for this,
 * saves the last step first. */
void agent_fail(struct agent *a, const char *why);

#endif
