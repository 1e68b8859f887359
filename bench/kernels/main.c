/* SPDX-License-Identifier: Apache-2.0
 * Measures single products and convolutions of ours and of other libraries in alternation, for
 * bench/kernels.py, which makes tables. A line per library that it found or not, and one of the
 * rates in registers, then a line per task: "row name=... trireme=SECONDS,SECONDS,... openblas=...
 * registers=FLOPS,... counts=1,0,...", a figure for each round; both_fma and both_tiles, what two
 * threads reach over one, have one more: before the first round, then after each. A round that does
 * not count is repeated, some times. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/convert.h"
#include "kernels.h"

#define TRIES 3          /* of each way */
#define MOST_RUNS 1000   /* of a measurement */
#define PAUSE_US 50000   /* threads of a library spin for some time after its call */
#define STEADY 1.8          /* what two threads must reach over one for a round to count */
#define ATTEMPTS 3          /* times the rounds asked for */
#define SIDES 5

static const struct library *const libraries[] = {&ours, &openblas, &blis, &onednn, &torch};

static struct {
    int threads, rounds;
    double seconds; /* of a measurement */
    const char *rows;
    bool errors, half;
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

static int most_rounds(void) { return ATTEMPTS * options.rounds; }

/* For a figure of each round, and one more. */
static double *take_rounds(void) { return take((size_t)(most_rounds() + 1) * sizeof(double)); }

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *x, int n) {
    qsort(x, (size_t)n, sizeof *x, compare);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* ---- one measurement ---- */

static double timed(const struct side *s) {
    if (s->library->measure) return s->library->measure(s->job, 1);
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
    if (s->library->measure) return s->library->measure(s->job, n);
    timed(s);
    for (int i = 0; i < n; i++) times[i] = timed(s);
    return median(times, n);
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
        timed(&now);
        if (e->n && !s->job && s->library->read) errors_of(&now, e, out);
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

/* The smallest cache that holds so many bytes. */
static const char *held_by(int64_t bytes) {
    return bytes <= sysconf(_SC_LEVEL1_DCACHE_SIZE)  ? "L1"
           : bytes <= sysconf(_SC_LEVEL2_CACHE_SIZE) ? "L2"
           : bytes <= sysconf(_SC_LEVEL3_CACHE_SIZE) ? "L3"
                                                     : "memory";
}

static void print_series(const char *name, const double *x, int n) {
    printf(" %s=", name);
    for (int i = 0; i < n; i++) printf("%s%.5g", i ? "," : "", x[i]);
}

/* Of a task. both: what two threads reach over one, before the first round and after each. */
struct rounds {
    int n;
    double *registers, *counts, *both[INSTRUCTIONS];
};

/* Whether the processors were two. */
static bool calibrate(struct rounds *r) {
    bool steady = true;
    for (enum instruction i = 0; i < INSTRUCTIONS; i++) {
        if (i == PAIRS || !rates_have(i)) continue;
        const double both = r->both[i][r->n] = rates_both(i);
        steady = steady && !(both > 0 && both < STEADY);
    }
    return steady;
}

/* The steady ones count, of which there should be as many as were asked for. */
static void measure_rounds(struct rounds *r, struct side *side, int n, bool half) {
    int counted = 0;
    for (bool before = calibrate(r); counted < options.rounds && r->n < most_rounds();) {
        r->registers[r->n] = rates_registers(rates_chosen(half));
        for (int i = 0; i < n; i++) side[i].round[r->n] = measured(&side[i]);
        r->n++;
        const bool after = calibrate(r);
        counted += before && after;
        r->counts[r->n - 1] = before && after;
        before = after;
    }
}

static void print_row(const struct task *t, const struct side *side, int n,
                      const struct rounds *r, bool errors) {
    const struct conv *v = &t->conv;
    const int64_t elements = tri_shape_count(&t->in[0]) + tri_shape_count(&t->in[1]) +
                             tri_shape_count(&t->out);
    printf("row name=%s section=%s direction=%s flops=%.6g done=%.6g winograd=%d from=%s", t->name,
           t->convolves ? "convolution" : t->product.gelu ? "gelu" : "product",
           directions[t->direction], t->flops, ours_flops(side->job), ours_winograd(side->job),
           held_by(elements * (t->half ? 2 : 4)));
    if (t->convolves)
        printf(" whole=%d", v->groups == 1 && v->c % 16 == 0 && v->o % 16 == 0);
    else
        printf(" m=%lld n=%lld k=%lld batch=%lld", (long long)t->product.m,
               (long long)t->product.n, (long long)t->product.k, (long long)t->product.batch);
    for (int i = 0; i < n; i++) {
        print_series(side[i].name, side[i].round, r->n);
        if (errors && side[i].library->read)
            printf(" %s_rms=%.4g %s_worst=%.4g", side[i].name, side[i].rms, side[i].name,
                   side[i].worst);
    }
    print_series("registers", r->registers, r->n);
    print_series("counts", r->counts, r->n);
    for (int i = 0; i < INSTRUCTIONS; i++) {
        char name[16];
        snprintf(name, sizeof name, "both_%s", instruction_names[i]);
        if (r->both[i][0] > 0) print_series(name, r->both[i], r->n + 1);
    }
    printf("\n");
    fflush(stdout);
}

/* The library at `s` if it can do the task; else nothing is added. */
static int add_side(struct side *side, int n, const char *name, const struct library *l,
                    const struct task *t, float *const in[2], const struct exact *e, float *out) {
    side[n] = (struct side){.name = name, .library = l};
    if (!begin_side(&side[n], t, in, e, out)) return n;
    side[n].round = take_rounds();
    return n + 1;
}

static void fill(float *x, int64_t n) {
    static uint64_t seed = 1;
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)(int32_t)(seed >> 32) * 0x1p-31f;
        if (options.half) x[i] = convert_bf16_to_f32(convert_f32_to_bf16(x[i]));
    }
}

