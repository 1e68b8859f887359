/* SPDX-License-Identifier: Apache-2.0
 * trireme eval: every scalar output of a network over a whole data set, in evaluation mode. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "data/data.h"
#include "exec/run.h"

/* The loss first, where there is one. */
static void print_results(const tri_run *run, int64_t samples) {
    printf("eval samples=%lld", (long long)samples);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < run_output_count(run); i++) {
            const char *name = run_output_name(run, i);
            if (run_output_is_scalar(run, i) && !strcmp(name, "loss") == !pass)
                printf(" %s=%.9g", name, tri_result(run, name));
        }
    printf("\n");
}

/* The data a.options name, which the run is not to take: it stands outside of it. */
static tri_data *take_data(struct cli_arguments *a, const tri_graph *g) {
    if (cli_own_data(a)) return NULL;
    tri_data *data = a->options.source;
    const char *spec = a->options.data;
    a->options.source = NULL;
    a->options.data = NULL;
    if (data) return data;
    if (spec) return data_open(spec, g, a->options.seed, a->options.tokenizer);
    base_fail(TRI_USAGE, "eval lacks --data SPEC: for example --data idx:DIR,split=test");
    return NULL;
}

static tri_status evaluate(tri_graph *g, const tri_options *o, tri_data *data) {
    tri_run *run = tri_open(g, o);
    if (!run) return (tri_status)cli_fail();
    if (run_fail(run, tri_evaluate(run, data)) == TRI_OK) print_results(run, tri_data_size(data));
    return tri_close(run);
}

static int run(const struct command *c, int argc, char **argv) {
    struct cli_arguments a;
    if (cli_read(c, argc, argv, NULL, &a)) return cli_fail();
    if (!a.options.load) {
        base_fail(TRI_USAGE, "eval lacks --load FILE: weights, as `trireme train %s --save FILE` "
                  "writes them", a.model);
        return cli_fail();
    }
    tri_graph *g = cli_graph(&a);
    if (!g) return cli_fail();
    tri_data *data = take_data(&a, g);
    if (!data) {
        tri_graph_free(g);
        return cli_fail();
    }
    a.options.forward = true;
    tri_status status = evaluate(g, &a.options, data);
    tri_data_free(data);
    return (int)status;
}

const struct command command_eval = {
    .name = "eval",
    .arguments = "MODEL --load FILE --data SPEC [options]",
    .help = "loss and metrics of trained weights over a data set",
    .takes_model = true,
    .use = USE_EVAL,
    .more = cli_describe_model,
    .run = run,
};
