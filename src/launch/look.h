/* SPDX-License-Identifier: Apache-2.0
 * A run seen from outside, by way of the head of its store. Looking disturbs nothing: it maps the head
 * read-only, takes no lock and waits for nobody. */
#ifndef LAUNCH_LOOK_H
#define LAUNCH_LOOK_H

#include "crew/head.h"

/* How a run is found: the agent, and the store's descriptor there. */
struct look {
    struct crew_head *head; /* never written to unless it was opened to be steered */
    int pid, fd;
    int store;   /* our own descriptor of the store */
    char *names; /* the table of operators' names, copied; null: not yet */
    int n_names;
};

/* The run that is at work in a directory. Fails with a message that says why there is none. */
tri_status look_open(const char *directory, bool steer, struct look *l);
/* Whether a process is an agent; false leaves nothing open, and no message that matters. */
bool look_open_agent(int pid, struct look *l);
void look_close(struct look *l);
/* Whether the agent still holds the store. The head can be read also when it does no more. */
bool look_alive(const struct look *l);
/* The operator that an item of the table is; empty: not known. */
const char *look_name(struct look *l, int item);

enum look_state {
    LOOK_STARTING, /* before the first step */
    LOOK_RUNNING,
    LOOK_PAUSING, /* the step that is open is finished first */
    LOOK_PAUSED,
    LOOK_STOPPING,
    LOOK_FINISHED,
    LOOK_STOPPED,
    LOOK_FAILED,
    LOOK_LOST, /* the agent is gone, and nothing says that the run has ended */
    LOOK_STATES
};
const char *look_state_name(enum look_state s);

/* A worker; what its threads count is added up, what it is at is its first thread's. */
struct look_worker {
    enum crew_state state;
    int rank, pid, core, restarts;
    bool leaves;
    int64_t peak;
    int at, lane, item;
    uint32_t step;
    int64_t since;
    int64_t lane_time; /* of a thread, on average; nanoseconds; 0: not known */
    int64_t compute, wait, reduce, data; /* nanoseconds; compute without data */
    uint64_t lanes_done, lanes_lost;
};

/* Everything at one moment, within the bounds that arrays have. */
struct look_view {
    int64_t now; /* nanoseconds, CLOCK_MONOTONIC */
    enum look_state state;
    bool closed;
    uint64_t opened, committed, total, base;
    int64_t began, batch;
    int lanes, ranks, wanted, most, spares, threads, places, reporter;
    uint32_t deaths;
    double loss; /* of the last step; NaN: not known */
    char title[128], out[1024], failure[1024];
    struct look_worker worker[CREW_MOST_WORKERS]; /* by place */
};
void look_at(const struct look *l, struct look_view *v);
/* A place that there is something to say about. */
bool look_worker_shown(const struct look_worker *w);

/* "lane 3 conv1.dw" */
void look_describe(struct look *l, const struct look_worker *w, struct text *out);

#endif
