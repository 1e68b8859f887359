/* SPDX-License-Identifier: Apache-2.0
 * trireme bench: measures the speed of training steps, with data and update. For one process it
 * prints a line, and the time per operator if asked; or the largest batch that fits in memory. For
 * workers, or several values of options, it prints a table. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "base/host.h"
#include "cli/cli.h"
#include "cli/launch.h"
#include "cli/visit.h"
#include "loop/train_loop.h"
#include "machine/budget.h"
#include "plan/plan_file.h"
#include "run/evaluate.h"
#include "run/open.h"
#include "run/profile.h"

#define SECONDS 5.0
#define ENDLESS 1000000000
#define LARGEST_BATCH (INT64_C(1) << 20)
#define MIB 1048576.0
#define MOST 64 /* rows */
#define TURNS 3
#define TURN_SECONDS 3.0
#define FEW 0.05 /* of the cores: what others may use without a note */
/* The environment variable by which a worker finds the row that it works for. */
#define PLACE "TRIREME_BENCH_ROW"

struct own {
    bool ops, nodes, largest; /* the options of these names */
    int64_t workers;          /* 0: this process, or as the plan says */
    int64_t threads;          /* of each worker; 0: cores divided by workers */
    double until_loss;
};

/* A combination of the options. */
struct row {
    struct own own;
    struct cli_arguments a;
    struct launch launch; /* workers 0: this process */
    struct options_picked picked;
    char **line;       /* the words that `a` points to */
    tri_status status; /* of planning, then of running it */
    char why[512];     /* it failed; the message */
    /* Of a table. A number of 0 is unknown. */
    long long workers, threads, lanes, batch;
    struct verdict verdict;
    double rate[TURNS]; /* samples per second */
    int turns;
    double waiting; /* mean of the turns */
    struct launch_timing timing;
};

static void refuse(struct row *r, tri_status status) {
    r->status = status;
    base_format(r->why, sizeof r->why, "%s", tri_message());
}

/* The network with its data. Null with a message. again: several runs will read these. */
static tri_graph *network(struct cli_arguments *a, bool again) {
    tri_graph *g = cli_network(a, again ? "bench" : NULL);
    if (!a->options.data && !a->options.source) a->options.data = "synthetic";
    return g;
}

/* A run in this process. again: one of several. Null with a message. */
static tri_run *run_row(const struct row *r, bool again, double seconds, struct pace *t) {
    struct cli_arguments a = r->a;
    tri_graph *g = network(&a, again);
    const size_t steps = (size_t)a.options.steps;
    a.options.steps = steps ? a.options.steps + PACE_WARM_STEPS : ENDLESS;
    tri_run *run = g ? tri_open(g, &a.options) : NULL;
    if (run) pace_measure(run, steps, seconds, r->own.ops || r->own.nodes, t);
    return run;
}

/* ---- one process ---- */

static tri_status report(tri_run *run, const char *model, struct pace *t) {
    double peak = host_peak() / MIB, ideal, steps = (double)t->n / t->total;
    struct work w = profile_step(run->machine);
    tri_status status = profile_ideal(run, &w, &ideal);
    if (status) return status;
    double median = pace_quantile(t->second, t->n, 0.5);
    printf("bench model=%s batch=%lld lanes=%lld threads=%d device=%s steps=%zu steps_per_s=%.2f "
           "samples_per_s=%.1f median_ms=%.4f p10_ms=%.4f p90_ms=%.4f first_step_ms=%.1f "
           "second_step_ms=%.1f start_ms=%.0f peak_rss_mib=%.1f plan_mib=%.1f gflops=%.2f "
           "fma_gflops=%.1f fma_share=%.3f gbytes_per_s=%.2f\n", model,
           (long long)run_batch(run), (long long)run_lanes(run), run_threads(run),
           run->dev->kind->name, t->n, steps, steps * (double)run_batch(run), 1e3 * median,
           1e3 * pace_quantile(t->second, t->n, 0.1), 1e3 * pace_quantile(t->second, t->n, 0.9),
           1e3 * t->step[0], 1e3 * t->step[1], 1e3 * t->start, peak,
           (double)budget_of(run->machine, &run->store).total / MIB, w.flops / median * 1e-9,
           ideal > 0 ? w.flops / ideal * 1e-9 : 0, ideal / median, w.bytes / median * 1e-9);
    return TRI_OK;
}

