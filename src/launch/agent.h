/* SPDX-License-Identifier: Apache-2.0
 * The agent: starts the workers of a run, watches them, gives back what the dead have left, starts
 * others in their place, and leaves nothing behind. It computes nothing. */
#ifndef LAUNCH_AGENT_H
#define LAUNCH_AGENT_H

#include "crew/head.h"

/* What a run under an agent comes to, for the shell. 0 to 2 are tri_status. */
enum { AGENT_RESUMABLE = 3 };

/* launch.program for this very program, also after its file has been replaced by a newer one: the child
 * that starts it still is it. */
#define LAUNCH_SELF "/proc/self/exe"

/* How fast it is. The run is stopped when that is known. */
struct launch_timing {
    double seconds;    /* to be measured for, but at least 3 steps; or */
    int64_t steps;     /* so many, if not 0 */
    double until_loss; /* besides: until the loss is so low; 0: no */
    double rate;       /* steps a second; 0: not known */
    bool known;        /* it was measured for as long as was asked */
    int64_t batch, lanes, loss_steps;
    double loss_seconds;
};

struct launch {
    int workers;  /* at least one */
    bool automatic; /* `workers` are the most; the first steps show how many are best */
    int most; /* that it can be scaled to; 0: no more */
    int spares, threads; /* threads of each worker; 0: the cores divided among them */
    const char *out;     /* the run's directory; null: none */
    const char *on_event; /* a command (src/observe/events.h); null: none */
    double stall_timeout, start_timeout, grace; /* seconds; 0: 10, 300, 30 */
    double audit;        /* share of the lanes that are computed twice, and compared */
    bool no_kill;        /* for debuggers: stalls are told, and nothing else is done */
    struct launch_timing *timing; /* nullable: it is measured, and prints nothing */
    const char *title;   /* what runs, in a few words; null: argv[0] */
    const char *program; /* null: argv[0], looked for in PATH */
    bool ends_with_run;  /* the program does nothing behind the run that it trains */
    char *const *argv;   /* the program and its arguments, ended by null */
};

/* Fills in what was left out: threads, seconds. `automatic`: workers, too. */
void launch_settle(struct launch *l);
struct crew_shape launch_shape(const struct launch *l); /* of a settled one */
/* Runs it to its end; the exit code. Failures have been told. */
int agent_run(const struct launch *l);

#endif
