/* SPDX-License-Identifier: Apache-2.0
 * The options of a run with several workers, which `train` and `run` share. */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include "cli/options.h"
#include "launch/agent.h"

struct launch_options {
    struct launch launch;
    bool automatic; /* -n auto */
};

extern const struct option_row launch_rows[];

/* Runs argv[0 to argc - 1] as the workers' program; the exit code. */
int cli_launch(const struct launch_options *o, int argc, char **argv);
/* Whether this process is one of the workers. */
bool cli_is_worker(void);

#endif
