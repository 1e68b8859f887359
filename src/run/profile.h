/* SPDX-License-Identifier: Apache-2.0
 * What a step consists of: its arithmetic, the bytes that its kernels touch, and, where that was
 * asked for, the time that they take; by operator or by unit. */
#ifndef RUN_PROFILE_H
#define RUN_PROFILE_H

#include "run/run.h"

/* flops are those of rows that state them (tri_op.flops): products, convolutions, norms; bytes are
 * of the units' inputs and outputs. */
struct work {
    double flops;
    double narrow; /* those of flops whose first input is bf16 or f16 */
    double bytes;
};

/* Of one step, all lanes included. */
struct work profile_step(struct machine *m);

struct profile_row {
    const char *what; /* operators, "conv2d" or "conv2d+relu"; of a unit also name and shapes */
    int64_t calls;
    double seconds; /* of all calls; of several threads the sum */
    struct work work; /* of all calls */
};

struct profile {
    struct profile_row *row; /* the longest time first */
    size_t n, capacity;
    struct arena arena;
};

/* From here on every kernel is timed: between two steps. */
tri_status profile_begin(struct machine *m);
/* What was measured since. */
tri_status profile_make(struct machine *m, bool by_unit, struct profile *out);
/* Seconds that the data of a step takes, measured now; 0 if there is none, or none that could be read
 * again. */
tri_status profile_data(tri_run *run, double *seconds);
void profile_free(struct profile *p);

#endif
