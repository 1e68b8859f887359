/* SPDX-License-Identifier: Apache-2.0
 * trireme bench: the speed of training steps, data and update included; how much of the machine's
 * rate they reach; the time per operator; the largest batch that fits in memory. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/bench_workers.h"
#include "cli/cli.h"
#include "cli/visit.h"
#include "loop/train_loop.h"
#include "machine/budget.h"
#include "run/profile.h"
#include "machine/rate.h"
#include "run/open.h"

#define WARM_STEPS 3
#define WARM_SECONDS 0.5
#define BENCH_SECONDS 5.0
#define BENCH_STEPS 10
#define ENDLESS 1000000000
#define NODES_SHOWN 30
#define LARGEST_BATCH (INT64_C(1) << 20)
#define MIB 1048576.0

struct own {
    bool ops, nodes, largest; /* the options of these names */
    const char *workers;      /* "1,2,4"; null: this process */
    int64_t threads;          /* of each worker; 0: cores divided by workers */
    double until_loss;
};

struct timing {
    double *second; /* of each step */
    size_t n, capacity;
    double total;
    double step[2]; /* the first two steps, which do not count otherwise */
    double start;   /* from the start of the process to the end of the first step */
};

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The times are sorted. */
static double quantile(const struct timing *t, double q) {
    double at = q * (double)(t->n - 1);
    size_t low = (size_t)at, high = low + 1 < t->n ? low + 1 : low;
    double part = at - (double)low;
    return t->second[low] * (1 - part) + t->second[high] * part;
}

/* ---- this process, as the kernel sees it ---- */

/* Seconds since its start, exact to a tick of the kernel, 10 ms; 0: unknown. */
static double age(void) {
    char line[1024] = "";
    FILE *f = fopen("/proc/self/stat", "r");
    if (f && !fgets(line, sizeof line, f)) *line = 0;
    if (f) fclose(f);
    char *at = strrchr(line, ')'); /* ends the name, field 2, which may contain blanks */
    for (int field = 3; at && field <= 22; field++) at = strchr(at + 1, ' ');
    struct timespec now;
    if (!at || clock_gettime(CLOCK_BOOTTIME, &now)) return 0;
    double begin = (double)strtoull(at, NULL, 10) / (double)sysconf(_SC_CLK_TCK);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - begin;
}

/* getrusage would include the maximum of the process that started this one. */
static double peak_mib(void) {
    char line[256];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && !kib && fgets(line, sizeof line, f))
        if (!strncmp(line, "VmHWM:", 6)) kib = strtoull(line + 6, NULL, 10);
    if (f) fclose(f);
    return (double)kib / 1024;
}

/* ---- measuring ---- */

static bool one_step(tri_run *run, struct timing *t) {
    double begin = base_seconds();
    if (!tri_step(run)) return false;
    double took = base_seconds() - begin;
    int64_t done = tri_step_number(run);
    if (done == 1) t->start = age();
    if (done <= 2) t->step[done - 1] = took;
    if (!ARRAY_GROW(t->second, t->n, t->capacity)) {
        run_fail(run, base_no_memory("the times of steps"));
        return false;
    }
    t->second[t->n++] = took;
    t->total += took;
    return true;
}

/* The first steps touch memory for the first time and do not count. */
static void measure(tri_run *run, size_t steps, bool profile, struct timing *t) {
    while ((t->n < WARM_STEPS || (!steps && t->total < WARM_SECONDS)) && one_step(run, t)) continue;
    t->n = 0;
    t->total = 0;
    if (profile && run_fail(run, profile_begin(run->machine))) return;
    while (steps ? t->n < steps : t->n < BENCH_STEPS || t->total < BENCH_SECONDS)
        if (!one_step(run, t)) break;
}

/* How long the arithmetic of a step would take at the highest rate of its types, and that rate. */
static tri_status ideal(const tri_run *run, const struct work *w, double *seconds, double *rate) {
    double part[] = {w->flops - w->narrow, w->narrow}, flops;
    tri_status status = TRI_OK;
    *seconds = 0;
    for (int i = 0; i < 2 && !status; i++) {
        if (!(part[i] > 0)) continue;
        status = rate_highest(run->dev, i ? TRI_BF16 : TRI_F32, run_threads(run), &flops);
        if (!status) *seconds += part[i] / flops;
    }
    *rate = *seconds > 0 ? w->flops / *seconds : 0;
    return status;
}

