/* SPDX-License-Identifier: Apache-2.0
 * Detects a loss that is NaN or infinite before any parameter is updated, and traces it to the
 * operator that produced it. */
#ifndef MACHINE_FINITE_H
#define MACHINE_FINITE_H

#include "machine/program.h"
#include "machine/store.h"

#define FINITE_MOST 16
#define FINITE_SKIPS 100 /* consecutive updates that a loss scale may skip */

/* What an executable checks. */
struct finite {
    bool stops; /* tri_options.on_nan: such a loss ends the run */
    const tri_tensor *loss; /* in the step's graph; null: nothing is checked */
    /* The lanes' results that the loss is computed from. If one is not finite, neither is the
     * loss. */
    struct {
        int of; /* the tensor's number in the whole graph */
        tri_type type;
    } part[FINITE_MOST];
    int n;
    int condition; /* of updates that a loss scale may skip, in the step's graph; -1: none */
    /* Finite parts do not ensure a finite loss, so the step checks the loss itself before it writes
     * to the store. */
    bool gated;
};

struct machine;

/* Called between the compilation of m and the making of its programs. */
void finite_find(struct machine *m);
/* The items of the lane's program up to the last that makes a part of the loss. 0: nothing is
 * checked. */
size_t finite_items(const struct machine *m, const struct program *lane);
/* Whether the loss of a lane (of the step) is finite, after it has been computed. */
bool finite_lane(const struct machine *m, const struct program *p);
bool finite_step(const struct machine *m);
/* The same, as a stop of the step's program. */
bool finite_at_gate(void *machine, int stop);
/* Runs the units that lead to the loss again, on one thread. The step's fault then says where the
 * first NaN comes from, or else the first infinity. lane: -1 for the step's program. */
void finite_explain(const struct machine *m, struct program *p, int thread, int64_t lane,
                    const struct program_step *step);

/* After a step: the number of consecutive steps whose update was skipped. before: the same number
 * before the step. */
int finite_skips(const struct machine *m, int before);
/* "nan", "infinite" or "too large". */
const char *finite_name(double loss);
/* The index of the first of n elements in host memory that is not finite; -1: none. *nan: whether
 * it is a NaN. */
int64_t finite_first(tri_type type, const void *host, int64_t n, bool *nan);

#endif
