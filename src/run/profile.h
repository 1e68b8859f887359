/* SPDX-License-Identifier: Apache-2.0
 * Profiles a step: the arithmetic, the bytes that its kernels touch, and the time that they take,
 * by operator or by unit. */
#ifndef RUN_PROFILE_H
#define RUN_PROFILE_H

#include "run/run.h"

/* flops: of operators whose row has tri_op.flops: products, convolutions, norms. bytes: of the
 * units' inputs and outputs. */
struct work {
    double flops;
    double narrow; /* those flops whose first input is bf16 or f16 */
    double bytes;
};

/* The work of one step, with all its lanes. */
struct work profile_step(struct machine *m);

struct profile_row {
    const char *what; /* operators, "conv2d" or "conv2d+relu"; for a unit also name and shapes */
    int64_t calls;
    double seconds;   /* of all calls, summed over the threads */
    struct work work; /* of all calls */
};

struct profile {
    struct profile_row *row; /* the longest time first */
    size_t n, capacity;
    struct arena arena;
};

/* Times every kernel from now on. Call it between two steps. */
tri_status profile_begin(struct machine *m);
/* Reports what has been measured since then. */
tri_status profile_make(struct machine *m, bool by_unit, struct profile *out);
/* Measures how many seconds reading the samples of a step takes; 0 if there is no data, or it
 * cannot be read again. */
tri_status profile_data(tri_run *run, double *seconds);
void profile_free(struct profile *p);

#endif
