/* SPDX-License-Identifier: Apache-2.0
 * A loss that is NaN or infinite: noticed before any parameter follows it, and traced to the
 * operator where it begins. */
#ifndef MACHINE_FINITE_H
#define MACHINE_FINITE_H

#include "machine/program.h"
#include "machine/store.h"

#define FINITE_MOST 16
#define FINITE_SKIPS 100 /* updates that a loss scale may skip in succession */

/* What a machine looks at. */
struct finite {
    const tri_tensor *loss; /* in the step's graph; null: nothing is looked at */
    /* What the lanes give of it. If any is not finite, neither is the loss. */
    struct {
        int of; /* the tensor's number in the whole graph */
        tri_type type;
    } part[FINITE_MOST];
    int n;
    int condition; /* of updates that a loss scale may skip, in the step's graph; -1: none */
    /* The loss is more than their sum, which is finite where they are: the step looks at it before it
     * writes to the store. */
    bool gated;
};

struct machine;

/* tri_options.on_nan: null, "stop" or "warn". */
tri_status finite_check_option(const char *on_nan);
bool finite_stops(const tri_options *o);
/* Once the machine is compiled, before its programs are made. */
void finite_find(struct machine *m);
/* Whether the loss of a lane, or of the step, is finite; both after it has been computed. */
bool finite_lane(const struct machine *m, const struct program *p);
bool finite_step(const void *machine);
/* Runs what leads to the loss once more, on one thread, and says in the step's fault where the first
 * NaN comes from, or else the first infinity. lane: -1, of the step's program. */
void finite_explain(const struct machine *m, struct program *p, int thread, int64_t lane,
                    const struct program_step *step);

/* After a step: how many updates have been skipped in succession, if it were `before` the step. */
int finite_skips_in_row(const struct machine *m, int before);
/* "nan", "infinite" or "too large". */
const char *finite_name(double loss);
/* The first of n elements in host memory that is not finite, -1: none; *nan: it is a NaN. */
int64_t finite_first(tri_type type, const void *host, int64_t n, bool *nan);

#endif
