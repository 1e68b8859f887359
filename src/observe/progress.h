/* SPDX-License-Identifier: Apache-2.0
 * The progress of a run for people: on a terminal, one line that is rewritten in place; elsewhere,
 * plain lines at intervals that grow with the run, from a second to a minute. */
#ifndef OBSERVE_PROGRESS_H
#define OBSERVE_PROGRESS_H

#include <stdio.h>

#include "observe/observe.h"

/* The contents of the first line. */
struct progress_head {
    const char *model, *device, *data;
    int64_t parameters, lanes, batch;
    int64_t seats; /* of the mesh; 1: none */
    int stages;    /* 0: none */
    int workers, threads; /* threads: of each worker */
};

#define PROGRESS_MARKS 16

struct progress {
    FILE *to;
    bool terminal;
    int width; /* columns of the terminal */
    int64_t samples;       /* of the steps seen */
    struct averages since; /* since the preceding line */
    struct observed last;  /* the latest step, without its values */
    double printed;        /* time of the preceding line, */
    int64_t shown;         /* and its step */
    bool line_open;        /* the terminal's cursor is after a progress line */
    /* Times, steps and samples at the latest marks, at least a second apart. The rate is that from
     * the oldest mark to now. Times exclude evaluations. */
    struct progress_mark {
        double time;
        int64_t step, samples;
    } mark[PROGRESS_MARKS];
    int marks;
};

/* n: number of values per step. done: steps that other processes did before this one's first. */
tri_status progress_open(struct progress *p, FILE *to, bool terminal, int n, int64_t done);
/* Another process has printed the steps up to `shown`; *o is the current one. */
void progress_resume(struct progress *p, const struct observed *o, int64_t shown);
void progress_begin(struct progress *p, const struct progress_head *head);
void progress_step(struct progress *p, const struct observed *o);
/* Prints a line, given without a newline, between those of steps. */
void progress_note(struct progress *p, const char *line);
/* Prints the last step if it has not been, ends an open line, frees. */
void progress_close(struct progress *p);

/* "0:07", "12:34", "3:02:01", "2d 03:04:05". */
#define DURATION_TEXT 32
char *progress_duration(double seconds, char text[DURATION_TEXT]);

#endif
