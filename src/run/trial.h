/* SPDX-License-Identifier: Apache-2.0
 * Plans a run as it would be with other options, to learn how much memory that needs. */
#ifndef RUN_TRIAL_H
#define RUN_TRIAL_H

#include "crew/head.h"
#include "run/run.h"

struct trial {
    tri_options options;
    int64_t batch;
    struct crew_size size; /* workers 0: a run of one process */
};

/* The run itself. */
struct trial trial_of(const tri_run *own);
/* *bytes: what the run needs, with its programs, whatever the limit. Trials have the run's data;
 * the first opens them for all. */
tri_status trial_bytes(tri_run *own, const struct trial *t, size_t *bytes);

#endif
