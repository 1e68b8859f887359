/* SPDX-License-Identifier: Apache-2.0
 * trireme bench MODEL -n 1,2,4: the same training by different numbers of workers. */
#include "cli/bench_workers.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "launch/agent.h"

#define MOST 16
#define ROUNDS 3
#define SECONDS 3.0

struct trial {
    int workers;
    double rate[ROUNDS], seconds; /* seconds until the loss, in the first round */
    int64_t steps;
    double waiting; /* mean of the rounds */
};

static tri_status read_list(const char *list, struct trial *t, int *n) {
    for (*n = 0; *list; list += *list == ',') {
        if (*n == MOST) return base_fail(TRI_USAGE, "-n: at most %d numbers of workers", MOST);
        char *end;
        long workers = strtol(list, &end, 10);
        if (end == list || workers < 1 || workers > 1024 || (*end && *end != ','))
            return base_fail(TRI_USAGE, "-n %s: expected numbers of workers separated by commas: "
                             "1,2,4", list);
        t[(*n)++].workers = (int)workers;
        list = end;
    }
    return *n ? TRI_OK : base_fail(TRI_USAGE, "-n lacks its numbers of workers: -n 1,2,4");
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double middle(const struct trial *t) {
    double sorted[ROUNDS];
    memcpy(sorted, t->rate, sizeof sorted);
    qsort(sorted, ROUNDS, sizeof *sorted, by_size);
    return sorted[ROUNDS / 2];
}

/* The words of "trireme train MODEL ...": those of this command line without the options of bench.
 * The last --steps counts. */
static char **training(const struct bench_workers *b, char *directory) {
    const struct option_set own[] = {{b->rows, NULL}, {0}}, *set;
    char *more[] = {"--steps", "1000000000", "--quiet", "--out", directory};
    char **words = calloc((size_t)b->argc + COUNT(more) + 3, sizeof *words);
    int n = 0;
    if (!words) return NULL;
    words[n++] = "trireme";
    words[n++] = "train";
    for (int i = 1; i < b->argc; i++) {
        const struct option_row *row = options_find(own, USE_ALL, b->argv[i], &set);
        if (!row) words[n++] = b->argv[i];
        else i += row->argument && !strchr(b->argv[i], '=');
    }
    for (size_t i = 0; i < COUNT(more); i++) words[n++] = more[i];
    return words;
}

/* One run. Returns its exit code if it ended before its rate was known, else 0. */
static int measure(const struct bench_workers *b, char *directory, char *const *words,
                   struct trial *t, int round, struct launch_timing *timing) {
    struct launch l = {.workers = t->workers, .threads = b->threads, .out = directory,
                       .timing = timing, .program = b->program ? NULL : LAUNCH_SELF,
                       .argv = b->program ? b->program : words};
    *timing = (struct launch_timing){.seconds = SECONDS, .steps = b->steps,
                                     .until_loss = round ? 0 : b->until_loss};
    int code = agent_run(&l);
    if (code && !timing->known) return code;
    t->rate[round] = timing->rate;
    t->waiting += timing->waiting / ROUNDS;
    if (!round) {
        t->steps = timing->loss_steps;
        t->seconds = timing->loss_seconds;
    }
    return 0;
}

static void print(const struct trial *t, int n, const struct launch_timing *timing, double until) {
    const struct trial *base = &t[0]; /* that of one worker, or else the first */
    for (int i = 0; i < n; i++)
        if (t[i].workers == 1) base = &t[i];
    printf("%lld lane%s x %lld samples; medians of %d alternating runs", (long long)timing->lanes,
           timing->lanes == 1 ? "" : "s", (long long)(timing->batch / timing->lanes), ROUNDS);
    if (timing->seats) printf("; replicas of up to %d workers", timing->seats);
    if (base->workers != 1) printf("; speed-up over %d workers", base->workers);
    putchar('\n');
    printf("%8s %14s %12s %10s %12s", "workers", "samples/s", "steps/s", "speed-up", "efficiency");
    if (timing->stages) printf(" %10s", "waiting");
    if (until > 0) printf("  loss %g after", until);
    putchar('\n');
    for (int i = 0; i < n; i++) {
        double rate = middle(&t[i]), gain = rate / middle(base);
        double samples = rate * (double)timing->batch;
        printf("%8d %14.*f %12.*f %10.2f %11.0f%%", t[i].workers, samples < 100 ? 3 : 1, samples,
               rate < 10 ? 4 : 2, rate, gain, 100 * gain * base->workers / t[i].workers);
        if (timing->stages) printf(" %9.1f%%", 100 * t[i].waiting);
        if (until > 0 && t[i].seconds > 0)
            printf("  %.2f s, %lld steps", t[i].seconds, (long long)t[i].steps);
        putchar('\n');
    }
}

static int rounds(const struct bench_workers *b, char *directory, char *const *words) {
    struct trial trial[MOST] = {{0}};
    struct launch_timing timing = {0};
    int n, code = 0;
    if (read_list(b->list, trial, &n)) return cli_fail();
    for (int round = 0; round < ROUNDS && !code; round++)
        for (int i = 0; i < n && !code; i++)
            code = measure(b, directory, words, &trial[i], round, &timing);
    if (!code) print(trial, n, &timing, b->until_loss);
    return code;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

int bench_workers(const struct bench_workers *b) {
    const char *where = getenv("TMPDIR");
    char directory[4096];
    base_format(directory, sizeof directory, "%s/trireme-bench-XXXXXX",
                where && *where ? where : P_tmpdir);
    if (!mkdtemp(directory)) {
        base_fail(TRI_FAILED, "cannot make %s: %s", directory, strerror(errno));
        return cli_fail();
    }
    char **words = training(b, directory);
    int code = 1;
    if (words)
        code = rounds(b, directory, words);
    else
        base_no_memory("a command line");
    if (!words) cli_fail();
    nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(words);
    return code;
}
