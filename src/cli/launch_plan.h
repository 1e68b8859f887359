/* SPDX-License-Identifier: Apache-2.0
 * What a command that starts workers learns from the prices of units. */
#ifndef CLI_LAUNCH_PLAN_H
#define CLI_LAUNCH_PLAN_H

#include "cli/cli.h"
#include "launch/launch.h"

#define LAUNCH_GRAIN_ALONE "--grain is for --parallel auto, which finds a plan"
/* With --parallel auto: finds the plan of the run, and sets what it says. */
tri_status launch_find_plan(struct launch *l, struct cli_arguments *a);
/* The same for a program of the user's own, whose workers take the plan. */
tri_status launch_find_of_program(struct launch *l);
/* Sets l->predicted, if all prices are known; nothing is measured. If a number that is given is
 * predicted to be slower than one worker, says so. */
void launch_predict(struct launch *l, const struct cli_arguments *a);

#endif
