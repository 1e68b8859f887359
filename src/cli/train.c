/* SPDX-License-Identifier: Apache-2.0
 * trireme train: the usual loop, in this process or in several workers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/launch.h"
#include "loop/train_loop.h"

/* This very program with the same words; also after its file has been replaced by a newer one. */
static int launch(const struct launch_options *o, int argc, char **argv, const char *out,
                  const char *title) {
    char self[64];
    char **words = calloc((size_t)argc + 2, sizeof *words);
    if (!words) {
        base_no_memory("a command line");
        return cli_fail();
    }
    snprintf(self, sizeof self, "/proc/%d/exe", (int)getpid());
    words[0] = program_invocation_name;
    memcpy(words + 1, argv, (size_t)argc * sizeof *words);
    struct launch_options settled = *o;
    settled.launch.out = out;
    settled.launch.program = self;
    settled.launch.title = title;
    int code = cli_launch(&settled, argc + 1, words);
    free(words);
    return code;
}

static int train(struct cli_arguments *a) {
    tri_graph *g = cli_graph(a);
    if (!g) return cli_fail();
    if (cli_own_data(a)) {
        tri_graph_free(g);
        return cli_fail();
    }
    return (int)train_loop(g, &a->options, NULL, a->model);
}

static int run(const struct command *c, int argc, char **argv) {
    struct cli_arguments a;
    struct launch_options own = {0};
    int words = argc;
    char **all = calloc((size_t)argc + 1, sizeof *all);
    if (!all) {
        base_no_memory("a command line");
        return cli_fail();
    }
    memcpy(all, argv, (size_t)argc * sizeof *all); /* reading takes options out */
    int code = cli_read(c, argc, argv, &own, &a) ? cli_fail() : 0;
    if (!a.options.out) a.options.out = "run";
    if (!code)
        code = own.launch.workers && !cli_is_worker() ? launch(&own, words, all, a.options.out, a.model)
                                                      : train(&a);
    free(all);
    return code;
}

const struct command command_train = {
    .name = "train",
    .arguments = "MODEL [options]",
    .help = "trains a network; the last line on stdout is its result",
    .takes_model = true,
    .use = USE_TRAIN,
    .rows = launch_rows,
    .more = cli_describe_model,
    .run = run,
};
