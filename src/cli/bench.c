/* SPDX-License-Identifier: Apache-2.0
 * trireme bench: how fast a network's steps are, data and update included; what of the machine they
 * use; where the time goes; the largest batch that there is memory for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/bench_workers.h"
#include "cli/cli.h"
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
    bool ops, nodes, largest; /* asked for */
    const char *workers;      /* "1,2,4"; null: this process */
    int64_t threads; /* of each; 0: cores divided by workers */
    double until_loss;
};

struct timing {
    double *second; /* of each step */
    size_t n, capacity;
    double total;
    double step[2]; /* the first and the second step of all */
    double start;   /* from the start of the process to the end of the first step */
};

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of sorted times. */
static double quantile(const struct timing *t, double q) {
    double at = q * (double)(t->n - 1);
    size_t low = (size_t)at, high = low + 1 < t->n ? low + 1 : low;
    double part = at - (double)low;
    return t->second[low] * (1 - part) + t->second[high] * part;
}

/* ---- what the system says of this process ---- */

/* Seconds that it lives, exact to a tick of the kernel's, 10 ms; 0: not known. */
static double age(void) {
    char line[1024] = "";
    FILE *f = fopen("/proc/self/stat", "r");
    if (f && !fgets(line, sizeof line, f)) *line = 0;
    if (f) fclose(f);
    char *at = strrchr(line, ')'); /* the name may hold anything; the state behind it is field 3 */
    for (int field = 3; at && field <= 22; field++) at = strchr(at + 1, ' ');
    struct timespec now;
    if (!at || clock_gettime(CLOCK_BOOTTIME, &now)) return 0;
    double begin = (double)strtoull(at, NULL, 10) / (double)sysconf(_SC_CLK_TCK);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - begin;
}

/* Not getrusage: its maximum is also that of the process that started this one. */
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

/* Seconds that the arithmetic of a step takes at the rate of large products, in its types; and that
 * rate for them, together. */
static tri_status ideal(const tri_run *run, const struct work *w, double *seconds, double *rate) {
    double part[] = {w->flops - w->narrow, w->narrow}, flops;
    tri_status status = TRI_OK;
    *seconds = 0;
    for (int i = 0; i < 2 && !status; i++) {
        if (!(part[i] > 0)) continue;
        status = rate_matmul(run->dev, i ? TRI_BF16 : TRI_F32, run_threads(run), &flops);
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
           "matmul_gflops=%.1f matmul_share=%.3f gbytes_per_s=%.2f\n", model,
           (long long)run_batch(run), (long long)run_lanes(run), run_threads(run), run->dev->name,
           t->n, steps, steps * (double)run_batch(run), 1e3 * median, 1e3 * quantile(t, 0.1),
           1e3 * quantile(t, 0.9), 1e3 * t->step[0], 1e3 * t->step[1], 1e3 * t->start, peak,
           (double)budget_of(run->machine, &run->store).total / MIB, w.flops / median * 1e-9,
           rate * 1e-9, seconds / median, w.bytes / median * 1e-9);
    return TRI_OK;
}

/* ---- where the time goes ---- */

/* Of a step, on average. Shares are of the time of all threads. */
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

/* Plans a batch; *fits: there is as much memory as it needs, *bytes. */
static tri_status try_batch(const struct cli_arguments *a, int64_t batch, bool *fits,
                            size_t *bytes) {
    struct cli_arguments now = *a;
    now.options.batch = batch;
    tri_graph *g = cli_graph(&now);
    tri_run *run = g ? run_plan(g, &now.options, NULL) : NULL;
    if (!run) return base_last();
    *bytes = budget_of(run->machine, &run->store).total;
    *fits = !budget_check(run->machine, &run->store, now.options.memory_limit);
    run_free(run);
    return TRI_OK;
}

