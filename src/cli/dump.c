/* SPDX-License-Identifier: Apache-2.0
 * trireme dump: the network as text, as written or after a pass. */
#include "cli/cli.h"
#include "cli/visit.h"
#include "dev/dev.h"
#include "plan/passes.h"

struct own {
    const char *after;
};

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {0};
    struct cli_arguments a;
    if (cli_read(c, argc, argv, &own, &a)) return cli_fail();
    const struct dev *dev = dev_find(a.options.device);
    if (!dev || (own.after && passes_find(own.after) < 0)) return cli_fail();
    if (a.program) return visit_start(&a);
    tri_graph *g = cli_graph(&a);
    if (!g) return cli_fail();
    struct text t = {.data = passes_dump(g, &a.options, dev->kind->target,
                                         own.after ? own.after : passes_name(0))};
    tri_graph_free(g);
    return !t.data || cli_print(&t) ? cli_fail() : TRI_OK;
}

static void more(struct text *out) {
    text_add(out, "\npasses, in their order; --passes can leave out those with *:\n");
    for (int i = 0; i < passes_count(); i++)
        text_add(out, "  %-10s%c %s\n", passes_name(i), passes_may(i) ? '*' : ' ',
                 passes_help(i));
    cli_describe_model(out);
}

static const struct option_row rows[] = {
    {"--after", "PASS",
     "print the network after this pass (default: the first pass, the network as written)",
     OWN(option_text, after)},
    {0},
};

const struct command command_dump = {
    .name = "dump",
    .arguments = "MODEL [--after PASS] [options]",
    .help = "print a network as text, which can be read back as FILE.tri",
    .takes_model = true,
    .takes_program = true,
    .use = USE_DUMP,
    .rows = rows,
    .more = more,
    .run = run,
};