static tri_status report(tri_run *run, const char *model, struct timing *t) {
    double peak = peak_mib(), seconds, rate, steps = (double)t->n / t->total;
    struct work w = profile_step(run->machine);
    tri_status status = ideal(run, &w, &seconds, &rate);
    if (status) return status;
    qsort(t->second, t->n, sizeof *t->second, compare);
    double median = quantile(t, 0.5);
    printf("bench model=%s batch=%lld lanes=%lld threads=%d device=%s steps=%zu steps_per_s=%.2f "
           "samples_per_s=%.1f median_ms=%.4f p10_ms=%.4f p90_ms=%.4f first_step_ms=%.1f "
           "second_step_ms=%.1f start_ms=%.0f peak_rss_mib=%.1f plan_mib=%.1f gflops=%.2f "
           "fma_gflops=%.1f fma_share=%.3f gbytes_per_s=%.2f\n", model,
           (long long)run_batch(run), (long long)run_lanes(run), run_threads(run),
           run->dev->kind->name, t->n, steps, steps * (double)run_batch(run), 1e3 * median,
           1e3 * quantile(t, 0.1), 1e3 * quantile(t, 0.9), 1e3 * t->step[0], 1e3 * t->step[1],
           1e3 * t->start, peak,
           (double)budget_of(run->machine, &run->store).total / MIB, w.flops / median * 1e-9,
           rate * 1e-9, seconds / median, w.bytes / median * 1e-9);
    return TRI_OK;
}

/* ---- where the time goes ---- */

/* For means per step, and for shares of the time of all threads. */
struct shares {
    double steps, total;
};

static void print_row(const struct shares *s, const char *what, double calls, double seconds,
                      const struct work *w) {
    printf("%7.6g %10.3f %6.1f", calls / s->steps, 1e3 * seconds / s->steps,
           100 * seconds / s->total);
    if (w && w->flops > 0)
        printf(" %8.1f", w->flops / seconds * 1e-9);
    else
        printf(" %8s", "");
    if (w && w->bytes > 0)
        printf(" %7.1f", w->bytes / seconds * 1e-9);
    else
        printf(" %7s", "");
    printf("  %s\n", what);
}

static tri_status print_profile(tri_run *run, bool by_unit, const struct timing *t) {
    struct profile p;
    double seconds = 0, rest = 0, calls = 0, data;
    tri_status status = profile_data(run, &data);
    if (!status) status = profile_make(run->machine, by_unit, &p);
    if (status) return status;
    struct shares s = {(double)t->n, t->total * run_threads(run)};
    printf("\n%7s %10s %6s %8s %7s  %s\n", "calls", "ms", "%", "GFLOP/s", "GB/s",
           by_unit ? "node" : "operator");
    for (size_t i = 0; i < p.n; i++) {
        const struct profile_row *r = &p.row[i];
        bool shown = !by_unit || i < NODES_SHOWN;
        if (shown) print_row(&s, r->what, (double)r->calls, r->seconds, &r->work);
        seconds += r->seconds;
        rest += shown ? 0 : r->seconds;
        calls += shown ? 0 : (double)r->calls;
    }
    if (calls > 0) print_row(&s, "all others", calls, rest, NULL);
    data *= s.steps;
    print_row(&s, "(data)", 0, data, NULL);
    print_row(&s, run_threads(run) > 1 ? "(between kernels, waiting)" : "(between kernels)", 0,
              s.total - seconds - data, NULL);
    profile_free(&p);
    return TRI_OK;
}

/* ---- the largest batch ---- */

static tri_status try_batch(const struct cli_arguments *a, int64_t batch, struct verdict *v) {
    struct cli_arguments now = *a;
    now.options.batch = batch;
    tri_graph *g = cli_graph(&now);
    tri_run *run = g ? run_plan(g, &now.options, NULL) : NULL;
    if (!run) return base_last();
    *v = budget_verdict(run->machine, &run->store, now.options.memory_limit);
    run_free(run);
    return TRI_OK;
}

static tri_status does_not_fit(const struct verdict *v) {
    struct text t = {0};
    budget_tell(v, &t);
    tri_status status = base_fail(TRI_USAGE, "%s", t.data ? t.data : "");
    text_free(&t);
    return status;
}

/* Doubles the batch until it does not fit, then bisects. */
static tri_status largest(const struct cli_arguments *a) {
    int64_t least = a->options.lanes > 1 ? a->options.lanes : 1;
    int64_t low = least - 1, high = a->options.batch > least ? a->options.batch : least;
    struct verdict v, best = {0};
    tri_status status = try_batch(a, high, &v);
    while (!status && v.fits && high < LARGEST_BATCH) {
        low = high;
        best = v;
        status = try_batch(a, high *= 2, &v);
    }
    bool bounded = !v.fits;
    if (!status && v.fits) low = high, best = v;
    while (!status && bounded && high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        status = try_batch(a, middle, &v);
        *(v.fits ? &low : &high) = middle;
        if (v.fits) best = v;
    }
    if (status) return status;
    if (low < least) return does_not_fit(&v);
    printf("largest model=%s batch=%s%lld needs_mib=%.0f limit_mib=%.0f\n", a->model,
           bounded ? "" : ">=", (long long)low, (double)best.needs / MIB, (double)best.limit / MIB);
    return TRI_OK;
}

