/* SPDX-License-Identifier: Apache-2.0
 * What the user asks of a run with workers, on one host or several. */
#ifndef LAUNCH_LAUNCH_H
#define LAUNCH_LAUNCH_H

#include <signal.h>

#include "crew/head.h"
#include "crew/host_messages.h"

/* launch.program for this very program, even if its file has been replaced: a forked child still
 * runs the old one. */
#define LAUNCH_SELF "/proc/self/exe"

/* A measurement of speed. The run is stopped when it is done. */
struct launch_timing {
    double seconds;    /* least duration, with at least 3 steps; */
    int64_t steps;     /* or, if not 0, the number of steps */
    double until_loss; /* also measure the time until this loss; 0: do not */
    bool again;        /* the run's notes have been printed */
    double rate;       /* result: steps per second; 0: unknown */
    bool known;        /* it was measured for as long as was asked */
    int stages;     /* of a pipeline; 0: none */
    double waiting; /* with stages: the part of the time in which workers wait for each other */
    double loss_seconds; /* until_loss was reached, after loss_steps; 0: it was not */
    int64_t loss_steps;
};

struct membership; /* launch/membership.h */
struct given;      /* launch/given.h */

#define LAUNCH_PREDICTED 129
enum launch_grain { GRAIN_KEEP, GRAIN_ANY };
struct launch {
    const char *hosts;    /* of a run over several: see host_list.h; null: this one */
    const struct given *given; /* by what has started a process on each host, instead; or null */
    const char *launcher; /* a command that starts another on a host; null: ssh */
    const char *key;      /* file with the run's key; null: one is made */
    const char *interface, *ports, *chdir; /* see the options' rows; nullable */
    const char *env[32];  /* names of variables that remote hosts get */
    int n_env;
    double lease;         /* seconds; 0: 3 */
    int link;             /* the row of the link: LINK_TCP, ... */
    bool no_overlap, wire_open;
    int path;             /* enum path, and 1 more; 0: the fastest, by */
    double path_latency, path_bandwidth, path_cpu; /* struct path_link; 0: it is not known */
    struct membership *membership; /* of an agent that takes part in a run over hosts; else null */
    int workers;          /* at least one */
    bool automatic;       /* -n auto: `workers` is the most; the first steps show how many pay */
    double predicted[LAUNCH_PREDICTED]; /* seconds of a step by number of workers; 0: not
                                         * known; [1] 0: none is */
    int grain;            /* 1 + enum launch_grain, which --parallel auto searches; 0: not given */
    int most;             /* that the run can be scaled to; 0: `workers` */
    int spares, threads;  /* threads of each worker; 0: cores divided by workers */
    const char *out;      /* the run's directory, or null; of several hosts, */
    const char *directory; /* that of all, of which `out` is hosts/NAME; else null */
    const char *on_event; /* a command (src/observe/events.h), or null */
    double stall_timeout, start_timeout, grace; /* seconds; 0: 10, 300, 30 */
    double audit;                 /* share of the lanes that are computed twice and compared */
    bool no_kill;                 /* stalls are reported, and no worker is killed */
    struct launch_timing *timing; /* null, or what to measure; the run then prints nothing */
    const char *title;            /* what runs, in a few words; null: argv[0] */
    const char *program;          /* null: argv[0], searched in PATH */
    bool ends_with_run;           /* the program does nothing after the run that it trains */
    char *const *argv;            /* the program and its arguments; a null ends them */
};

/* Sets the fields that are 0 to their defaults; if `automatic`, also workers. */
void launch_settle(struct launch *l);
/* Blocks the signals that end a run, and SIGCHLD; those that are ignored, as under nohup, stay so.
 * Returns a descriptor that they are read from; -1: see errno. */
int launch_block_signals(sigset_t *old);
/* In a child that works for this process, to which these signals are left: a process group of its
 * own keeps those of the terminal away, and those that Slurm sends to all processes are ignored. */
void launch_leave_signals(const sigset_t *old);
struct crew_size launch_size(const struct launch *l); /* after launch_settle */
/* Whether sums of several hosts may take another path than the exchange. */
bool launch_has_paths(const struct launch *l);
/* Fails if so many hosts cannot take the path that is asked for. */
tri_status launch_check_path(const struct launch *l, int hosts);
/* The numbers of a launch, by name, as agents get them from the coordinator. */
#define LAUNCH_NUMBERS 24
#define LAUNCH_LEASE 3.0 /* seconds, of --lease */

/* All but "workers", which each host has its own of. Returns how many. */
int launch_numbers_put(const struct launch *l, struct host_number *to);
/* Fails if a name is unknown, or a number is none that the option can have. */
tri_status launch_numbers_take(const struct host_number *from, int n, struct launch *l);
/* "A-B" or "A"; null: any, 0. */
tri_status launch_ports(const char *text, int port[2]);

#endif