static int one_process(const struct row *r) {
    struct pace t = {0};
    struct text out = {0};
    tri_run *run = run_row(r, false, SECONDS, &t);
    if (!run) return cli_fail();
    if (!tri_run_status(run) && t.n) {
        run_fail(run, report(run, r->a.model, &t));
        if (r->own.ops) run_fail(run, profile_describe(run, false, &t, &out));
        if (r->own.nodes) run_fail(run, profile_describe(run, true, &t, &out));
        run_fail(run, cli_print(&out));
    }
    free(t.second);
    return (int)tri_close(run);
}

/* What does not fit is no failure, but leaves a message. */
static tri_status try_batch(struct cli_arguments now, int64_t batch, struct verdict *v) {
    now.options.batch = batch;
    tri_graph *g = cli_graph(&now);
    tri_run *run = g ? run_plan(g, &now.options, NULL) : NULL;
    if (!run) return base_last();
    *v = budget_verdict(run->machine, &run->store, now.options.memory_limit);
    budget_check(run->machine, &run->store, now.options.memory_limit);
    run_free(run);
    return TRI_OK;
}

/* Doubles the batch until it does not fit, then bisects. */
static int largest(const struct cli_arguments *a) {
    int64_t least = a->options.lanes > 1 ? a->options.lanes : 1, low = least - 1, high = 0;
    struct verdict v = {0}, best = {0};
    for (int64_t at = a->options.batch > least ? a->options.batch : least; at > low;) {
        if (try_batch(*a, at, &v)) return cli_fail();
        *(v.fits ? &low : &high) = at;
        if (v.fits) best = v;
        at = high ? low + (high - low) / 2 : low < LARGEST_BATCH ? 2 * low : 0;
    }
    if (!best.fits) return cli_fail();
    printf("largest model=%s batch=%s%lld needs_mib=%.0f limit_mib=%.0f\n", a->model,
           high ? "" : ">=", (long long)low, (double)best.needs / MIB, (double)best.limit / MIB);
    return TRI_OK;
}

/* ---- the rows of a table ---- */

/* Plans the row as it will be run. */
static void plan(struct row *r) {
    struct cli_arguments a = r->a;
    const struct crew_size size = launch_size(&r->launch);
    const bool alone = !r->launch.workers;
    r->workers = alone ? 1 : size.workers;
    tri_graph *g = network(&a, alone);
    tri_run *run = g ? run_plan_with_data(g, &a.options, alone ? NULL : &size) : NULL;
    if (!run) {
        refuse(r, base_last());
        return;
    }
    r->threads = run_threads(run);
    r->lanes = run_lanes(run);
    r->batch = run_batch(run);
    const struct machine *last = evaluation_machine(run);
    r->verdict = budget_verdict(last, &run->store, a.options.memory_limit);
    if (budget_check(last, &run->store, a.options.memory_limit)) refuse(r, base_last());
    run_free(run);
}

static int measure_alone(struct row *r) {
    struct pace t = {0};
    tri_run *run = run_row(r, true, TURN_SECONDS, &t);
    if (!run) return cli_fail();
    r->timing.rate = t.total > 0 ? (double)t.n / t.total : 0;
    free(t.second);
    return (int)tri_close(run);
}

/* The workers run this command again, or the program whose network it is. */
static int measure_workers(struct row *r) {
    struct launch l = r->launch;
    struct launch_timing *t = &r->timing;
    char place[16];
    base_format(place, sizeof place, "%d", r->picked.number);
    if (setenv(PLACE, place, 1)) return base_no_memory("the environment"), cli_fail();
    t->seconds = TURN_SECONDS;
    t->steps = r->a.options.steps;
    t->again = r->turns;
    t->until_loss = r->turns ? 0 : r->own.until_loss;
    t->known = false;
    l.timing = t;
    l.program = visit_opened ? NULL : LAUNCH_SELF;
    l.argv = visit_opened ? visit_opened->program : cli_words;
    int code = agent_run(&l);
    if (t->known) return r->waiting += t->waiting / TURNS, 0;
    if (!code) code = TRI_FAILED;
    return (int)base_fail((tri_status)code, "failed with exit code %d", code);
}

