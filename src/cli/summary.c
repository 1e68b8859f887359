/* SPDX-License-Identifier: Apache-2.0
 * trireme summary: the layers of a network, what they have and what they compute. */
#include "cli/cli.h"
#include "cli/visit.h"
#include "plan/summary.h"

struct own {
    int64_t depth; /* 0: all */
};

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {0};
    struct cli_arguments a;
    if (cli_read(c, argc, argv, &own, &a)) return cli_fail();
    if (a.program) return visit_start(&a);
    tri_graph *g = cli_graph(&a);
    if (!g) return cli_fail();
    struct text out = {0};
    tri_status status = summary_print(g, own.depth, &out);
    tri_graph_free(g);
    if (status) text_free(&out);
    return status || cli_print(&out) ? cli_fail() : TRI_OK;
}

static const struct option_row rows[] = {
    {"--depth", "N", "join layers whose names agree in the first N words (default: no limit)",
     OWN(option_count, depth)},
    {0},
};

const struct command command_summary = {
    .name = "summary",
    .arguments = "MODEL [--depth N] [options]",
    .help = "list the layers of a network: results, parameters, arithmetic, memory",
    .takes_model = true,
    .takes_program = true,
    .use = USE_DUMP,
    .rows = rows,
    .more = cli_describe_model,
    .run = run,
};
