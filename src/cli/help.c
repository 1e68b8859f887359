/* SPDX-License-Identifier: Apache-2.0
 * trireme help and trireme version. */
#include <stdio.h>

#include "cli/cli.h"

static int help(const struct command *c, int argc, char **argv) {
    (void)c;
    struct text t = {0};
    const struct command *about = argc > 1 ? command_find(argv[1]) : NULL;
    if (argc > 1 && !about) return cli_fail();
    if (about) return cli_describe(about, argc > 2 ? argv[2] : NULL);
    cli_describe_all(&t);
    return cli_print(&t) ? cli_fail() : TRI_OK;
}

static int version(const struct command *c, int argc, char **argv) {
    struct cli_arguments a;
    if (cli_read(c, argc, argv, NULL, &a)) return cli_fail();
    printf("trireme %s\n", TRI_VERSION);
    return TRI_OK;
}

const struct command command_help = {
    .name = "help",
    .arguments = "[COMMAND [TOPIC]]",
    .help = "list the commands, or explain one",
    .run = help,
};

const struct command command_version = {
    .name = "version",
    .arguments = "",
    .help = "print the version",
    .run = version,
};
