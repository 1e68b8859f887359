/* SPDX-License-Identifier: Apache-2.0
 * Measures single products and convolutions of ours and of other libraries in alternation, for
 * bench/kernels.py, which makes tables. A line per library that it found or not, then a line per
 * task: "row name=... trireme=SECONDS,SECONDS,... openblas=... registers=FLOPS,...", a figure for
 * each round. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels.h"

#define TRIES 3          /* of each way */
#define MOST_RUNS 1000   /* of a measurement */
#define PAUSE_US 50000   /* threads of a library spin for some time after its call */
#define REGISTER_RUNS 20 /* of ours_multiply */
#define SIDES 4

static const struct library *const libraries[] = {&ours, &openblas, &blis, &onednn};

static struct {
    int threads, rounds;
    double seconds; /* of a measurement */
    const char *rows;
    bool errors;
} options = {.threads = 1, .rounds = 5, .seconds = 0.05};

/* A library's job for the task at hand. */
struct side {
    const char *name;
    const struct library *library;
    void *job;
    double estimate; /* seconds of a run */
    double *round;
    double rms, worst;
};

void *take(size_t bytes) {
    void *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!memory) {
        fprintf(stderr, "kernels: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    memset(memory, 0, bytes);
    return memory;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n) {
    qsort(x, (size_t)n, sizeof *x, compare);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* ---- one measurement ---- */

static double timed(const struct side *s) {
    const double begin = base_seconds();
    s->library->run(s->job);
    return base_seconds() - begin;
}

/* The median of some runs, after one that does not count. */
static double measured(const struct side *s) {
    static double times[MOST_RUNS];
    int n = (int)(options.seconds / s->estimate);
    n = n < 1 ? 1 : n > MOST_RUNS ? MOST_RUNS : n;
    if (options.threads > 1) usleep(PAUSE_US);
    timed(s);
    for (int i = 0; i < n; i++) times[i] = timed(s);
    return median(times, n);
}

/* Operations per second in registers. */
static double registers(void) {
    double rates[REGISTER_RUNS];
    for (int i = 0; i < REGISTER_RUNS; i++) {
        const double begin = base_seconds(), operations = ours_multiply();
        rates[i] = operations / (base_seconds() - begin);
    }
    return median(rates, REGISTER_RUNS);
}

/* ---- a task ---- */

static void errors_of(struct side *s, const struct exact *e, float *out) {
    s->library->read(s->job, out);
    exact_errors(e, out, &s->rms, &s->worst);
}

/* Keeps the fastest way of the library; its errors are those of way 0. False: it has none. */
static bool begin_side(struct side *s, const struct task *t, float *const in[2],
                       const struct exact *e, float *out) {
    for (int way = 0; way < s->library->ways; way++) {
        struct side now = *s;
        now.job = s->library->prepare(t, way, in);
        if (!now.job) continue;
        now.library->run(now.job);
        if (e->n && !s->job) errors_of(&now, e, out);
        for (int i = 0; i < TRIES; i++) {
            const double took = timed(&now);
            if (!i || took < now.estimate) now.estimate = took;
        }
        const bool better = !s->job || now.estimate < s->estimate;
        void *other = better ? s->job : now.job;
        if (better) *s = now;
        if (other) s->library->release(other);
    }
    return s->job != NULL;
}

static void print_series(const char *name, const double *x) {
    printf(" %s=", name);
    for (int i = 0; i < options.rounds; i++) printf("%s%.5g", i ? "," : "", x[i]);
}

static void print_row(const struct task *t, const struct side *side, int n, const double *rates,
                      bool errors) {
    static const char *const directions[] = {"y", "dx", "dw"};
    const struct conv *v = &t->conv;
    printf("row name=%s section=%s direction=%s flops=%.6g done=%.6g winograd=%d", t->name,
           t->convolves ? "convolution" : t->product.gelu ? "gelu" : "product",
           directions[t->direction], t->flops, ours_flops(side->job), ours_winograd(side->job));
    if (t->convolves)
        printf(" whole=%d", v->groups == 1 && v->c % 16 == 0 && v->o % 16 == 0);
    else
        printf(" m=%lld n=%lld k=%lld batch=%lld", (long long)t->product.m,
               (long long)t->product.n, (long long)t->product.k, (long long)t->product.batch);
    for (int i = 0; i < n; i++) {
        print_series(side[i].name, side[i].round);
        if (errors)
            printf(" %s_rms=%.4g %s_worst=%.4g", side[i].name, side[i].rms, side[i].name,
                   side[i].worst);
    }
    print_series("registers", rates);
    printf("\n");
    fflush(stdout);
}

/* The library at `s` if it can do the task; else nothing is added. */
static int add_side(struct side *side, int n, const char *name, const struct library *l,
                    const struct task *t, float *const in[2], const struct exact *e, float *out) {
    side[n] = (struct side){.name = name, .library = l};
    if (!begin_side(&side[n], t, in, e, out)) return n;
    side[n].round = take((size_t)options.rounds * sizeof(double));
    return n + 1;
}

static void fill(float *x, int64_t n) {
    static uint64_t seed = 1;
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)(int32_t)(seed >> 32) * 0x1p-31f;
    }
}

