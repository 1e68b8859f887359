/* SPDX-License-Identifier: Apache-2.0
 * trireme join: takes part in a run over several hosts. And `trireme ferry`, which an agent starts:
 * it is no command of the user's. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/launch.h"
#include "cli/launched.h"
#include "ferry/ferry.h"
#include "launch/membership.h"

static const struct option_row rows[] = {
    {"--key", "FILE", "the run's key, of `trireme ckpt key FILE`; -: 64 digits on standard input",
     option_text, offsetof(struct join_options, key), USE_ALL, .group = GROUP_NONE},
    {"--name", "NAME", "this host's name among --hosts (default: that of the machine)", option_text,
     offsetof(struct join_options, name), USE_ALL, .group = GROUP_NONE},
    {"--port", "A-B", "ports to listen at for other hosts (default: any)", option_text,
     offsetof(struct join_options, ports), USE_ALL, .group = GROUP_NONE},
    {0},
};

/* By what a launcher has set. The host of rank 0 runs PROGRAM, and tells the others. */
static int run_given(const struct command *c, int argc, char **argv) {
    struct launch_words own;
    struct given g;
    if (launch_take(&argc, argv, &own) || given_read(true, &g)) return cli_fail();
    if (!g.by)
        base_fail(TRI_USAGE, "join needs the ADDRESS of a coordinator, or a launcher's variables "
                  "(MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, say): trireme %s %s", c->name,
                  c->arguments);
    else if (own.automatic || own.launch.grain)
        base_fail(TRI_USAGE, "--parallel auto and --grain: plans over several hosts are not "
                  "searched yet");
    else if (argc < 2 && !g.rank)
        base_fail(TRI_USAGE, "join lacks what to run: this is the host of rank 0, which tells the "
                  "others: trireme join --key FILE -- PROGRAM");
    else {
        own.launch.argv = argv + 1;
        return launched_run(&own.launch, &g);
    }
    return cli_fail();
}

/* Whether there is a word that is no option, and no value of one. */
static bool has_address(int argc, char **argv) {
    const struct option_set sets[] = {{rows, NULL}, {launch_rows, NULL}, {0}}, *set;
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
        const struct option_row *row = options_find(sets, USE_ALL, argv[i], &set);
        if (*argv[i] != '-') return true;
        if (row ? row->argument != NULL : !strchr(argv[i], '=')) i++;
    }
    return false;
}

static int run(const struct command *c, int argc, char **argv) {
    struct join_options own = {0};
    if (!has_address(argc, argv)) return run_given(c, argc, argv);
    const struct option_set sets[] = {{rows, &own}, {0}};
    if (options_take(sets, USE_ALL, false, &argc, argv)) return cli_fail();
    tri_status status = TRI_OK;
    if (argc != 2)
        status = base_fail(TRI_USAGE, "join needs one ADDRESS: trireme %s %s", c->name,
                           c->arguments);
    else if (!own.key)
        status = base_fail(TRI_USAGE, "join lacks the run's key: --key FILE, with the file of "
                           "`trireme run --key FILE`, or --key - and the key on standard input, "
                           "as `trireme run --hosts` gives it");
    if (status) return cli_fail();
    own.address = argv[1];
    return membership_join(&own);
}

static void describe(struct text *out) {
    options_describe((const struct option_row *const[]){rows, NULL}, USE_ALL, "all", out);
    options_paragraph("Without ADDRESS, what a launcher has set says where the coordinator is: "
                      "MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE, or PET_MASTER_ADDR, "
                      "PET_MASTER_PORT, PET_NODE_RANK, PET_NNODES, or what mpirun and srun set. "
                      "The host of rank 0 is the coordinator, and runs PROGRAM on all. All "
                      "options of `trireme run` can be given then.", out);
}

const struct command command_join = {
    .name = "join",
    .arguments = "[ADDRESS] --key FILE [-- PROGRAM [ARGUMENTS]]",
    .help = "take part in a run over several hosts, whose coordinator is at ADDRESS, or where "
            "the variables of a launcher say",
    .more = describe,
    .run = run,
};

int cli_ferry(int argc, char **argv) {
    if (argc == 4) return ferry_run(atoi(argv[2]), atoi(argv[3]));
    base_fail(TRI_USAGE, "trireme ferry is started by the agent of a host, not by you");
    return cli_fail();
}
