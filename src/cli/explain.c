/* SPDX-License-Identifier: Apache-2.0
 * trireme explain: how a mesh splits a network, what moves between its seats, and why; the stages
 * of a pipeline; and the buckets in which results are summed over the lanes. */
#include "cli/explain.h"

#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "cli/cli.h"
#include "cli/launch.h"
#include "cli/price.h"
#include "cli/visit.h"
#include "dev/dev.h"
#include "machine/budget.h"
#include "plan/rebatch.h"
#include "plan/recompute.h"
#include "run/open.h"
#include "run/items.h"
#include "run/profile.h"
#include "run/run.h"

static tri_status check_divided(const struct compilation *c, const char *model) {
    if (c->strategies.mesh.n || c->lanes > 1 || c->stages) return TRI_OK;
    const char *fits = strategies_fitting(c->model, c->options, 2);
    char mesh[128];
    base_format(mesh, sizeof mesh, "model=2%s%s", fits ? " --strategy " : "", fits ? fits : "");
    if (c->strategies.tuple_parts)
        base_format(mesh, sizeof mesh, "%lld", (long long)c->strategies.tuple_parts);
    return base_fail(TRI_USAGE, "%s has no mesh, no stages and one lane, so nothing is split: use "
                     "--mesh %s%s (tri_mesh), --lanes or --stages", model, mesh,
                     c->strategies.tuple_parts ? " for its tuples" : "");
}

static tri_status check_own(const struct own *own, const struct compilation *c, int64_t seats) {
    int64_t devices = own->devices;
    if (devices && !c->strategies.mesh.n)
        return base_fail(TRI_USAGE, "--devices %lld: without a mesh nothing moves between devices",
                         (long long)devices);
    if (own->bucket && seats > EXPLAIN_MOST_SEATS)
        return base_fail(TRI_USAGE, "--bucket: buckets are known for meshes of up to %d seats",
                         EXPLAIN_MOST_SEATS);
    if (own->measure && !c->stages && seats > EXPLAIN_MOST_SEATS)
        return base_fail(TRI_USAGE, "--measure: steps are measured for meshes of up to %d seats",
                         EXPLAIN_MOST_SEATS);
    if (c->stages && seats > EXPLAIN_MOST_SEATS)
        return base_fail(TRI_USAGE, "stages and legs are explained for meshes of up to %d seats; "
                         "--stages 1 leaves stages out", EXPLAIN_MOST_SEATS);
    if ((own->json + own->full + (own->match != NULL)) > 1)
        return base_fail(TRI_USAGE,
                         "--json and --full have everything, --match a part: give one");
    if (own->match && !c->strategies.mesh.n)
        return base_fail(TRI_USAGE, "--match %s: without a mesh no operator is split", own->match);
    if (!devices || devices % seats == 0) return TRI_OK;
    return base_fail(TRI_USAGE, "--devices %lld: the mesh has %lld seats, of which each replica "
                     "needs all; %lld is the nearest number that they divide", (long long)devices,
                     (long long)seats,
                     (long long)(devices < seats ? seats : devices - devices % seats));
}

static double gradient_bytes(const tri_graph *model) {
    double bytes = 0;
    for (int i = 0; tri_param_at(model, i); i++)
        if (!param_frozen(tri_param_at(model, i)->node))
            bytes += (double)base_spec_bytes(&tri_param_at(model, i)->spec);
    return bytes;
}

static void sum_lanes(const struct compilation *c, double step[MOVE_TIMES]) {
    int64_t batch = c->whole->batch;
    for (int64_t i = 0; i < c->lanes && c->dist[0].g; i++) {
        bool second = lane_samples(batch, c->lanes, i) != c->samples[0];
        struct move_sums s = explain_sums(&c->dist[second]);
        for (int w = 0; w < MOVE_TIMES; w++) step[w] += s.all[w].bytes;
    }
}

/* Adds the seconds of a lane's items; those of a sum of results belong to the leg that computes
 * them. */
static void add_times(const tri_run *run, double *seconds) {
    const struct compilation *c = &run->machine->compilation;
    struct item_at at;
    for (int k = 0; items_find(run, k, &at); k++) {
        int leg = at.p->item[at.i].unit->node[0]->leg;
        if (at.sums) leg = at.sums->buckets.leg[at.sums->bucket_of[at.i]];
        if (at.sums == &run->machine->tree[1] || at.p->g == c->lane[0] || at.p->g == c->lane[1])
            seconds[leg] += profile_seconds(run, k);
    }
}

