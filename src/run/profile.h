/* SPDX-License-Identifier: Apache-2.0
 * How fast a run steps. The arithmetic of a step, the bytes that its kernels touch, and the time
 * that they take, by operator or by unit. */
#ifndef RUN_PROFILE_H
#define RUN_PROFILE_H

#include "run/run.h"

struct pace {
    double *second; /* of each step; freed by the caller */
    size_t n, capacity;
    double total;
    double step[2]; /* the first two steps, which do not count otherwise */
    double start;   /* from the start of the process to the end of the first step */
};

#define PACE_WARM_STEPS 3
/* The first steps touch memory for the first time and do not count. After them it makes so many
 * steps, or, if they are 0, as many as take so many seconds, at least 10. profile: times their
 * kernels. A failure is that of the run. */
void pace_measure(tri_run *run, size_t steps, double seconds, bool profile, struct pace *p);
/* Sorts the values; q: 0.5 for the median. */
double pace_quantile(double *value, size_t n, double q);

/* flops: of operators whose row has tri_op.flops: products, convolutions, norms. bytes: of the
 * units' inputs and outputs. */
struct work {
    double flops;
    double narrow; /* those flops whose first input is bf16 or f16 */
    double bytes;
};

/* The work of one step, with all its lanes. */
struct work profile_step(struct machine *m);

/* How long the arithmetic would take at the highest rate of its types. */
tri_status profile_ideal(const tri_run *run, const struct work *w, double *seconds);

struct work profile_work(const struct program *p, size_t item); /* of one call */

/* From the next step on, the kernels of a run of one process are timed. */
tri_status profile_begin(tri_run *run);
/* Adds up what has been recorded. Call it after each step. */
void profile_add(tri_run *run);
/* Of an item (run/items.h): the seconds of all threads, and how many calls. */
double profile_seconds(const tri_run *run, int item);
int64_t profile_calls(const tri_run *run, int item);
int64_t profile_lost(const tri_run *run); /* calls that no thread could record */
void profile_end(tri_run *run);
/* What has been measured since then, in steps at this pace, as a table: of all operators, or of the
 * units that took longest. */
tri_status profile_describe(tri_run *run, bool by_unit, const struct pace *pace, struct text *out);

#endif