/* ---- the command ---- */

static int bench(struct cli_arguments *a, const struct own *own) {
    tri_graph *g = cli_graph(a);
    if (!g) return cli_fail();
    if (cli_own_data(a)) {
        tri_graph_free(g);
        return cli_fail();
    }
    if (!a->options.data && !a->options.source) a->options.data = "synthetic";
    size_t steps = (size_t)a->options.steps;
    a->options.steps = steps ? a->options.steps + WARM_STEPS : ENDLESS;
    tri_run *r = tri_open(g, &a->options);
    if (!r) return cli_fail();
    struct timing t = {0};
    measure(r, steps, own->ops || own->nodes, &t);
    if (!tri_run_status(r) && t.n) {
        run_fail(r, report(r, a->model, &t));
        if (own->ops) run_fail(r, print_profile(r, false, &t));
        if (own->nodes) run_fail(r, print_profile(r, true, &t));
    }
    free(t.second);
    return (int)tri_close(r);
}

/* A program as one of the workers, until the agent has measured enough. */
static int work(struct cli_arguments *a) {
    tri_graph *g = cli_graph(a);
    if (!g) return cli_fail();
    a->options.steps = ENDLESS;
    return (int)train_loop(g, &a->options, NULL, a->model);
}

/* Options that only one process, or only several workers use. */
static tri_status check_workers(const struct own *own) {
    if (own->workers && (own->ops || own->nodes || own->largest))
        return base_fail(TRI_USAGE, "--ops, --nodes and --largest measure one process: omit -n");
    if (!own->workers && (own->threads || own->until_loss > 0))
        return base_fail(TRI_USAGE, "--threads-per-worker and --until-loss are for several "
                         "workers: add their numbers, -n 1,2");
    return TRI_OK;
}

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {0};
    struct cli_arguments a;
    char **words = cli_command_line(argc, argv);
    if (!words) return cli_fail();
    int n = argc, code = cli_read(c, argc, argv, &own, &a) ? cli_fail() : 0;
    bool workers = !code && own.workers;
    const int64_t threads = own.threads ? own.threads : a.options.threads;
    if (!code) code = check_workers(&own) ? cli_fail() : 0;
    if (!code && workers && visit_opened)
        code = work(&a);
    else if (!code && workers)
        code = bench_workers(&(struct bench_workers){
            .list = own.workers, .argc = n, .argv = words + 1, .rows = c->rows,
            .program = a.program, .steps = a.options.steps,
            .threads = threads < INT_MAX ? (int)threads : INT_MAX,
            .until_loss = own.until_loss});
    free(words);
    if (code || workers) return code;
    if (a.program) return visit_start(a.program);
    if (own.largest) return largest(&a) ? cli_fail() : TRI_OK;
    return bench(&a, &own);
}

static void more(struct text *out) {
    options_paragraph("After a few warm-up steps, bench measures --steps steps, or else as many as "
                      "take five seconds, at least ten. The line on stdout has steps and samples "
                      "per second; the median, 10th and 90th percentile of a step's milliseconds; "
                      "the first two steps; the time from the start of the process to the end of "
                      "the first step; peak and planned memory; arithmetic per second (of "
                      "products, convolutions, norms and the like); the rate of fused "
                      "multiply-adds in registers with as many threads, and the share of a step "
                      "that its arithmetic would take at that rate; and what kernels read and "
                      "write per second.", out);
    cli_describe_model(out);
}

static const struct option_row rows[] = {
    {"--ops", NULL, "also print the time per operator, the longest first", option_given,
     offsetof(struct own, ops), USE_ALL, .group = GROUP_NONE},
    {"--nodes", NULL, "also print the 30 nodes that take longest, with their shapes", option_given,
     offsetof(struct own, nodes), USE_ALL, .group = GROUP_NONE},
    {"--largest", NULL, "measure nothing; print the largest batch that fits in memory by the plan",
     option_given, offsetof(struct own, largest), USE_ALL, .group = GROUP_NONE},
    {"--until-loss", "X", "with -n: also print the time until the loss is at most X",
     option_positive, offsetof(struct own, until_loss), USE_ALL, .group = GROUP_NONE},
    {"-n", "LIST", "measure with each of these numbers of workers: 1,2,4", option_text,
     offsetof(struct own, workers), USE_ALL, .group = GROUP_WORKERS},
    {"--threads-per-worker", "T",
     "with -n: threads of each worker (default: the number of cores divided by that of workers)",
     option_count, offsetof(struct own, threads), USE_ALL, .group = GROUP_WORKERS},
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
