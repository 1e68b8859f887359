/* SPDX-License-Identifier: Apache-2.0
 * trireme bench: how fast a network's steps are, data and update included. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "cli/cli.h"
#include "exec/profile.h"

#define WARM_STEPS 3
#define WARM_SECONDS 0.5
#define BENCH_SECONDS 5.0
#define BENCH_STEPS 10
#define ENDLESS 1000000000
#define NODES_SHOWN 30

struct own {
    bool ops, nodes; /* asked for */
};

struct timing {
    double *second; /* of each step */
    size_t n, capacity;
    double total;
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

static bool one_step(tri_run *run, struct timing *t) {
    double begin = base_seconds();
    if (!tri_step(run)) return false;
    double took = base_seconds() - begin;
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
    if (profile && run_fail(run, profile_begin(&run->machine))) return;
    while (steps ? t->n < steps : t->n < BENCH_STEPS || t->total < BENCH_SECONDS)
        if (!one_step(run, t)) break;
}

static void report(const tri_run *run, const char *model, struct timing *t) {
    struct rusage use = {0};
    getrusage(RUSAGE_SELF, &use);
    qsort(t->second, t->n, sizeof *t->second, compare);
    double rate = (double)t->n / t->total;
    printf("bench model=%s batch=%lld lanes=%lld device=%s steps=%zu steps_per_s=%.2f "
           "samples_per_s=%.1f median_ms=%.4f p10_ms=%.4f p90_ms=%.4f peak_rss_mib=%.1f\n", model,
           (long long)run_batch(run), (long long)run_lanes(run), run->dev->name, t->n, rate,
           rate * (double)run_batch(run), 1e3 * quantile(t, 0.5), 1e3 * quantile(t, 0.1),
           1e3 * quantile(t, 0.9), (double)use.ru_maxrss / 1024);
}

/* ---- where the time goes ---- */

static void print_row(const char *what, double calls, double seconds, const struct work *w,
                      const struct timing *t) {
    double steps = (double)t->n;
    printf("%7.6g %10.3f %6.1f", calls / steps, 1e3 * seconds / steps, 100 * seconds / t->total);
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

/* Of a step, on average. */
static tri_status print_profile(tri_run *run, bool by_unit, const struct timing *t) {
    struct profile p;
    tri_status status = profile_make(&run->machine, by_unit, &p);
    if (status) return status;
    printf("\n%7s %10s %6s %8s %7s  %s\n", "calls", "ms", "%", "GFLOP/s", "GB/s",
           by_unit ? "node" : "operator");
    double seconds = 0, rest = 0, calls = 0;
    for (size_t i = 0; i < p.n; i++) {
        const struct profile_row *r = &p.row[i];
        bool shown = !by_unit || i < NODES_SHOWN;
        if (shown) print_row(r->what, (double)r->calls, r->seconds, &r->work, t);
        seconds += r->seconds;
        rest += shown ? 0 : r->seconds;
        calls += shown ? 0 : (double)r->calls;
    }
    if (calls > 0) print_row("all others", calls, rest, NULL, t);
    print_row("outside of kernels: data, sums of lanes", 0, t->total - seconds, NULL, t);
    profile_free(&p);
    return TRI_OK;
}

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {0};
    struct cli_arguments a;
    if (cli_read(c, argc, argv, &own, &a)) return cli_fail();
    tri_graph *g = cli_graph(&a);
    if (!g) return cli_fail();
    if (cli_own_data(&a)) {
        tri_graph_free(g);
        return cli_fail();
    }
    size_t steps = (size_t)a.options.steps;
    a.options.steps = steps ? a.options.steps + WARM_STEPS : ENDLESS;
    tri_run *r = tri_open(g, &a.options);
    if (!r) return cli_fail();
    struct timing t = {0};
    measure(r, steps, own.ops || own.nodes, &t);
    if (!tri_run_status(r) && t.n) {
        report(r, a.model, &t);
        if (own.ops) run_fail(r, print_profile(r, false, &t));
        if (own.nodes) run_fail(r, print_profile(r, true, &t));
    }
    free(t.second);
    return (int)tri_close(r);
}

static void more(struct text *out) {
    text_add(out, "\nA few steps to warm up, then --steps of them, or as many as fit into %g "
                  "seconds, at least\n%d. The line on stdout has the median of a step's "
                  "milliseconds, and the times that a tenth\nand nine tenths of the steps stay "
                  "below.\n", BENCH_SECONDS, BENCH_STEPS);
    cli_describe_model(out);
}

static const struct option_row rows[] = {
    {"--ops", NULL, "the time of each operator, the longest first", option_given,
     offsetof(struct own, ops), USE_ALL},
    {"--nodes", NULL, "the 30 nodes that take longest, with their shapes", option_given,
     offsetof(struct own, nodes), USE_ALL},
    {0},
};

const struct command command_bench = {
    .name = "bench",
    .arguments = "MODEL [options]",
    .help = "measures training: steps and samples a second, memory",
    .takes_model = true,
    .use = USE_BENCH,
    .rows = rows,
    .more = more,
    .run = run,
};
