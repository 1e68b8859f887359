/* SPDX-License-Identifier: Apache-2.0
 * trireme bench: how fast a network's steps are, data and update included. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "cli/cli.h"
#include "exec/run.h"

#define WARM_STEPS 3
#define WARM_SECONDS 0.5
#define BENCH_SECONDS 5.0
#define BENCH_STEPS 10
#define ENDLESS 1000000000

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
static void measure(tri_run *run, size_t steps, struct timing *t) {
    while ((t->n < WARM_STEPS || (!steps && t->total < WARM_SECONDS)) && one_step(run, t)) continue;
    t->n = 0;
    t->total = 0;
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

static int run(const struct command *c, int argc, char **argv) {
    struct cli_arguments a;
    if (cli_read(c, argc, argv, NULL, &a)) return cli_fail();
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
    measure(r, steps, &t);
    if (!tri_run_status(r) && t.n) report(r, a.model, &t);
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

const struct command command_bench = {
    .name = "bench",
    .arguments = "MODEL [options]",
    .help = "measures training: steps and samples a second, memory",
    .takes_model = true,
    .use = USE_BENCH,
    .more = more,
    .run = run,
};
