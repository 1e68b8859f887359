/* SPDX-License-Identifier: Apache-2.0
 * Starting several workers, for `train` and `run`. */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include "cli/options.h"
#include "launch/agent.h"

/* With -n, --threads sets the threads of each worker. Without -n, refuses the options that only
 * several workers use. */
tri_status cli_check_launch(struct launch *launch, const tri_options *o);
/* The size of a settled launch, with the hosts that it names. link: between these, as it has been
 * measured; nullable. */
struct path_link;
tri_status cli_size(const struct launch *l, struct crew_size *size, struct path_link *link);
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