/* How long each leg of a lane takes: runs some steps, the first one untimed. */
static tri_status measure(tri_run *run, double *cost) {
    enum { TIMED = 3 };
    struct machine *m = run->machine;
    tri_status status = tri_step(run) ? profile_begin(run) : base_last();
    for (int i = 0; i < TIMED && !status; i++) {
        if (!tri_step(run)) status = base_last();
        profile_add(run);
    }
    if (!status) add_times(run, cost);
    for (int leg = 0; leg < LEGS_MOST; leg++) cost[leg] /= TIMED * (double)m->lanes;
    return status;
}

static tri_status explain(const char *model, const struct compilation *c, const struct machine *m,
                          const struct own *own, size_t unsplit, const double *cost) {
    struct explanation e = {.model = model, .c = c, .d = &c->dist[0], .m = m, .own = own,
                            .seats = mesh_seats(&c->strategies.mesh), .cost = cost,
                            .unsplit_lane = unsplit, .gradients = gradient_bytes(c->model)};
    struct text t = {0};
    const struct dist whole = {.g = e.d->g, .use = e.d->use, .has = e.d->has, .need = e.d->need,
                               .first = e.d->first};
    e.replicas = own->devices ? own->devices / e.seats : 1;
    e.shown = !e.d->g ? 0 : m ? e.seats : 1;
    sum_lanes(c, e.step);
    if (e.shown) e.unsplit = explain_seat(&whole, e.seat[0].at);
    if (own->match && !explain_matches(e.d->g, own->match)) return base_last();
    for (int64_t i = 0; i < e.shown; i++) {
        mesh_at(&e.d->mesh, i, e.seat[i].at);
        e.seat[i].bytes = explain_seat(e.d, e.seat[i].at);
        e.seat[i].lane = m ? budget_seat(m, e.seat[i].at) : 0;
        if (e.seat[i].lane == SIZE_MAX) return base_no_memory("the memory of a seat");
    }
    if (own->json)
        t.failed |= !explain_as_json(&e, &t);
    else
        explain_as_text(&e, &t);
    return cli_print(&t);
}

/* Compiles up to `dist`. *expands: the mesh is small enough to be expanded. */
static tri_status look(tri_graph *g, const struct cli_arguments *a, const struct own *own,
                       bool *expands) {
    const struct dev *dev = dev_find(a->options.device);
    if (!dev) return base_last();
    tri_options o = a->options;
    if (recompute_is_word(o.recompute)) o.recompute = NULL; /* it changes neither mesh nor lanes */
    struct compilation c = {.options = &o, .target = dev->kind->target, .model = g};
    tri_status status = passes_run(&c, "batch");
    int64_t seats = mesh_seats(&c.strategies.mesh);
    if (!status) status = check_divided(&c, a->model);
    if (!status) status = check_own(own, &c, seats);
    *expands = seats <= EXPLAIN_MOST_SEATS;
    passes_free(&c);
    if (status || *expands) return status;
    c = (struct compilation){.options = &o, .target = dev->kind->target, .model = g};
    status = passes_run(&c, "dist");
    if (!status) status = explain(a->model, &c, NULL, own, 0, NULL);
    passes_free(&c);
    return status;
}

/* Compiling changes a network, so each run has one of its own. Null after a mistake. */
static tri_run *open_run(struct cli_arguments *a, bool runs) {
    tri_graph *g = cli_graph(a);
    return !g ? NULL : runs ? tri_open(g, &a->options) : run_plan(g, &a->options, NULL);
}

/* Runs threads that compute legs side by side, as workers would, since legs that do take longer. */
static tri_status measure_legs(struct cli_arguments *a, int tracks, double *cost) {
    int cores = host_cores();
    a->options.threads = tracks < cores ? tracks : cores;
    tri_run *run = open_run(a, true);
    tri_status status = run ? measure(run, cost) : base_last();
    if (run) run_free(run);
    return status;
}

/* The bytes of a lane's arena without the mesh. */
static tri_status plan_unsplit(const tri_run *split, size_t *bytes) {
    static const struct crew_size alone = {.workers = 1, .threads = 1, .most = 1};
    static const int16_t origin[MESH_MOST_AXES];
    tri_options o = split->options;
    if (!split->machine->compilation.strategies.mesh.n) return TRI_OK;
    tri_graph *g = graph_duplicate(split->written, split->written->batch);
    if (g) graph_forget_mesh(g);
    o.mesh = o.strategy = o.unset = o.parallel = o.plan = NULL;
    tri_run *run = g ? run_plan(g, &o, &alone) : NULL;
    if (!run) return base_last();
    *bytes = budget_seat(run->machine, origin);
    run_free(run);
    return *bytes == SIZE_MAX ? base_no_memory("the memory of a seat") : TRI_OK;
}

