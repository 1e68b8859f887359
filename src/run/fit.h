/* SPDX-License-Identifier: Apache-2.0
 * What --recompute full and fit stand for, and where the stages of --stages begin. */
#ifndef RUN_FIT_H
#define RUN_FIT_H

#include "price/prices.h"
#include "run/trial.h"

/* Replaces options.recompute by patterns, which run->fit owns. `fit` tries plans of the run. */
tri_status fit_settle(tri_run *run);

/* Where stages of the run with these options, which are two or more, begin; null: times are not
 * known. The text is one of the arena. */
tri_status fit_cuts(tri_run *own, const struct trial *t, const struct prices *p,
                    struct arena *arena, const char **cuts);
/* Sets --cuts of a run that has stages and may choose them, if times are known by the machine file.
 * One worker chooses for all. */
tri_status fit_settle_cuts(tri_run *run);

#endif
