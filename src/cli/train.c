/* SPDX-License-Identifier: Apache-2.0
 * trireme train: the usual loop, in this process or in several workers. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "cli/cli.h"
#include "cli/launch.h"
#include "cli/launch_plan.h"
#include "cli/launched.h"
#include "cli/profile.h"
#include "run/run.h"
#include "loop/train_loop.h"
#include "run/open.h"

/* The workers run this same program with the same words, even if its file has been replaced. */
static int launch(const struct launch *l, const struct cli_arguments *a, const struct given *g) {
    struct launch settled = *l;
    settled.argv = cli_words;
    settled.out = a->options.out;
    settled.on_event = a->options.on_event;
    settled.program = LAUNCH_SELF;
    settled.title = a->model;
    settled.ends_with_run = true;
    return launched_run(&settled, g);
}

/* Whether a step has a single lane and no mesh. A second worker would have nothing to do then, so
 * one process with all threads is best and needs no agent. */
static bool one_lane(const struct cli_arguments *a) {
    tri_options o = a->options;
    tri_graph *g = tri_model_open(a->model, o.batch);
    tri_run *run = g ? run_plan(g, &o, NULL) : NULL;
    bool one = run && run_lanes(run) == 1 &&
               mesh_seats(&run->machine->compilation.strategies.mesh) == 1;
    if (one)
        fprintf(stderr, "trireme: -n auto: 1 worker, this process: a step, batch %lld, has one "
                "lane (--lanes N makes more)\n", (long long)run_batch(run));
    if (run) run_free(run);
    return one;
}

static bool wants_agent(const struct launch *l, const struct cli_arguments *a,
                        const struct given *g) {
    if (cli_is_worker()) return false;
    if (l->hosts || g->by) return true;
    return l->automatic ? !one_lane(a) : l->workers > 0;
}

static int train(struct cli_arguments *a) {
    if (cli_is_worker()) prctl(PR_SET_NAME, "trireme"); /* instead of "exe" */
    tri_graph *g = cli_network(a, NULL);
    if (!g) return cli_fail();
    return (int)train_loop(g, &a->options, NULL, a->model);
}

/* After the last step, and only then. */
static int show_profile(const struct cli_arguments *a, int code) {
    struct text told = {0};
    char name[64] = "";
    long long first = 0;
    if (code && code != (int)TRI_STOPPED) return code;
    if (sscanf(a->options.profile, "steps=%lld", &first) == 1)
        profile_last_of(a->options.out, first, name);
    if (profile_make_tables(a->options.out, name, &told))
        fprintf(stderr, "trireme: %s\n", tri_message());
    else if (!a->options.quiet && told.data)
        fprintf(stderr, "%s", told.data);
    text_free(&told);
    return code;
}

static int run(const struct command *c, int argc, char **argv) {
    struct cli_arguments a;
    struct launch own = {0};
    struct given g = {.by = NULL};
    if (!cli_is_worker() && given_read(false, &g)) return cli_fail();
    own.given = g.by ? &g : NULL; /* options of several workers are for it, too */
    if (cli_read(c, argc, argv, &own, &a)) return cli_fail();
    if (g.by && !own.workers) own.workers = g.workers;
    if (cli_check_launch(&own, &a.options)) return cli_fail();
    if (!a.options.out) a.options.out = "run";
    if (!cli_is_worker() && launch_find_plan(&own, &a)) return cli_fail();
    if (!cli_is_worker()) launch_predict(&own, &a);
    const bool shows = a.options.profile && !cli_is_worker();
    const int code = wants_agent(&own, &a, &g) ? launch(&own, &a, &g) : train(&a);
    return shows ? show_profile(&a, code) : code;
}

const struct command command_train = {
    .name = "train",
    .arguments = "MODEL [options]",
    .help = "train a network; the last line on stdout is the result",
    .takes_model = true,
    .use = USE_TRAIN,
    .rows = launch_rows,
    .more = cli_describe_model,
    .run = run,
};