/* Returns the exit code of the last row that failed, or 0. By turns, so that what else the machine
 * does meets all rows. */
static int measure(struct row *row, int n) {
    int failed = 0;
    for (int i = 0; i < TURNS * n; i++) {
        struct row *r = &row[i % n];
        if (i == n) run_print_notes(false);
        if (r->status) continue;
        int code = r->launch.workers ? measure_workers(r) : measure_alone(r);
        if (code == AGENT_RESUMABLE) return code;
        if (!code) r->rate[r->turns++] = r->timing.rate * (double)r->batch;
        else refuse(r, (tri_status)(failed = code));
    }
    return failed;
}

/* ---- the table ---- */

static int64_t cores(const struct row *r) {
    int64_t used = r->workers * r->threads, all = host_cores();
    return used < all ? used : all;
}

static void add_rates(struct text *t, struct row *row, struct row *r) {
    struct row *base = row; /* the first that uses as many cores */
    while (base->status || cores(base) != cores(r)) base++;
    const double median = pace_quantile(r->rate, TURNS, 0.5);
    const double rate[] = {median, r->rate[0], r->rate[TURNS - 1]}; /* these are sorted */
    for (size_t i = 0; i < COUNT(rate); i++) text_add(t, "%.*f\t", rate[i] < 100 ? 3 : 1, rate[i]);
    text_add(t, "%.2f\t", median / pace_quantile(base->rate, TURNS, 0.5));
}

/* Its options and what became of it. */
static void add_remarks(struct text *t, const struct row *r) {
    const char *words = r->picked.words.data ? r->picked.words.data : "", *sep = *words ? ": " : "";
    const struct launch_timing *timing = &r->timing;
    columns_cell(t, words);
    if (r->status || timing->stages) text_add(t, "%s", sep), sep = "; ";
    if (r->status) columns_cell(t, r->why);
    else if (timing->stages) text_add(t, "workers wait %.1f %%", 100 * r->waiting);
    if (timing->loss_seconds > 0)
        text_add(t, "%sloss %g after %.2f s, %lld steps", sep, r->own.until_loss,
                 timing->loss_seconds, (long long)timing->loss_steps);
    else if (!r->status && r->own.until_loss > 0)
        text_add(t, "%sloss %g is not reached", sep, r->own.until_loss);
    text_add(t, "\n");
}

/* Samples per second that the row's plan has been predicted to make; 0: it does not say, or the row
 * has other workers. */
static double predicted(const struct row *r) {
    const char *path = r->a.options.plan;
    const struct plan_file *plan = path && r->batch ? plan_read(path, false) : NULL;
    const bool same = plan && r->workers == plan_number(plan, PLAN_WORKERS) &&
                      r->threads == plan_number(plan, PLAN_THREADS);
    const int64_t ns = same ? plan_number(plan, PLAN_PREDICTED) : 0;
    return ns ? 1e9 * (double)r->batch / (double)ns : 0;
}

static tri_status print(struct row *row, int n) {
    struct text t = {0}, cells = {0};
    bool any = false;
    for (int i = 0; i < n; i++) any |= predicted(&row[i]) > 0;
    text_add(&t, "medians of %d turns; speed is over the first row with as many cores\n", TURNS);
    text_add(&cells, "workers\tthreads\tlanes\tMiB\tfits\tsamples/s\tlowest\thighest\tspeed\t"
             "%s\n", any ? "predicted\t" : "");
    for (struct row *r = row; r < row + n; r++) {
        if (!r->batch) text_add(&cells, "\t\t\t");
        else text_add(&cells, "%lld\t%lld\t%lld\t", r->workers, r->threads, r->lanes);
        if (r->batch) budget_mib(r->verdict.needs, &cells);
        text_add(&cells, "\t%s\t", !r->batch ? "" : r->verdict.fits ? "yes" : "no");
        if (r->status) text_add(&cells, "\t\t\t\t");
        else add_rates(&cells, row, r);
        const double is = predicted(r);
        if (is > 0) text_add(&cells, "%.1f\t", is);
        else if (any) text_add(&cells, "-\t");
        add_remarks(&cells, r);
    }
    columns_add(&t, any ? "rrrrlrrrrrl" : "rrrrlrrrrl", &cells);
    return cli_print(&t);
}