/* What a step takes, and how long its threads wait. */
static tri_status explain_price(const char *model, const tri_run *run) {
    struct text t = {0};
    tri_status status = cli_price(model, run, &(struct price_ask){.when = FIND_ALWAYS}, &t);
    if (status) text_free(&t);
    return status ? status : cli_print(&t);
}

static tri_status explain_model(struct cli_arguments *a, const struct own *own) {
    bool expands = false;
    tri_graph *g = cli_graph(a);
    tri_status status = g ? look(g, a, own, &expands) : base_last();
    tri_graph_free(g);
    if (status || !expands) return status;
    a->options.bucket = own->bucket;
    a->options.data = "synthetic";
    a->options.quiet = true;
    if (!a->options.threads) a->options.threads = 1; /* as planned for a worker per track */
    tri_run *run = open_run(a, false);
    double cost[LEGS_MOST] = {0};
    size_t unsplit = 0;
    if (!run) return base_last();
    const int tracks = run->machine->pipeline.tracks;
    if (own->measure && tracks) status = measure_legs(a, tracks, cost);
    else if (own->measure && own->json)
        status = base_fail(TRI_USAGE, "--measure --json is for a pipeline: `trireme plan price "
                           "MODEL --json` has the time of other steps");
    if (!status && !own->match && !own->json) status = plan_unsplit(run, &unsplit);
    if (!status)
        status = explain(a->model, &run->machine->compilation, run->machine, own, unsplit,
                         own->measure && tracks ? cost : NULL);
    if (!status && own->measure && !tracks) status = explain_price(a->model, run);
    run_free(run);
    return status;
}

static int run(const struct command *c, int argc, char **argv) {
    struct cli_arguments a;
    struct own own = {0};
    if (cli_read(c, argc, argv, &own, &a)) return cli_fail();
    if (own.factors && (a.model || own.json || own.devices)) {
        base_fail(TRI_USAGE, "--factors lists all operators' factors: give it alone");
        return cli_fail();
    }
    if (own.factors) {
        struct text t = {.data = factors_list()};
        return !t.data || cli_print(&t) ? cli_fail() : TRI_OK;
    }
    if (a.program) return visit_start(&a);
    if (own.hosts || own.asks_path || own.out) return explain_hosts(&a, &own) ? cli_fail() : TRI_OK;
    if (!a.model)
        base_fail(TRI_USAGE, "%s lacks its MODEL: trireme %s %s; `trireme models` lists the zoo",
                  c->name, c->name, c->arguments);
    return !a.model || explain_model(&a, &own) ? cli_fail() : TRI_OK;
}

static const char *path_way(void *at, const char *value) { /* struct own */
    struct own *own = at;
    own->asks_path = true;
    return launch_path(&own->path, value);
}

static const struct option_row rows[] = {
    {"--devices", "N",
     "for so many devices, which are replicas of the mesh: what moves over all of them",
     OWN(option_count, devices)},
    {"--bucket", "SIZE", "as for training: buckets of at least this size",
     OWN(option_size, bucket)},
    {"--measure", NULL, "run some steps on random samples, and say what a step takes here and how "
     "long threads wait; of a pipeline how long tracks wait, a thread per track, with the times of "
     "legs and their sums of gradients",
     OWN(option_given, measure)},
    {"--full", NULL, "list all operators, moves, seats and buckets", OWN(option_given, full)},
    {"--match", "PATTERN", "list the operators and moves of scopes or operators that match, as in "
     "--strategy", OWN(option_text, match)},
    {"--hosts", "N|NAMES",
     "what hosts would send each other in a step, by which paths, in which formats: so many hosts, "
     "or those that the run will have, h0,h1:4, whose links `trireme bench links` has measured",
     OWN(option_text, hosts)},
    {"--path", "WAY",
     "with --hosts: the schedule of exchange, ring, butterfly or root, also without a MODEL; or "
     "auto, which says why each bucket takes which (default: auto)",
     path_way, 0, USE_ALL, .group = GROUP_NONE},
    {"--out", "DIR",
     "with --hosts: the directory of a run over them in f32, of which the time of a step is taken, "
     "and how long it waits for hosts",
     OWN(option_text, out)},
    {"--json", NULL, "print a JSON object", OWN(option_given, json)},
    {"--factors", NULL, "list what each operator calls its factors, for --strategy",
     OWN(option_given, factors)},
    {0},
};

const struct command command_explain = {
    .name = "explain",
    .arguments = "MODEL [options]",
    .help = "show how a mesh splits a network, what moves, and when gradients are summed",
    .takes_model = true,
    .takes_program = true,
    .model_optional = true,
    .use = USE_DUMP,
    .rows = rows,
    .more = cli_describe_model,
    .run = run,
};
