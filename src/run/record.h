/* SPDX-License-Identifier: Apache-2.0
 * What a run leaves of each step for those who watch: the loss and the metrics as numbers, and
 * their file. */
#ifndef RUN_RECORD_H
#define RUN_RECORD_H

#include "observe/metrics.h"


struct record {
    int *output; /* the loss first, then the metrics */
    const char **name; /* theirs */
    double *value;
    struct observed seen; /* the latest step */
    struct metrics metrics;
    int64_t every; /* see struct metrics */
    double begin;
    double aside; /* seconds since then that went to evaluations, by this process's count */
};

tri_status record_open(struct record *r, const tri_run *run);
/* directory null: no file. goes_on: another has begun it in this run. */
tri_status record_file(struct record *r, const char *directory, bool goes_on, bool quiet);
void record_step(struct record *r, const tri_run *run);
/* What an evaluation behind that step has found. */
void record_evaluation(struct record *r, int64_t step, int64_t epoch, int n, const char *const *name,
                       const double *value);
/* The latest step, with the time of the call: whoever wants to know that asks the clock. */
const struct observed *record_seen(struct record *r);
/* The first failure of the file, with its message. */
tri_status record_close(struct record *r);

#endif
