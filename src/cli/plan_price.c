/* SPDX-License-Identifier: Apache-2.0
 * trireme plan price: what a step takes, by the prices of its units. */
#include <stdio.h>
#include <string.h>

#include "base/host.h"
#include "cli/cli.h"
#include "cli/launch.h"
#include "cli/price.h"
#include "run/executor.h"
#include "run/open.h"

#define MEASURE_SECONDS 1.0

struct own {
    struct launch launch; /* first, for launch_rows */
    enum find_measure measure;
    bool json;
};

const struct option_row plan_price_rows[] = {
    {"--measure", "WHEN", "run steps on random samples to measure the units: always, unknown (if "
     "the price of one is not known, the default), never", OWN(find_measure_word, measure)},
    {"--json", NULL, "print it as JSON, in seconds", OWN(option_given, json)},
    {0},
};

static tri_status check(const tri_options *o) {
    const char *const surplus[] = {o->data ? "--data" : NULL, o->eval_data ? "--eval-data" : NULL,
                                   o->ckpt ? "--ckpt" : NULL};
    for (size_t i = 0; i < COUNT(surplus); i++)
        if (surplus[i])
            return base_fail(TRI_USAGE, "plan price runs on random samples, and saves nothing: "
                             "leave out %s", surplus[i]);
    return TRI_OK;
}

static void add_time(struct text *t, double seconds) {
    text_add(t, seconds < 0.01 ? "%.3f ms" : seconds < 1 ? "%.1f ms" : "%.0f ms", 1e3 * seconds);
}

static bool are_alike(const tri_run *run) {
    bool alike = true;
    for (int h = 1; h < run->machine->hosts; h++)
        alike &= run->machine->weight[h] == run->machine->weight[0];
    return alike;
}

/* others: cores that they used while units were measured. */
static void describe(const char *model, const tri_run *run, const struct run_price *is_priced,
                     double measured, double others, struct text *t) {
    const struct step_price *s = &is_priced->step;
    const int hosts = run->machine->hosts;
    text_add(t, "%s, batch %lld: %lld lane(s), ", model, (long long)run_batch(run),
             (long long)run_lanes(run));
    if (hosts) text_add(t, "%d host(s) of %s", hosts, are_alike(run) ? "" : "at most ");
    if (run->worker) text_add(t, "%d worker(s) of ", run->executor->size(run));
    text_add(t, "%d thread(s)\n", run_threads(run));
    const int known = is_priced->known, units = is_priced->units;
    text_add(t, "a step: %s", known < units ? "~" : "");
    add_time(t, s->seconds);
    if (known < units)
        text_add(t, ", by the prices of %d of its %d units, and the operations and bytes of the "
                 "others\n", known, units);
    else
        text_add(t, ", by the prices of its %d unit(s)\n", units);
    text_add(t, "in lanes ");
    add_time(t, s->lanes);
    if (hosts > 1) text_add(t, ", of which the last ");
    if (hosts > 1) add_time(t, s->exposed);
    if (hosts > 1) text_add(t, " wait for sums of other hosts");
    text_add(t, ", before them ");
    add_time(t, s->pre);
    text_add(t, ", after them ");
    add_time(t, s->step);
    text_add(t, ", between units ");
    add_time(t, is_priced->overhead);
    text_add(t, "\nthreads wait %.1f %%\n",
             100 * (1 - (s->units + is_priced->overhead) / s->seconds));
    if (measured > 0) text_add(t, "measured just now: ");
    if (measured > 0) add_time(t, measured);
    if (measured > 0) text_add(t, "\n");
    if (others >= FIND_FEW * host_cores())
        text_add(t, "meanwhile others used %.1f cores, so that times are too long: --measure "
                 "always measures again\n", others);
}

static void describe_json(const struct run_price *p, int hosts, double measured,
                          struct text *t) {
    text_add(t, "{\"known\":%d,\"of\":%d", p->known, p->units);
    text_add(t, ",\"seconds\":%.9g,\"units\":%.9g,\"moves\":%.6g", p->step.seconds,
             p->step.units, p->moves);
    if (hosts) text_add(t, ",\"hosts\":%d,\"exposed\":%.9g", hosts, p->step.exposed);
    if (measured > 0) text_add(t, ",\"measured\":%.9g", measured);
    text_add(t, "}\n");
}

tri_status cli_price(const char *model, const tri_run *run, const struct price_ask *ask,
                     struct text *out) {
    struct run_price is_priced;
    struct price_kinds kinds = {{0}};
    struct prices p = {0};
    struct text path = {0};
    double measured = 0, others = 0;
    int cores;
    tri_status status = prices_open(&p, 0, &path);
    p.link = ask->link;
    p.path = ask->path;
    if (!status) status = price_check(run);
    if (!status) status = price_run(run, &p, &kinds, &is_priced);
    if (!status && ask->when != FIND_NEVER &&
        (is_priced.known < is_priced.units || ask->when == FIND_ALWAYS)) {
        const double began = base_seconds(), used = host_others("", &cores);
        status = price_learn(run, MEASURE_SECONDS, &p, &measured);
        others = (host_others("", &cores) - used) / (base_seconds() - began);
        if (!status) prices_keep(&p, &path);
        if (!status) status = price_run(run, &p, &kinds, &is_priced);
    }
    if (!status && ask->json) describe_json(&is_priced, run->machine->hosts, measured, out);
    else if (!status) describe(model, run, &is_priced, measured, others, out);
    kinds_free(&kinds);
    prices_free(&p);
    text_free(&path);
    return status;
}

static tri_status price(const struct own *own, struct cli_arguments *a, struct text *out) {
    struct price_ask ask = {.when = own->measure, .json = own->json, .path = own->launch.path};
    struct crew_size size;
    const bool alone = !own->launch.workers && !own->launch.hosts;
    tri_status status = cli_size(&own->launch, false, &size, &ask.link);
    tri_graph *g = status ? NULL : cli_graph(a);
    tri_run *run = g ? run_plan(g, &a->options, alone ? NULL : &size) : NULL;
    if (!run) return base_last();
    status = cli_price(a->model, run, &ask, out);
    run_free(run);
    return status;
}

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {.measure = FIND_UNKNOWN};
    struct cli_arguments a;
    struct text out = {0};
    if (cli_read(c, argc, argv, &own, &a)) return cli_fail();
    tri_status status = cli_check_launch(&own.launch, &a.options);
    if (!status) status = check(&a.options);
    run_leave_nothing(&a.options);
    a.options.data = "synthetic";
    a.options.quiet = true;
    a.options.steps = INT64_MAX / 2;
    if (!status) status = price(&own, &a, &out);
    if (status) text_free(&out);
    return status || cli_print(&out) ? cli_fail() : 0;
}

static const struct command command = {
    .name = "plan price",
    .arguments = "MODEL [options]",
    .help = "what a step takes, by the prices of its units",
    .takes_model = true,
    .use = USE_MEMORY,
    .rows = plan_price_rows,
    .more_rows = launch_rows,
    .run = run,
};

int cli_plan_price(int argc, char **argv) { return run(&command, argc, argv); }
