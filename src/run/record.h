/* SPDX-License-Identifier: Apache-2.0
 * The record of a run's steps: the loss and the metrics as numbers, and metrics.jsonl. */
#ifndef RUN_RECORD_H
#define RUN_RECORD_H

#include "observe/log.h"
#include "observe/metrics.h"

/* Of a run of one process, see own_files.h. */
struct own_files {
    struct log log;
    struct run_file *run; /* null: there are none */
    int64_t first;        /* step */
};

#define PREDICTED_STEPS 10
struct record {
    int *output;       /* indices of outputs: the loss first, then the metrics */
    const char **name; /* their names */
    double *value;
    struct observed seen; /* the latest step */
    struct metrics metrics;
    struct observed_hosts hosts; /* at the latest step, if seen.hosts says so */
    struct own_files own;
    int64_t every; /* see struct metrics */
    double begin;
    double aside; /* seconds since then that this process spent on evaluations */
    /* The first steps whose time is known: see predicted_step. */
    int counted;
    double since, took[PREDICTED_STEPS];
};

tri_status record_open(struct record *r, const tri_run *run);
/* directory: null for no file. goes_on: what it has is of the same run. done: the steps before are
 * not recorded. */
tri_status record_file(struct record *r, const char *directory, bool goes_on, int64_t done);
void record_step(struct record *r, const tri_run *run);
/* Records the results of an evaluation after that step. */
void record_evaluation(struct record *r, int64_t step, int64_t epoch, int n,
                       const char *const *name, const double *value);
/* The latest step, with the time of the call. */
const struct observed *record_seen(struct record *r);
/* Returns the first failure of the file, with its message. */
tri_status record_close(struct record *r);

#endif
