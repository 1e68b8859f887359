/* SPDX-License-Identifier: Apache-2.0
 * The options of a run with several workers, which `train` and `run` share. */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include "cli/options.h"
#include "launch/agent.h"

/* Of struct launch. */
extern const struct option_row launch_rows[];

/* Refuses what has a meaning for several workers only, where their number is not given. --threads of the
 * options are the threads of each worker. */
tri_status cli_check_launch(struct launch *launch, const tri_options *o);
/* Runs argv[0 to argc - 1] as the workers' program; the exit code. */
int cli_launch(const struct launch *launch, int argc, char **argv);
/* Whether this process is one of the workers. */
bool cli_is_worker(void);

#endif
