/* SPDX-License-Identifier: Apache-2.0
 * What --recompute full and fit stand for. */
#ifndef RUN_FIT_H
#define RUN_FIT_H

#include "run/run.h"

/* Replaces options.recompute by patterns, which run->fit owns. `fit` tries plans of the run. */
tri_status fit_settle(tri_run *run);

#endif