static int table(struct row *row, int n) {
    int planned = 0, fit = 0;
    for (struct row *r = row; r < row + n; r++) {
        if (!r->status) plan(r);
        planned += r->batch > 0;
        fit += !r->status;
    }
    if (!planned) return base_fail(row->status, "%s", row->why), cli_fail();
    int all;
    double others = host_others("", &all), passed = base_seconds();
    int code = measure(row, n);
    if (code == AGENT_RESUMABLE) return code;
    others = (host_others("", &all) - others) / (base_seconds() - passed);
    if (print(row, n)) return cli_fail();
    if (fit && others > FEW * all)
        printf("other processes used %.1f of %d cores meanwhile: the rows may be faster without "
               "them\n", others, all);
    return code || fit ? code : 1;
}

/* ---- the command ---- */

/* A worker of a row, until the agent has measured enough. */
static int work(struct row *r) {
    tri_graph *g = network(&r->a, false);
    if (!g) return cli_fail();
    r->a.options.steps = ENDLESS;
    r->a.options.quiet = true;
    return (int)train_loop(g, &r->a.options, NULL, r->a.model);
}

static int int_of(int64_t n) { return n < INT_MAX ? (int)n : INT_MAX; }

/* Its workers, as the command line or else the plan says. */
static tri_status settle(struct row *r) {
    const bool one = r->own.ops || r->own.nodes || r->own.largest;
    r->launch = (struct launch){.workers = int_of(r->own.workers),
                                .threads = int_of(r->own.threads)};
    if (one && (r->own.workers || r->picked.all > 1))
        return base_fail(TRI_USAGE, "--ops, --nodes and --largest measure one process, and take no "
                         "-n and no several values of an option");
    tri_status status = cli_check_launch(&r->launch, &r->a.options);
    if (one) r->launch.workers = 0;
    if (!status && !r->launch.workers && r->own.until_loss > 0)
        return base_fail(TRI_USAGE, "--until-loss is for several workers: add their numbers, "
                         "-n 1,2");
    if (status || !r->launch.workers) return status;
    launch_settle(&r->launch);
    const struct crew_size size = launch_size(&r->launch);
    return crew_check(&size);
}

/* Reads combination number k. A mistake in its words is a failure; else it may be refused. */
static tri_status read_row(const struct command *c, int argc, int k, struct row *r) {
    const struct option_set sets[] = {{options_rows, NULL}, {c->rows, NULL}, {0}};
    r->picked = (struct options_picked){.number = k};
    r->line = cli_copy_words(argc, cli_words + 1);
    tri_status status = r->line ? options_pick(sets, c->use, r->line, &r->picked) : base_last();
    if (!status) status = cli_read(c, argc, r->line, &r->own, &r->a);
    const tri_status refused = status || r->a.program ? TRI_OK : settle(r);
    if (refused) refuse(r, refused);
    return status;
}

static int start(struct row *row, int n) {
    const char *place = cli_is_worker() ? getenv(PLACE) : NULL;
    if (row->picked.all > MOST)
        return base_fail(TRI_USAGE, "bench: %d combinations of options; there can be at most %d",
                         row->picked.all, MOST), cli_fail();
    if (place && (unsigned)atoi(place) < (unsigned)n) return work(&row[atoi(place)]);
    if (row->a.program) return visit_start(&row->a);
    if (n > 1 || row->launch.workers || row->status) return table(row, n);
    return row->own.largest ? largest(&row->a) : one_process(row);
}

