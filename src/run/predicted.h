/* SPDX-License-Identifier: Apache-2.0
 * What came of the time that a plan predicts. */
#ifndef RUN_PREDICTED_H
#define RUN_PREDICTED_H

#include "run/run.h"

/* After a step of the process that reports: tells once how long steps take beside what the plan
 * says, and keeps it with the prices. */
void predicted_step(tri_run *run);

#endif
