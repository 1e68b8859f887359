/* SPDX-License-Identifier: Apache-2.0
 * trireme data: the contents of a data set, its bad samples, the speed of reading it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/host.h"
#include "cli/cli.h"
#include "data/data.h"

#define LISTED 20 /* classes */
#define MOST_THREADS 256
#define BENCH_SECONDS 3.0 /* without --seconds */

struct own {
    bool check, bench;
    const char *tokenizer;
    double seconds;
    int64_t threads;
};

/* ---- contents ---- */

static void describe_fields(const tri_data *d, struct text *t) {
    char spec[SPEC_TEXT];
    text_add(t, "%lld sample(s) of %s\n", (long long)d->size, d->name);
    for (int i = 0; i < d->n_fields; i++)
        text_add(t, "  %s %s\n", d->fields[i].name,
                 base_spec_text(&(tri_spec){d->fields[i].type, d->fields[i].shape}, spec));
}

struct class_count {
    int64_t label, n;
};

static int larger_first(const void *a, const void *b) {
    const struct class_count *x = a, *y = b;
    if (x->n != y->n) return x->n < y->n ? 1 : -1;
    return (x->label > y->label) - (x->label < y->label);
}

static void print_class(const tri_data *d, const struct class_count *c, struct text *t) {
    const char *name = d->about.class_name ? d->about.class_name(d->user, c->label) : NULL;
    text_add(t, "  %8lld  %lld%s%s\n", (long long)c->n, (long long)c->label, name ? " " : "",
             name ? name : "");
}

/* All classes if there are few, else the largest and the smallest. */
static void print_classes(const tri_data *d, struct class_count *count, struct text *t) {
    int64_t n = d->about.classes, empty = 0;
    qsort(count, (size_t)n, sizeof *count, larger_first);
    for (int64_t i = 0; i < n; i++) empty += !count[i].n;
    text_add(t, "%lld classes of %lld to %lld samples, %.6g on average", (long long)n,
             (long long)count[n - 1].n, (long long)count[0].n, (double)d->size / (double)n);
    if (empty) text_add(t, "; %lld have none", (long long)empty);
    text_add(t, "\n");
    for (int64_t i = 0; i < n; i++) {
        if (n > LISTED && i == LISTED / 2) {
            text_add(t, "       ...\n");
            i = n - LISTED / 2;
        }
        print_class(d, &count[i], t);
    }
}

static tri_status describe_classes(const tri_data *d, struct text *t) {
    if (!d->about.label || d->about.classes < 1) return TRI_OK;
    struct class_count *count = calloc((size_t)d->about.classes, sizeof *count);
    if (!count) return base_no_memory(d->name);
    for (int64_t c = 0; c < d->about.classes; c++) count[c].label = c;
    for (int64_t i = 0; i < d->size; i++) count[d->about.label(d->user, i)].n++;
    print_classes(d, count, t);
    free(count);
    return TRI_OK;
}

/* ---- bad samples ---- */

struct checking {
    tri_data *d;
    atomic_llong next, bad;
    pthread_mutex_t out;
};

/* If the source cannot check a sample, getting it has to suffice. */
static tri_status check_sample(tri_data *d, int64_t index, void *const *out) {
    if (d->about.check) return d->about.check(d->user, index);
    return tri_data_get(d, index, 0, 0, out);
}

static void *check_some(void *user) {
    struct checking *c = user;
    void *out[TRI_MAX_FIELDS], *memory = data_sample_new(c->d, out);
    for (int64_t i; (i = atomic_fetch_add(&c->next, 1)) < c->d->size;) {
        if (memory && !check_sample(c->d, i, out)) continue;
        if (!memory) base_no_memory("a sample");
        atomic_fetch_add(&c->bad, 1);
        pthread_mutex_lock(&c->out);
        printf("bad sample %lld: %s\n", (long long)i, tri_message());
        pthread_mutex_unlock(&c->out);
    }
    free(memory);
    return NULL;
}

