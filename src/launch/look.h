/* SPDX-License-Identifier: Apache-2.0
 * A view of a run from another process, through the head of its store. It does not disturb the run:
 * the head is mapped read-only, no lock is taken, and nothing is waited for. */
#ifndef LAUNCH_LOOK_H
#define LAUNCH_LOOK_H

#include "crew/head.h"

struct look {
    struct crew_head *head; /* written only if opened with `steer` */
    int pid, fd;            /* the agent, and its descriptor of the store */
    int store;              /* our own descriptor of the store */
    char *names;            /* [n_names][CREW_NAME], the operators' names, copied; null: not yet */
    int n_names;
    struct pipeline pipeline; /* the schedule of the legs; without turns: not yet */
};

/* Opens the run of a directory; of one over several hosts, its part on this host, whose directory
 * is DIR or DIR/NAME. Fails with a message that says why there is none. */
tri_status look_open(const char *directory, bool steer, struct look *l);
/* Opens the run of an agent; false if the process is none. */
bool look_open_agent(int pid, struct look *l);
void look_close(struct look *l);
/* Whether the agent still has the store open. The head can be read even if not. */
bool look_alive(const struct look *l);

enum look_state {
    LOOK_STARTING, /* before the first step */
    LOOK_RUNNING,
    LOOK_PAUSING,  /* while the open step is finished */
    LOOK_PAUSED,
    LOOK_STOPPING,
    LOOK_FINISHED,
    LOOK_STOPPED,
    LOOK_FAILED,
    LOOK_LOST, /* the agent is gone, and the run has not ended properly */
    LOOK_STATES
};
const char *look_state_name(enum look_state s);

/* A worker. Counts are sums over its threads; the activity is that of its first thread. */
struct look_worker {
    enum crew_state state;
    int rank, pid, restarts;
    bool leaves;
    int64_t peak;
    int at, lane, item;
    int leg;
    char leg_name[LEG_TEXT + 1]; /* crew_name_leg */
    uint32_t step;
    int64_t since;      /* of its activity, not of each operator (crew/head.h) */
    uint64_t heartbeat; /* grows with each operator */
    int64_t lane_time; /* mean time of a lane on a thread, nanoseconds; 0: unknown */
    int64_t time[SPENTS]; /* nanoseconds */
    int64_t no_core; /* of these, in which its threads were ready and had no core */
    uint64_t lanes_done, lanes_lost;
    struct crew_seats seats; /* of a mesh */
    bool seated;             /* it has some */
    bool stopped;    /* by a signal, or a debugger */
    int core;        /* where its first thread has run last; -1: unknown */
    char stages[GROUP_STAGES]; /* that it serves, "0,2"; empty: none */
    int turn, turns; /* its leg's place among the turns of a step, from 1; 0: unknown */
};

/* The state of a run at one moment. All numbers are within the bounds of the arrays. */
struct look_view {
    int64_t now; /* nanoseconds, CLOCK_MONOTONIC */
    enum look_state state;
    bool closed;
    uint64_t opened, committed, total, base;
    int64_t began, ended, batch; /* ended: when the last step was done */
    int replicas; /* of a mesh; 0: none */
    int lanes, stages, ranks, wanted, most, spares, threads, places, reporter;
    uint32_t deaths;
    double loss; /* of the latest step; NaN: unknown */
    struct {
        int n, taking; /* 0: the run has one host; those that take part */
        uint32_t epoch;
        char self[HOSTS_NAME], teller[HOSTS_NAME];
        uint64_t sent, received, sent_whole; /* as in struct crew_hosts */
    } hosts;
    char title[128], out[PATH_MAX], failure[1024];
    struct look_worker worker[CREW_MOST_WORKERS]; /* by place */
};
void look_at(struct look *l, struct look_view *v);
/* Whether the place has, or should have, a worker. */
bool look_worker_shown(const struct look_worker *w);

/* The latest views of a run, which tell together how fast it goes, and what its workers spend their
 * time on. */
#define PACE_LOOKS 32
struct pace {
    struct look look;
    struct look_view view[PACE_LOOKS]; /* a ring */
    int looks;                         /* views taken so far */
};
const struct look_view *pace_look(struct pace *p);         /* takes another view */
const struct look_view *pace_latest(const struct pace *p); /* once there is one */
/* Seconds from the end of a step to that of the next, of the last steps, or of all if too few have
 * ended recently; 0: unknown. */
double pace_step(const struct pace *p);
/* Which part of the last seconds a worker's threads have spent on a group, or on one thing; NaN:
 * not known yet. */
double pace_group(const struct pace *p, int place, enum spent_group group);
double pace_spent(const struct pace *p, int place, enum spent what);
/* The same in which they were ready to run and had no core. */
double pace_no_core(const struct pace *p, int place);
/* What the host sends and receives in bytes per second, on the wire, and what that sent is in
 * memory; NaN: not known yet. */
struct pace_wire {
    double sent, received, sent_whole;
};
struct pace_wire pace_wire(const struct pace *p);

/* "lane 3 conv1.dw" */
void look_describe(struct look *l, const struct look_worker *w, struct text *out);

#endif
