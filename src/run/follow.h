/* SPDX-License-Identifier: Apache-2.0
 * What follows a step that this process reports: metrics, an evaluation, a checkpoint. */
#ifndef RUN_FOLLOW_H
#define RUN_FOLLOW_H

#include "run/run.h"

/* record: writes the metrics of the step. */
void follow_step(tri_run *run, void (*record)(tri_run *run));

#endif