static int check_all(tri_data *d, int64_t threads) {
    struct checking c = {.d = d, .out = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread[MOST_THREADS];
    int n = 0;
    if (!threads) threads = host_cores();
    if (d->sequential) threads = 1;
    while (n < threads - 1 && n < MOST_THREADS &&
           !pthread_create(&thread[n], NULL, check_some, &c))
        n++;
    check_some(&c);
    for (int i = 0; i < n; i++) pthread_join(thread[i], NULL);
    printf("checked samples=%lld bad=%lld\n", (long long)d->size, (long long)atomic_load(&c.bad));
    return atomic_load(&c.bad) ? TRI_FAILED : TRI_OK;
}

/* ---- speed ---- */

typedef tri_status reading(tri_data *d, int64_t index, void *const *out);

static tri_status get_sample(tri_data *d, int64_t index, void *const *out) {
    return tri_data_get(d, index, 0, 1, out);
}

/* A bad sample takes time too, so it is no failure here. */
static tri_status decode_whole(tri_data *d, int64_t index, void *const *out) {
    (void)out;
    d->about.check(d->user, index);
    return TRI_OK;
}

/* Samples per second. Both ways of reading get the same samples equally often. */
static tri_status rate_of(tri_data *d, reading *read, void *const *out, double least,
                          double *rate) {
    int64_t n = d->size < 2000 ? d->size : 2000, done = 0;
    tri_status status = TRI_OK;
    for (int64_t i = 0; i < n && !status; i++) status = read(d, i, out); /* fills the caches */
    double begin = base_seconds(), seconds = 0;
    while (!status && seconds < least) {
        for (int64_t i = 0; i < n && !status; i++) status = read(d, i, out);
        done += n;
        seconds = base_seconds() - begin;
    }
    *rate = (double)done / seconds;
    return status;
}

static tri_status bench(tri_data *d, double seconds) {
    double got, whole = 0;
    void *out[TRI_MAX_FIELDS], *memory = data_sample_new(d, out);
    if (d->sequential)
        return base_fail(TRI_USAGE, "--bench: data '%s' is sequential and cannot be read twice",
                         d->name);
    if (!memory) return base_no_memory("a sample");
    tri_status status = rate_of(d, get_sample, out, seconds, &got);
    if (!status && d->about.check) status = rate_of(d, decode_whole, out, seconds, &whole);
    free(memory);
    if (status) return status;
    printf("bench threads=1 samples_per_s=%.1f", got);
    if (d->about.check) printf(" whole_per_s=%.1f ratio=%.3f", whole, got / whole);
    printf("\n");
    return TRI_OK;
}

/* ---- the command ---- */

static const struct option_row rows[] = {
    {"--check", NULL, "decode every sample completely and list the bad ones",
     OWN(option_given, check)},
    {"--threads", "T", "threads that --check uses (default: one per core)",
     OWN(option_count, threads)},
    {"--bench", NULL,
     "measure, on one thread, how fast samples are read, and how fast they are decoded completely",
     OWN(option_given, bench)},
    {"--seconds", "S", "least time of each measurement (default: 3)", OWN(option_seconds, seconds)},
    {"--tokenizer", "KIND",
     "how text becomes tokens: bytes, bert:FILE, bert-cased:FILE or gpt2:DIR (default: bytes)",
     OWN(option_text, tokenizer)},
    {0},
};

static int work(tri_data *d, const struct own *own) {
    struct text t = {0};
    describe_fields(d, &t);
    tri_status status = describe_classes(d, &t);
    if (!status && d->about.describe) d->about.describe(d->user, &t);
    if (status)
        text_free(&t);
    else
        status = cli_print(&t);
    if (!status && own->bench) status = bench(d, own->seconds);
    if (status) return cli_fail();
    return own->check ? check_all(d, own->threads) : TRI_OK;
}

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {.seconds = BENCH_SECONDS};
    struct option_set sets[] = {{c->rows, &own}, {0}};
    if (options_take(sets, USE_ALL, false, &argc, argv)) return cli_fail();
    if (argc != 2) {
        base_fail(TRI_USAGE, "data takes one SPEC: trireme data images:DIR");
        return cli_fail();
    }
    tri_data *d = data_open(argv[1], NULL, 1, own.tokenizer, NULL);
    if (!d) return cli_fail();
    data_print_notes(d, false);
    int code = work(d, &own);
    tri_data_free(d);
    return code;
}

const struct command command_data = {
    .name = "data",
    .arguments = "SPEC [options]",
    .help = "show what is in a data set, its bad samples, how fast it is read",
    .rows = rows,
    .run = run,
};
