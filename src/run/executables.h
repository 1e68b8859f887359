/* SPDX-License-Identifier: Apache-2.0
 * The executables of a run, one for each shape of a step. The last step of an epoch may have fewer
 * samples (--tail keep), and there may be networks for shorter samples (tri_shorter). All
 * executables use one store, and share the memory that one step needs at a time; each has its own
 * batch buffers. The shape of a step depends on the data alone. */
#ifndef RUN_EXECUTABLES_H
#define RUN_EXECUTABLES_H

#include "data/lengths.h"
#include "run/run.h"

/* The lengths of samples that the networks are for, as lengths_make takes them. */
void executables_limits(const tri_run *run, int64_t limit[LENGTHS_MOST], int *n);
/* Plans all executables but the first, after the data has been opened and matched. */
tri_status executables_plan(tri_run *run);
/* Gives them their memory, after the first has got its own. */
tri_status executables_settle(tri_run *run);
/* The executable of a step, counted from 1. */
struct machine *executables_at(const tri_run *run, int64_t step);

#endif
