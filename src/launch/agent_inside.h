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
#include "exec/crew_layout.h"

struct agent;

/* Waits for one hand's death by its life mutex: the kernel gives that on at once, long before the
 * process is gone. */
struct watcher {
    struct agent *agent;
    int hand;
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
    bool killed;       /* by the agent: it had stalled */
    int core;          /* that the dead had */
    char epitaph[AT_TEXT + 32]; /* who it was, and what it was at when it died */
    /* The hands' progress: what was seen last, and for how long it has not changed. */
    struct {
        uint64_t turns;
        double still;
        bool warned, stopped;
    } seen[CREW_MOST_HANDS];
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
    struct watcher watcher[CREW_MOST_HANDS];
    int signals, deaths; /* descriptors */
    sigset_t old_mask;
    struct log log;
    struct events *events;
    uint32_t save_failures; /* that have been heard of */
    char told[512]; /* the last that it told */
    int card; /* agent.json, locked; -1: none */
    int64_t stop_deadline, looked; /* nanoseconds */
    bool stopped; /* nobody is started any more */
    int output[2]; /* the descriptors behind stdout and stderr, for whoever reports */
    struct cores cores;
    bool automatic;
    struct choice choice;
    bool timed;
    /* While a step is open and all wait: what they have done so far, and for how long it is the same. */
    uint64_t done_seen;
    double idle;
    /* How often in turn one in this place has gone before it rowed; of these, by itself. */
    struct useless {
        int times, ended;
    } useless[CREW_MOST_WORKERS];
    int64_t timing_since, timing_first;
    int64_t mute; /* until then the reporter may tell why another has ended before the first step */
    int mute_place, mute_code;
    int early; /* deaths before the first step */
    int hopeless, reporter_code;
    int deaths_at[CPU_SETSIZE], deaths_in_all; /* by the place in `cores` of the first that it had */
    /* Where workers died lately: what kills three of them is the program's fault. */
    struct {
        uint64_t step;
        int at, lane, item, times;
    } grave[8];
    int next_grave;
};

void agent_tell(struct agent *a, const char *fmt, ...) TRI_PRINTF(2, 3);
/* Starts the user's command for events; worker -1: none, code -1: none. */
void agent_event(struct agent *a, const char *name, int worker, int code, const char *message);
tri_status agent_open_logs(struct agent *a);
tri_status agent_write_card(struct agent *a);
tri_status agent_start(struct agent *a, int place); /* a worker in that place */
tri_status agent_start_all(struct agent *a);
void agent_reap(struct agent *a);  /* deaths, and what follows */
void agent_watch(struct agent *a); /* stalls */
void agent_choose(struct agent *a); /* how many row, if that is to be tried */
void agent_note_rowing(struct agent *a);
void agent_time(struct agent *a);
void agent_scale(struct agent *a); /* to as many workers as are wanted */
/* What a hand is at, or was when it died, in words. */
void agent_describe(const struct agent *a, int hand, char text[AT_TEXT]);
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
