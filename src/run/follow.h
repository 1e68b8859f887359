/* SPDX-License-Identifier: Apache-2.0
 * What the reporter does after each step: metrics, an evaluation, a checkpoint. */
#ifndef RUN_FOLLOW_H
#define RUN_FOLLOW_H

#include "run/run.h"

/* record: a function that writes the metrics of the step. */
void follow_step(tri_run *run, void (*record)(tri_run *run));

#endif
