/* SPDX-License-Identifier: Apache-2.0
 * What the units of a run of one process take, measured while its steps run, and what a step takes
 * by these prices. */
#ifndef RUN_PRICE_H
#define RUN_PRICE_H

#include "price/prices.h"
#include "price/step.h"
#include "run/run.h"

struct run_price {
    int units, known; /* different ones of a step; of these, those that have a price */
    struct step_price step;
};

/* Whether it is a run whose steps have a price. */
tri_status price_check(const tri_run *run);
/* Adds the prices of all units of the run, from as many steps as take so many seconds, but 5 to
 * 200, after some that do not count. *seconds: the median of these steps, whose kernels are
 * timed. */
tri_status price_measure(tri_run *run, double least, struct prices *p, double *seconds);
/* With the executable that the run begins with. If some are not known, `step` is not set. */
tri_status price_run(const tri_run *run, const struct prices *p, struct run_price *out);

#endif