/* By doubling, then by halving the distance. */
static tri_status largest(const struct cli_arguments *a) {
    int64_t least = a->options.lanes > 1 ? a->options.lanes : 1;
    int64_t low = least - 1, high = a->options.batch > least ? a->options.batch : least;
    size_t bytes, needed = 0;
    bool fits = false;
    tri_status status = try_batch(a, high, &fits, &bytes);
    for (; !status && fits && high < LARGEST_BATCH; status = try_batch(a, high, &fits, &bytes)) {
        low = high;
        needed = bytes;
        high *= 2;
    }
    bool bounded = !fits;
    if (!status && fits) low = high, needed = bytes;
    while (!status && bounded && high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        status = try_batch(a, middle, &fits, &bytes);
        *(fits ? &low : &high) = middle;
        if (fits) needed = bytes;
    }
    if (status) return status;
    if (low < least) return base_last(); /* what budget_check said of the smallest batch */
    const char *whose;
    size_t limit = budget_limit(a->options.memory_limit, 0, &whose);
    printf("largest model=%s batch=%s%lld needs_mib=%.0f limit_mib=%.0f\n", a->model,
           bounded ? "" : ">=", (long long)low, (double)needed / MIB, (double)limit / MIB);
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

/* What is of no use with several workers, or without. */
static tri_status check_workers(const struct own *own) {
    if (own->workers && (own->ops || own->nodes || own->largest))
        return base_fail(TRI_USAGE, "--ops, --nodes and --largest are of one process: without -n");
    if (!own->workers && (own->threads || own->until_loss > 0))
        return base_fail(TRI_USAGE, "--threads-per-worker and --until-loss are for several workers: give "
                         "their numbers with -n 1,2");
    return TRI_OK;
}

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {0};
    struct cli_arguments a;
    char **all = calloc((size_t)argc + 1, sizeof *all);
    if (!all) {
        base_no_memory("a command line");
        return cli_fail();
    }
    memcpy(all, argv, (size_t)argc * sizeof *all); /* reading takes options out */
    int words = argc, code = cli_read(c, argc, argv, &own, &a) ? cli_fail() : 0;
    bool workers = !code && own.workers;
    if (!code) code = check_workers(&own) ? cli_fail() : 0;
    if (!code && workers)
        code = bench_workers(&(struct bench_workers){
            .list = own.workers, .argc = words, .argv = all, .steps = a.options.steps,
            .threads = (int)(own.threads ? own.threads : a.options.threads), .until_loss = own.until_loss});
    free(all);
    if (code || workers) return code;
    if (own.largest) return largest(&a) ? cli_fail() : TRI_OK;
    return bench(&a, &own);
}

static void more(struct text *out) {
    text_add(out, "\nA few steps to warm up, then --steps of them, or as many as fit into %g "
                  "seconds, at least\n%d. The line on stdout has the median of a step's "
                  "milliseconds, and the times that a tenth\nand nine tenths of the steps stay "
                  "below; the first two steps, and the time from the start of\nthe process to the "
                  "end of the first; the most memory that the process had, and that of its\nplan; "
                  "arithmetic a second (of products, convolutions, norms and the like), the rate "
                  "of a large\nproduct of matrices measured here with as many threads, and the "
                  "share of the step that the\narithmetic would take at that rate; and what the "
                  "kernels read and write a second.\n", BENCH_SECONDS, BENCH_STEPS);
    cli_describe_model(out);
    text_add(out, "\n`trireme bench allreduce` measures sums over processes; its own --help tells "
                  "more.\n");
}

static const struct option_row rows[] = {
    {"--ops", NULL, "the time of each operator, the longest first", option_given,
     offsetof(struct own, ops), USE_ALL},
    {"--nodes", NULL, "the 30 nodes that take longest, with their shapes", option_given,
     offsetof(struct own, nodes), USE_ALL},
    {"-n", "LIST", "by so many workers in turn, 1,2,4: their rates, speed-up and\nefficiency", option_text,
     offsetof(struct own, workers), USE_ALL},
    {"--threads-per-worker", "T", "with -n: threads of each (cores divided by workers)", option_count,
     offsetof(struct own, threads), USE_ALL},
    {"--until-loss", "X", "with -n: also how long it takes until the loss is X",
     option_positive,
     offsetof(struct own, until_loss), USE_ALL},
    {"--largest", NULL, "measures nothing: the largest batch that there is memory\nfor, from the "
     "plan", option_given, offsetof(struct own, largest), USE_ALL},
    {0},
};

const struct command command_bench = {
    .name = "bench",
    .arguments = "MODEL [options]",
    .help = "measures training: steps and samples a second, arithmetic, memory",
    .takes_model = true,
    .use = USE_BENCH,
    .rows = rows,
    .instead = &command_bench_allreduce,
    .more = more,
    .run = run,
};