static bool run_task(const struct task *t, const bool *usable) {
    struct side side[SIDES] = {0};
    struct exact e = {0};
    float *in[2], *out = take((size_t)tri_shape_count(&t->out) * sizeof *out);
    struct rounds r = {.registers = take_rounds(), .counts = take_rounds()};
    struct task alone = *t;
    const bool errors = options.errors && !t->product.gelu;
    int n = 0;
    for (int i = 0; i < 2; i++) {
        const int64_t count = tri_shape_count(&t->in[i]);
        fill(in[i] = take((size_t)count * sizeof(float)), count);
    }
    for (int i = 0; i < INSTRUCTIONS; i++) r.both[i] = take_rounds();
    if (errors) exact_make(t, in, &e);
    for (int i = 0; i < SIDES; i++)
        if (usable[i]) n = add_side(side, n, libraries[i]->name, libraries[i], t, in, &e, out);
    alone.product.gelu = false;
    if (t->product.gelu) n = add_side(side, n, "alone", &ours, &alone, in, &e, out);
    const bool ok = n && side[0].library == &ours;
    if (ok) {
        measure_rounds(&r, side, n, t->half);
        print_row(t, side, n, &r, errors);
    }
    for (int i = 0; i < n; i++) {
        side[i].library->release(side[i].job);
        free(side[i].round);
    }
    exact_free(&e);
    for (int i = 0; i < INSTRUCTIONS; i++) free(r.both[i]);
    free(in[0]), free(in[1]), free(out), free(r.registers), free(r.counts);
    return ok;
}

static void print_registers(void) {
    printf("registers chosen=%s", instruction_names[rates_chosen(options.half)]);
    for (enum instruction i = 0; i < INSTRUCTIONS; i++)
        if (rates_have(i)) printf(" %s=%.4g", instruction_names[i], rates_registers(i));
    printf("\n");
    fflush(stdout);
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
                    "[--direct] [--errors] [--bf16] [--torch VERSION]\n");
    return 2;
}

static bool read_options(int argc, char **argv) {
    static const struct option known[] = {
        {"threads", required_argument, NULL, 't'}, {"rounds", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'}, {"rows", required_argument, NULL, 'n'},
        {"direct", no_argument, NULL, 'd'},        {"errors", no_argument, NULL, 'e'},
        {"bf16", no_argument, NULL, 'h'},          {"torch", required_argument, NULL, 'p'},
        {0}};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (c == 't') options.threads = atoi(optarg);
        if (c == 'r') options.rounds = atoi(optarg);
        if (c == 's') options.seconds = atof(optarg);
        if (c == 'n') options.rows = optarg;
        if (c == 'd') ours_allow_winograd(false);
        if (c == 'e') options.errors = true;
        if (c == 'h') options.half = true;
        if (c == 'p') torch_version = optarg;
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
    if (!usable[0]) return 1;
    print_registers();
    for (int i = 0; task_at(i, &t); i++) {
        if (!*t.name || !chosen(&t)) continue;
        t.half = options.half;
        if (!run_task(&t, usable)) return 1;
        rows++;
    }
    if (rows) return 0;
    fprintf(stderr, "kernels: no row contains %s\n", options.rows);
    return 2;
}
