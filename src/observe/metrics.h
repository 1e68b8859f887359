/* SPDX-License-Identifier: Apache-2.0
 * DIR/metrics.jsonl, the numbers of a run for programs: a JSON object a line,
 *
 *     {"step":120,"epoch":0,"samples":64,"loss":0.43,"top1":0.85,"lr":0.01,"seconds":2.31}
 *
 * for each step. Where steps are done faster than about 100 a second, or a line is wanted for every N
 * steps only, a line stands for several: it has "steps":N besides, the number of the last of them, the samples of all, and the means of
 * their values over these. Values that are no numbers (NaN, infinity) are null. Lines reach the file at
 * least once a second of stepping, and at the end.
 *
 * Where several workers share the steps, a line has besides what each has spent since the line before,
 * in seconds, the lanes it has done, and its memory in bytes:
 *
 *     "workers":[{"worker":0,"compute":0.9,"wait":0.1,"reduce":0.2,"data":0.0,"lanes":4,"peak":91234304},…]
 *
 * What an evaluation of another set of data has found is a line of its own, behind that of its step:
 *
 *     {"step":120,"epoch":0,"eval":{"loss":0.51,"top1":0.83},"seconds":2.52}
 *
 * There every line reaches the file at once. If who writes them dies, another goes on in the same file:
 * what is lost is at most the line that was being gathered, no line is torn, no step stands there
 * twice. */
#ifndef OBSERVE_METRICS_H
#define OBSERVE_METRICS_H

#include <stdio.h>

#include "observe/observe.h"

/* Asks what each worker has spent, at most `most` of them; how many. */
struct metrics_workers {
    int (*look)(void *user, struct observed_worker *out);
    void *user;
    int most;
    struct observed_worker *before, *now; /* the line before, by worker; scratch */
};

struct metrics {
    char *path;
    FILE *file;            /* null: off, or failed */
    struct averages since; /* the line before */
    struct observed last;  /* the latest step, but for its values */
    double written, flushed;
    int64_t every; /* steps of a line; 0: by time. Set after opening */
    int64_t through; /* the step of the last row, whoever wrote it */
    int64_t evaluated; /* that of the last row of an evaluation, or later */
    bool locked;
    struct metrics_workers workers;
    tri_status status; /* the first failure; message in `error` */
    char error[512];
};

/* Makes the directory where it is missing. The file of an earlier run becomes metrics.1.jsonl, or .2
 * and so on where that is taken, which is said on `tell` (null: not). directory null: off. The
 * n names are those of every step, and are kept as pointers. */
tri_status metrics_open(struct metrics *m, const char *directory, int n, const char *const *name,
                        FILE *tell);
/* Goes on in the file of the same run, whose writer has died. */
tri_status metrics_resume(struct metrics *m, const char *directory, int n, const char *const *name);
/* From here on lines have "workers", whose numbers are below w.most. */
tri_status metrics_watch(struct metrics *m, struct metrics_workers w);
/* A failure is kept and no more is written: the run itself goes on. */
void metrics_step(struct metrics *m, const struct observed *o);
/* The names and values are those of an evaluation behind the step. */
void metrics_evaluation(struct metrics *m, const struct observed *o);
/* Writes what is left of a run that ended early, frees; returns the first failure, with its
 * message. */
tri_status metrics_close(struct metrics *m);

#endif
