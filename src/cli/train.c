/* SPDX-License-Identifier: Apache-2.0
 * trireme train: the usual loop. */
#include "cli/cli.h"
#include "loop/train_loop.h"

static int run(const struct command *c, int argc, char **argv) {
    struct cli_arguments a;
    if (cli_read(c, argc, argv, NULL, &a)) return cli_fail();
    tri_graph *g = cli_graph(&a);
    if (!g) return cli_fail();
    if (cli_own_data(&a)) {
        tri_graph_free(g);
        return cli_fail();
    }
    if (!a.options.out) a.options.out = "run";
    return (int)train_loop(g, &a.options, NULL, a.model);
}

const struct command command_train = {
    .name = "train",
    .arguments = "MODEL [options]",
    .help = "trains a network; the last line on stdout is its result",
    .takes_model = true,
    .use = USE_TRAIN,
    .more = cli_describe_model,
    .run = run,
};
