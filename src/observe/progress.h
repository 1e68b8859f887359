/* SPDX-License-Identifier: Apache-2.0
 * The progress of a run for people: on a terminal one line that is rewritten in place, elsewhere
 * plain lines whose distance grows with the run, from one second to a minute. */
#ifndef OBSERVE_PROGRESS_H
#define OBSERVE_PROGRESS_H

#include <stdio.h>

#include "observe/observe.h"

/* What the first line says. */
struct progress_head {
    const char *model, *device, *data;
    int64_t parameters, lanes, batch;
    int threads;
};

#define PROGRESS_MARKS 16

struct progress {
    FILE *to;
    bool terminal;
    int width; /* columns of the terminal */
    int64_t samples;       /* of the steps that it was told of */
    struct averages since; /* the line before */
    struct observed last;  /* the latest step, but for its values */
    double printed;        /* when the line before was, */
    int64_t shown;         /* and its step */
    bool line_open;        /* the terminal's cursor stands behind a progress line */
    /* Times, steps and samples of the latest marks, at least a second apart: the rate is that between the
     * oldest of them and now. Time is that of steps: without what went aside. */
    struct progress_mark {
        double time;
        int64_t step, samples;
    } mark[PROGRESS_MARKS];
    int marks;
};

/* n: how many values a step leaves. */
/* done: steps that others had done before this process did its first. */
tri_status progress_open(struct progress *p, FILE *to, bool terminal, int n, int64_t done);
/* Another has shown the steps up to `shown`; *o is now. */
void progress_resume(struct progress *p, const struct observed *o, int64_t shown);
void progress_begin(struct progress *p, const struct progress_head *head);
void progress_step(struct progress *p, const struct observed *o);
/* A line of its own between those of steps, without a line's end. */
void progress_note(struct progress *p, const char *line);
/* Tells the last step of a run that ended early, ends a line that is open, frees. */
void progress_close(struct progress *p);

/* "0:07", "12:34", "3:02:01", "2d 03:04:05". */
#define DURATION_TEXT 32
char *progress_duration(double seconds, char text[DURATION_TEXT]);

#endif
