/* SPDX-License-Identifier: Apache-2.0
 * What `trireme report` knows of a run: read once from run.json, workers.series, metrics.jsonl and
 * logs, of all hosts. Whatever is missing is 0, "" or NaN; so it is for runs of earlier versions,
 * that go on, or were killed. */
#ifndef PROFILE_FIGURES_H
#define PROFILE_FIGURES_H

#include "crew/spend.h"
#include "observe/run_file.h"
#include "profile/read.h"

struct figures_worker {
    const char *host; /* "" if there is only one */
    int place;
    /* Shares of its time, that before the first step apart: of the recent part, and all. */
    double spent[SPENTS], whole[SPENTS];
    double no_core; /* share of the recent part */
    double lane;    /* seconds of one thread that a lane takes, recently; 0: it did none */
    double lanes, lost; /* of the run */
    double memory;  /* bytes, at most */
    double sent;    /* bytes to other hosts in a step, recently */
    int64_t slow_since; /* the step since which its lanes take longer; 0: they don't */
};

struct figures_host {
    const char *name;
    double throttled_periods; /* share of periods in which it was, recently */
    double throttled, stolen; /* shares of all cores' time, recently */
    double cores;
};

struct figures {
    const char *directory;
    const struct profile *profile; /* null: none */
    struct run_read run;           /* empty without run.json */
    bool has_run, has_series, has_metrics, running;
    struct figures_worker *worker;
    size_t n;                 /* workers */
    struct figures_host *host;
    size_t n_hosts;           /* at least 1 */
    double threads;           /* of a worker, at least 1 */
    double spent[SPENTS], whole[SPENTS], no_core; /* means of workers */
    int64_t first, last;      /* steps of the recent part */
    double step;              /* seconds, median of the recent part; 0: not known */
    double best;              /* of the run's best tenth */
    int64_t slower_since;     /* the step since which steps take longer than the best tenth */
    int64_t steps;            /* done by the run */
    double wall;              /* seconds of all entries */
    struct arena arena;
};

/* The value of an option of the run, as "--lanes"; null: not given. */
const char *figures_option(const struct figures *f, const char *name);

#endif
