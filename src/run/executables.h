/* SPDX-License-Identifier: Apache-2.0
 * A run whose steps are not all alike: the last of an epoch may have fewer samples (--tail keep), and networks for
 * shorter samples may stand beside the usual one (tri_shorter). Each shape is a machine of its own, over one store,
 * and all share what one step needs at a time, but for the rooms of samples. Which step has which shape follows from
 * the data alone. */
#ifndef RUN_EXECUTABLES_H
#define RUN_EXECUTABLES_H

#include "data/lengths.h"
#include "run/run.h"

/* Before the usual step is planned: keeps the network as it was written. */
tri_status executables_keep(tri_run *run);
/* The lengths that the networks are for, as lengths_make takes them. */
void executables_limits(const tri_run *run, int64_t limit[LENGTHS_MOST], int *n);
/* Plans the machines of all shapes but the first, which is planned; once the run has its data, and that is matched. */
tri_status executables_plan(tri_run *run);
/* Gives them their memory, once the first has its own. */
tri_status executables_settle(tri_run *run);
/* The machine of a step, counted from 1. */
struct machine *executables_at(const tri_run *run, int64_t step);

#endif
