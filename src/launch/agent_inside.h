/* SPDX-License-Identifier: Apache-2.0
 * What the agent's files share. */
#ifndef LAUNCH_AGENT_INSIDE_H
#define LAUNCH_AGENT_INSIDE_H

#include <signal.h>

#include "launch/agent.h"
#include "launch/cores.h"
#include "launch/recover.h"
#include "observe/events.h"
#include "observe/log.h"
#include "crew/layout.h"

struct agent;

/* Waits for one hand's death by its life mutex: the kernel gives that on at once, long before the
 * process is gone. */
struct watcher {
    struct agent *agent;
    int number; /* of the thread among all workers' */
    bool started;
    pthread_t thread;
    atomic_int dead; /* the hand is: since when, below */
    _Atomic int64_t when;
};

#define AT_TEXT 192 /* "step 17, lane 3, operator conv1.conv2d" */

/* A place among the workers, as the agent sees it. */
struct process {
    pid_t pid; /* 0: nobody */
    bool dead; /* it has been found dead, and recovered from, before it could be reaped */
    int stalled;  /* 1 + the thread for whose stall the agent has killed it; 0: it has not */
    bool stopped; /* a signal had stopped it then */
    char epitaph[AT_TEXT + 32]; /* who it was, and what it was at when it died */
    /* The hands' progress: what was seen last, and for how long it has not changed. */
    struct seen {
        uint64_t turns;
        double still;
        bool warned, stopped;
        char state;    /* of the thread, as in /proc; 0: it is not looked at */
        double used;   /* processor time of the thread, seconds */
        double passed; /* since the last look, as stall.c counts it */
    } seen[CREW_MOST_THREADS];
};

enum cause {
    CAUSE_FAULT,  /* its own, and would happen again: an exit, a signal that no other process sent,
                     a stall */
    CAUSE_MEMORY, /* the kernel killed it for lack of memory */
    CAUSE_KILL,   /* whatever else, from outside */
    CAUSES
};

#define TOO_MANY 3 /* faults at one place, or deaths for lack of memory in one step */

/* Where workers died of a fault. */
struct grave {
    uint64_t step;
    int at, lane, item, times;
};

/* What `-n auto` has found out. */
struct choice {
    int ranks;      /* that row now; 0: nothing has been tried */
    uint64_t first; /* from this step on they are timed */
    int64_t since;
    double rate[CREW_MOST_WORKERS + 1]; /* steps a second, by ranks; 0: not tried */
};

struct agent {
    const struct launch *launch;
    int fd; /* of the store */
    struct crew_head *head;
    struct recovery recovery;
    struct process *process; /* by place */
    struct watcher watcher[CREW_MOST_THREADS];
    int signals, deaths; /* descriptors */
    sigset_t old_mask;
    bool listens; /* to signals and to closed pipes */
    struct log log;
    struct events *events;
    uint32_t save_failures; /* that have been heard of */
    char told[512]; /* the last that it told */
    int card; /* agent.json, locked; -1: none */
    int64_t stop_deadline, looked; /* nanoseconds */
    bool stopped; /* nobody is started any more */
    int output[2]; /* the descriptors behind stdout and stderr, for whoever reports */
    struct cores cores;
    bool automatic, died; /* died: a worker has, since the first step */
    struct choice choice;
    bool timed;
    /* While a step is open and all wait: what they have done so far, and for how long it is the same. */
    uint64_t done_seen;
    double idle;
    /* How often in turn a worker in this place has died, and was not killed, before it rowed. */
    int useless[CREW_MOST_WORKERS];
    int64_t timing_since, timing_first;
    int64_t mute; /* until then the reporter may tell why another has ended before the first step */
    int mute_place, mute_code;
    int hopeless, reporter_code;
    struct grave grave[8]; /* of faults, the latest */
    int next_grave;
    struct {
        uint64_t step; /* that was done last */
        int times[CAUSES];
    } deaths_since;
    struct {
        int64_t seen; /* kills for lack of memory, by the control group's count */
        int open;     /* of these, no death has been put down to yet */
        int64_t rose, looked; /* when it rose, and was read, last */
    } oom;
};

void agent_tell(struct agent *a, const char *fmt, ...) TRI_PRINTF(2, 3);
/* Starts the user's command for events; worker -1: none, code -1: none. */
void agent_event(struct agent *a, const char *name, int worker, int code, const char *message);
tri_status agent_open_logs(struct agent *a);
tri_status agent_write_card(struct agent *a);
tri_status agent_start(struct agent *a, int place); /* a worker in that place */
tri_status agent_start_all(struct agent *a);
void agent_reap(struct agent *a);  /* deaths, and what follows */
enum cause agent_cause(struct agent *a, int place, int status);
/* Counts a death, and ends a run that could not go on. */
void agent_weigh(struct agent *a, int place, enum cause cause);
void agent_watch_memory(struct agent *a); /* kills for lack of it */
/* Of a worker that has died: the thread that crashed or stalled, if that is known; else one that
 * was at work. */
int agent_thread_to_tell_of(const struct agent *a, int place);
bool agent_is_starting(const struct agent *a, int place); /* it has not come so far as to row */
void agent_watch(struct agent *a); /* stalls */
void agent_choose(struct agent *a); /* how many row, if that is to be tried */
void agent_note_first_lane(struct agent *a);
void agent_time(struct agent *a);
void agent_scale(struct agent *a); /* to as many workers as are wanted */
/* What a hand is at, or was when it died, in words. */
void agent_describe(const struct agent *a, int thread, char text[AT_TEXT]);
void agent_kill(const struct agent *a, int place);
void agent_kill_all(struct agent *a);
void agent_join_watchers(struct agent *a);
/* Workers have --grace seconds left. */
void agent_begin_grace(struct agent *a);
/* The run ends with this code; why has been told. */
void agent_give_up(struct agent *a, int code);
/* The same with code 1, but what the last step has left is saved first, if checkpoints are made: by who reports, or
 * by a worker that is started for that. */
void agent_fail(struct agent *a, const char *why);

#endif
