/* SPDX-License-Identifier: Apache-2.0
 * trireme run: a program of the user's own as several workers. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/launch.h"
#include "cli/launch_plan.h"
#include "cli/launched.h"

static int run(const struct command *c, int argc, char **argv) {
    struct launch_words own;
    struct given g = {.by = NULL};
    bool cut = false; /* a "--" separates the program's own words */
    for (int i = 1; i < argc; i++) cut |= !strcmp(argv[i], "--");
    if (launch_take(&argc, argv, &own)) {
        int code = cli_fail();
        if (!cut)
            fprintf(stderr, "trireme: options of the program itself go after --: "
                    "trireme run -n 2 -- ./prog --steps 10\n");
        return code;
    }
    if (argc < 2) {
        base_fail(TRI_USAGE, "run lacks its PROGRAM: trireme %s %s", c->name, c->arguments);
        return cli_fail();
    }
    own.launch.argv = argv + 1;
    if (given_read(false, &g)) return cli_fail();
    own.launch.given = g.by ? &g : NULL;
    if (own.launch.grain && !own.automatic) {
        base_fail(TRI_USAGE, LAUNCH_GRAIN_ALONE);
        return cli_fail();
    }
    if (own.automatic && launch_find_of_program(&own.launch)) return cli_fail();
    return launched_run(&own.launch, &g);
}

static void describe(struct text *out) {
    options_describe((const struct option_row *const[]){launch_rows, launch_words_rows, NULL},
                     USE_ALL, "all", out);
}

const struct command command_run = {
    .name = "run",
    .arguments = "-n N [options] -- PROGRAM [ARGUMENTS]",
    .help = "run a program of your own as several workers",
    .more = describe,
    .run = run,
};