static bool run_task(const struct task *t, const bool *usable) {
    struct side side[SIDES] = {0};
    struct exact e = {0};
    float *in[2], *out = take((size_t)tri_shape_count(&t->out) * sizeof *out);
    double *rates = take((size_t)options.rounds * sizeof *rates);
    struct task alone = *t;
    const bool errors = options.errors && !t->product.gelu;
    int n = 0;
    for (int i = 0; i < 2; i++) {
        const int64_t count = tri_shape_count(&t->in[i]);
        fill(in[i] = take((size_t)count * sizeof(float)), count);
    }
    if (errors) exact_make(t, in, &e);
    for (int i = 0; i < SIDES; i++)
        if (usable[i]) n = add_side(side, n, libraries[i]->name, libraries[i], t, in, &e, out);
    alone.product.gelu = false;
    if (t->product.gelu) n = add_side(side, n, "alone", &ours, &alone, in, &e, out);
    const bool ok = n && side[0].library == &ours;
    for (int r = 0; ok && r < options.rounds; r++) {
        rates[r] = registers();
        for (int i = 0; i < n; i++) side[i].round[r] = measured(&side[i]);
    }
    if (ok) print_row(t, side, n, rates, errors);
    for (int i = 0; i < n; i++) {
        side[i].library->release(side[i].job);
        free(side[i].round);
    }
    exact_free(&e);
    free(in[0]), free(in[1]), free(out), free(rates);
    return ok;
}

/* ---- the command line ---- */

/* Whether "SECTION NAME" contains one of the texts. */
static bool chosen(const struct task *t) {
    char all[512], name[128], *rest = all;
    if (!options.rows) return true;
    snprintf(all, sizeof all, "%s", options.rows);
    snprintf(name, sizeof name, "%s %s", t->convolves ? "convolution" : "product", t->name);
    for (char *text; (text = strsep(&rest, ",")) != NULL;)
        if (*text && strstr(name, text)) return true;
    return false;
}

static int usage(void) {
    fprintf(stderr, "usage: kernels [--threads T] [--rounds N] [--seconds S] [--rows TEXT,...] "
                    "[--direct] [--errors]\n");
    return 2;
}

static bool read_options(int argc, char **argv) {
    static const struct option known[] = {
        {"threads", required_argument, NULL, 't'}, {"rounds", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'}, {"rows", required_argument, NULL, 'n'},
        {"direct", no_argument, NULL, 'd'},        {"errors", no_argument, NULL, 'e'},
        {0}};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (c == 't') options.threads = atoi(optarg);
        if (c == 'r') options.rounds = atoi(optarg);
        if (c == 's') options.seconds = atof(optarg);
        if (c == 'n') options.rows = optarg;
        if (c == 'd') ours_allow_winograd(false);
        if (c == 'e') options.errors = true;
        if (c == '?') return false;
    }
    return optind == argc && options.threads > 0 && options.rounds > 0 && options.seconds > 0;
}

int main(int argc, char **argv) {
    bool usable[SIDES];
    struct task t;
    int rows = 0;
    if (!read_options(argc, argv)) return usage();
    for (int i = 0; i < SIDES; i++) {
        char about[256] = "";
        const char *why = libraries[i]->open(options.threads, about, sizeof about);
        usable[i] = !why;
        printf("%s %s: %s\n", why ? "without" : "with", libraries[i]->name, why ? why : about);
    }
    fflush(stdout);
    if (!usable[0]) return 1;
    for (int i = 0; task_at(i, &t); i++) {
        if (!*t.name || !chosen(&t)) continue;
        if (!run_task(&t, usable)) return 1;
        rows++;
    }
    if (rows) return 0;
    fprintf(stderr, "kernels: no row contains %s\n", options.rows);
    return 2;
}
