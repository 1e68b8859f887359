/* SPDX-License-Identifier: Apache-2.0
 * Starting several workers, for `train` and `run`. */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include "cli/options.h"
#include "launch/agent.h"
#include "plan/path_choice.h"

/* With -n, --threads sets the threads of each worker. Without -n, refuses the options that only
 * several workers use. */
tri_status cli_check_launch(struct launch *launch, const tri_options *o);
/* The size of a launch that is not settled, as the host has it that has most workers. searched:
 * what is not given stays 0. link: the slowest that has been measured of these hosts; nullable. */
tri_status cli_size(const struct launch *l, bool searched, struct crew_size *size,
                    struct path_link *link);
/* Whether this process is one of the workers. */
bool cli_is_worker(void);

/* The setter of --path. */
const char *launch_path(void *at, const char *value);

/* The options of `run`. */
struct launch_words {
    struct launch launch;
    const char *out;
    bool automatic; /* --parallel auto */
};
extern const struct option_row launch_words_rows[]; /* those of `run` alone */
/* Takes them from the command line. */
tri_status launch_take(int *argc, char **argv, struct launch_words *own);

#endif