static int run(const struct command *c, int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "links")) return cli_bench_links(argc, argv);
    if (argc > 1 && !strcmp(argv[1], "allreduce")) return cli_bench_allreduce(argc, argv);
    struct row *row = calloc(MOST, sizeof *row); /* of cli_words */
    int n = 0, wrong = 0;
    if (!row) return base_no_memory("rows"), cli_fail();
    for (; !wrong && n < MOST && n < (n ? row->picked.all : 1); n++)
        wrong = (int)read_row(c, argc, n, &row[n]);
    int code = wrong ? cli_fail() : start(row, n);
    for (int k = 0; k < n; k++) {
        text_free(&row[k].picked.words);
        arena_free(&row[k].picked.arena);
        free(row[k].line);
    }
    free(row);
    return code;
}

static void more(struct text *out) {
    options_paragraph("After a few warm-up steps, bench measures --steps steps, or else as many as "
                      "take five seconds, at least ten. It prints a line: steps and samples per "
                      "second, percentiles of a step's milliseconds, memory, arithmetic per second "
                      "and its share of what the machine can do (`man trireme` explains all).",
                      out);
    options_paragraph("An option that is given several times, or numbers with commas, --lanes 4,8, "
                      "make a table with a row for each combination, as do -n and a --plan of "
                      "workers: its memory, samples per second, and speed over the first row that "
                      "uses as many cores, workers times threads, at most all there are. A row "
                      "that is refused says why; others run three times by turns.", out);
    options_paragraph("`bench links --hosts h0,h1 [--save FILE]` measures the network between "
                      "hosts instead, each pair in both directions as a run would use it: the time "
                      "of a round trip, bandwidth, and processor time of both ends. It prints a "
                      "table, and keeps it in FILE (default: links in the user's cache folder). "
                      "--launch, --port, --interface and --wire-open are those of `trireme "
                      "train`.", out);
    options_paragraph("`bench allreduce --hosts h0,h1 [--path WAY] [--sizes 1K,64K,1M,4M,64M] "
                      "[--save FILE]` sums numbers of f32 over hosts as a run sums gradients, and "
                      "fails if a bit of a sum is wrong. It measures the links, and prints for "
                      "each size and path the time of a sum (the median), MB on the busiest "
                      "host's link in one direction, their share of what the slowest link carries, "
                      "and processor time per GB. `auto` stands beside the path that --path auto "
                      "takes; WAY is one of the paths of `trireme train`, or auto (default: all). "
                      "FILE gets a line for each. Without --hosts, threads of this process sum "
                      "their slots, as workers do.", out);
    cli_describe_model(out);
}

static const char *workers(void *at, const char *value) { /* int64_t */
    return option_count(at, value) ? "a whole number of at least 1, or several: 1,2,4" : NULL;
}

#define FIELD(name) offsetof(struct own, name)

static const struct option_row rows[] = {
    {"--ops", NULL, "also print the time per operator, the longest first", option_given,
     FIELD(ops), USE_ALL, .group = GROUP_NONE},
    {"--nodes", NULL, "also print the 30 nodes that take longest, with their shapes", option_given,
     FIELD(nodes), USE_ALL, .group = GROUP_NONE},
    {"--largest", NULL, "measure nothing; print the largest batch that fits in memory by the plan",
     option_given, FIELD(largest), USE_ALL, .group = GROUP_NONE},
    {"--until-loss", "X", "with -n: also print the time until the loss is at most X",
     option_positive, FIELD(until_loss), USE_ALL, .group = GROUP_NONE},
    {"-n", "N",
     "workers of each row of a table: 1,2,4 (default: this process alone, or as --plan says)",
     workers, FIELD(workers), USE_ALL | SHOWN, .group = GROUP_WORKERS},
    {"--threads-per-worker", "T",
     "with -n: threads of each worker (default: the number of cores divided by that of workers)",
     option_count, FIELD(threads), USE_ALL, .group = GROUP_WORKERS},
    {0},
};

const struct command command_bench = {
    .name = "bench",
    .arguments = "MODEL [options]",
    .help = "measure training: steps and samples per second, arithmetic, memory",
    .takes_model = true,
    .takes_program = true,
    .use = USE_BENCH,
    .rows = rows,
    .more = more,
    .run = run,
};
