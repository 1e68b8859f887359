/* SPDX-License-Identifier: Apache-2.0
 * What the units of a run take, measured while steps of it run in one process, and what a step
 * takes by these prices, of one process or of several workers. */
#ifndef RUN_PRICE_H
#define RUN_PRICE_H

#include "price/step.h"
#include "run/kinds.h"
#include "run/run.h"

struct run_price {
    int units, known; /* different ones of a step; of these, those that have a price */
    int lacks; /* if one has none: the threads that compute at the same time, for which it lacks */
    struct step_price step;
    double overhead; /* seconds of the step that pass between units */
    double moves; /* of the lanes' units, the part of their time that moves between seats take */
};

/* Whether it is a run whose steps have a price. */
tri_status price_check(const tri_run *run);
/* Adds the prices of all units of an open run of one process, from as many steps as take so many
 * seconds, but some at least, after some that do not count. *seconds: the median of others, whose
 * units are not timed. */
tri_status price_measure(tri_run *run, double least, struct prices *p, double *seconds);
/* The same of a run that may only be planned, as one of several workers: opens another of one
 * process, with as many threads as all workers have, on random samples. A few units run in several
 * workers alone, and stay unknown. *seconds: of a step, if it is one of that run; else 0. */
tri_status price_learn(const tri_run *run, double least, struct prices *p, double *seconds);
/* With the executable that the run begins with. If some units are not known, `step` is not set; but
 * with kinds (nullable), these get a price by their operations and bytes, as units of the same
 * operators take that are known, of this run and of those that were priced before. */
tri_status price_run(const tri_run *run, const struct prices *p, struct price_kinds *kinds,
                     struct run_price *out);
/* The name of something else that is kept with the prices, of this network, whatever its batch and
 * lanes; null: out of memory. */
const char *price_network(struct arena *a, const tri_run *run, const char *what);
#define PRICE_ERROR "measured over predicted" /* of the latest run with a plan that was found */

#endif
