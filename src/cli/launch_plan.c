/* SPDX-License-Identifier: Apache-2.0
 * What a command that starts workers learns from the prices of units: the plan of --parallel auto,
 * and how fast each number of workers will be. */
#include "cli/launch_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "cli/launch.h"
#include "search/automatic.h"
#include "run/open.h"

static struct find_ask ask_of(const struct launch *l, const tri_options *o) {
    return (struct find_ask){.workers = l->automatic ? 0 : l->workers,
                             .threads = l->threads ? l->threads : (int)o->threads,
                             .any = l->grain && !strcmp(l->grain, "any")};
}

/* The run then is as if --plan had been given. */
static tri_status take(struct launch *l, tri_options *o, const char *path) {
    o->parallel = NULL;
    o->plan = path;
    if (l->automatic) l->workers = 0;
    l->automatic = false;
    if (setenv(AUTOMATIC_ENV, path, 1)) return base_no_memory("a plan");
    tri_status status = options_take_plan(o);
    return status ? status : cli_check_launch(l, o);
}

static const char *too_many(const struct launch *l, const tri_options *o) {
    if (l->hosts) return "--hosts: plans over several hosts are not searched yet";
    if (l->given) return "a launcher such as mpirun, which has chosen the workers";
    return o->forward ? "a run that does not train" : NULL;
}

tri_status launch_find_plan(struct launch *l, struct cli_arguments *a) {
    const struct find_ask ask = ask_of(l, &a->options);
    struct cli_arguments one = *a;
    struct text path = {0};
    if (!automatic_is_asked(&a->options)) {
        if (!l->grain) return TRI_OK;
        return base_fail(TRI_USAGE, "--grain %s is for --parallel auto, which finds a plan",
                         l->grain);
    }
    const char *what = too_many(l, &a->options);
    if (what) return base_fail(TRI_USAGE, "--parallel auto and %s", what);
    tri_graph *g = cli_network(&one, NULL);
    tri_status status = g ? automatic_find(g, &one.options, &ask, &path) : base_last();
    if (!status) status = take(l, &a->options, path.data); /* kept: options point to it */
    return status;
}

/* ---- numbers of workers ---- */

/* Seconds of a step by prices that are all known; 0: they are not. */
static double predicted(const struct cli_arguments *a, const struct crew_size *size,
                        const struct prices *p) {
    struct cli_arguments one = *a;
    struct run_price is = {0};
    run_leave_nothing(&one.options);
    tri_graph *g = cli_graph(&one);
    tri_run *run = g ? run_plan(g, &one.options, size) : NULL;
    const bool good = run && !price_check(run) && !price_run(run, p, NULL, &is);
    if (run) run_free(run);
    return good && is.known == is.units ? is.step.seconds : 0;
}

static bool has_prices(struct prices *p) {
    struct text path = {0};
    const bool has = !prices_make(p) && prices_file(p, &path) && !access(path.data, R_OK) &&
                     !prices_read(p, path.data) && p->n;
    text_free(&path);
    return has;
}

void launch_predict(struct launch *l, const struct cli_arguments *a) {
    struct prices p = {0};
    struct launch settled = *l;
    launch_settle(&settled);
    const int most = settled.workers < LAUNCH_PREDICTED ? settled.workers : LAUNCH_PREDICTED - 1;
    if (l->hosts || l->given || settled.workers < 2 || !has_prices(&p)) {
        prices_free(&p);
        return;
    }
    for (int n = 1; n <= most; n++) {
        if (!l->automatic && n > 1 && n < settled.workers) continue;
        struct crew_size size = launch_size(&settled);
        size.workers = n;
        l->predicted[n] = predicted(a, &size, &p);
        if (l->predicted[n] > 0) continue;
        memset(l->predicted, 0, sizeof l->predicted); /* all, or none */
        break;
    }
    if (!l->automatic && settled.workers <= most && l->predicted[settled.workers] > 0 &&
        l->predicted[settled.workers] > l->predicted[1])
        fprintf(stderr, "trireme: -n %d: a step is predicted to take %.4g ms, %.2f times as long as "
                "with one worker: -n 1\n", settled.workers, 1e3 * l->predicted[settled.workers],
                l->predicted[settled.workers] / l->predicted[1]);
    prices_free(&p);
}
