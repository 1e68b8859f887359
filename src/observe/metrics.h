/* SPDX-License-Identifier: Apache-2.0
 * DIR/metrics.jsonl, the results of a run for programs: a JSON object per line and step,
 *
 *     {"step":120,"epoch":0,"samples":64,"loss":0.43,"top1":0.85,"lr":0.01,"seconds":2.31}
 *
 * If more than about 100 steps are done in a second, or a line is wanted every N steps only, a line
 * describes several: it also has "steps":N, "step" is the last of them, "samples" counts those of
 * all, and values are means over these. NaN and infinity become null. Lines reach the file at least
 * once a second while steps are done, and at the end.
 *
 * Of a run over several hosts, a line also says what the host that writes it has sent to others and
 * received in these steps, in bytes on the wire; what that sent was in memory; and the seconds in
 * which its threads waited for others, the mean over threads:
 *
 *     "sent":46806016,"received":46806016,"sent_whole":93612032,"exposed":0.021
 *
 * The results of an evaluation are a line of their own after that of its step:
 *
 *     {"step":120,"epoch":0,"eval":{"loss":0.51,"top1":0.83},"seconds":2.52}
 *
 * Then every line reaches the file immediately. If the worker that writes the file dies, another
 * one continues it. At most the line being collected is lost; no line is incomplete, and no step
 * occurs twice. */
#ifndef OBSERVE_METRICS_H
#define OBSERVE_METRICS_H

#include <stdio.h>

#include "observe/observe.h"

struct metrics {
    char *path;
    FILE *file;            /* null: off, or failed */
    struct averages since; /* since the preceding line */
    struct observed last;  /* the latest step, without its values */
    struct observed_hosts before; /* those of hosts, at the line before; set after opening */
    double written, flushed;
    int64_t every;     /* steps per line, set after opening; 0: by time */
    bool at_once;      /* lines reach the file immediately, as its writer may die; set the same */
    int64_t through;   /* the step of the last line, whichever process wrote it */
    int64_t evaluated; /* the step of the last line of an evaluation, or later */
    bool locked;
    tri_status status; /* the first failure; message in `error` */
    char error[512];
};

/* Makes the directory if it is missing. What the file has is overwritten (see observe/earlier.h).
 * If directory is null, nothing is written. The n names are those of every step; they are not
 * copied. */
tri_status metrics_open(struct metrics *m, const char *directory, int n, const char *const *name);
/* Continues the file of the same run after its writer has died. */
tri_status metrics_resume(struct metrics *m, const char *directory, int n, const char *const *name);
/* Lets another process have the file's lock, until the next line. */
void metrics_yield(struct metrics *m);
/* After a failure, which metrics_close returns, nothing more is written; the run continues. */
void metrics_step(struct metrics *m, const struct observed *o);
/* The names and values are those of an evaluation after this step. */
void metrics_evaluation(struct metrics *m, const struct observed *o);
/* Writes the steps collected since the last line, and frees. Returns the first failure. */
tri_status metrics_close(struct metrics *m);

#endif
