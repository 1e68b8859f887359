/* SPDX-License-Identifier: Apache-2.0
 * The options of a run: their table, and how any such table is read and described. */
#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/launch.h"

/* ---- setters ---- */

const char *option_count(void *at, const char *value) { /* int64_t */
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (end == value || *end || errno || n < 1) return "a whole number from 1 up";
    *(int64_t *)at = n;
    return NULL;
}

const char *option_seed(void *at, const char *value) { /* uint64_t */
    char *end;
    errno = 0;
    unsigned long long n = strtoull(value, &end, 10);
    if (!isdigit((unsigned char)*value) || *end || errno) return "a whole number from 0 to 2^64 - 1";
    *(uint64_t *)at = n;
    return NULL;
}

/* NaN if it is no number. */
static double real(const char *value) {
    char *end;
    double x = base_number(value, &end);
    return end != value && !*end && isfinite(x) ? x : NAN;
}

const char *option_positive(void *at, const char *value) { /* double */
    double x = real(value);
    if (!(x > 0)) return "a number above 0";
    *(double *)at = x;
    return NULL;
}

static const char *not_negative(void *at, const char *value) { /* double */
    double x = real(value);
    if (!(x >= 0)) return "a number from 0 up";
    *(double *)at = x;
    return NULL;
}

/* In the structure 0 means the default. */
static const char *or_zero(void *at, double x) {
    *(double *)at = x > 0 ? x : TRI_ZERO;
    return NULL;
}

static const char *zero_up(void *at, const char *value) { /* double */
    double x = real(value);
    return x >= 0 ? or_zero(at, x) : "a number from 0 up";
}

static const char *below_one(void *at, const char *value) { /* double */
    double x = real(value);
    return x >= 0 && x < 1 ? or_zero(at, x) : "a number from 0 up and below 1";
}

const char *option_off(void *at, const char *value) { /* bool: true is off */
    if (strcmp(value, "on") && strcmp(value, "off")) return "on or off";
    *(bool *)at = !strcmp(value, "off");
    return NULL;
}

const char *option_given(void *at, const char *value) {
    (void)value;
    *(bool *)at = true;
    return NULL;
}

const char *option_text(void *at, const char *value) {
    if (!*value) return "a text that is not empty";
    *(const char **)at = value;
    return NULL;
}

const char *option_seconds(void *at, const char *value) {
    double x = real(value);
    if (!(x > 0)) return "a number of seconds above 0";
    *(double *)at = x;
    return NULL;
}

const char *option_size(void *at, const char *value) {
    static const char units[] = "KMGT";
    char *end;
    double x = base_number(value, &end);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (end == value || !(x > 0) || (*end && (!unit || end[1]))) return "a size: 900M, 1.5G";
    for (const char *u = units; unit && u <= unit; u++) x *= 1024;
    if (x >= 9e18) return "a size: 900M, 1.5G";
    *(int64_t *)at = (int64_t)x;
    return NULL;
}

static const char *data_threads(void *at, const char *value) { /* int64_t */
    *(int64_t *)at = !strcmp(value, "off") ? -1 : 0;
    if (!strcmp(value, "off") || !strcmp(value, "auto")) return NULL;
    return option_count(at, value) ? "off, auto, or a whole number from 1 up" : NULL;
}

/* One of these says how long a run is; the other is cleared. */
static const char *epochs(void *at, const char *value) { /* tri_options */
    tri_options *o = at;
    o->steps = 0;
    return option_count(&o->epochs, value);
}

static const char *steps(void *at, const char *value) { /* tri_options */
    tri_options *o = at;
    o->epochs = 0;
    return option_count(&o->steps, value);
}

static const char *count_or_epoch(void *at, const char *value) { /* int64_t; 0: epochs */
    if (strcmp(value, "epoch")) return option_count(at, value) ? "a whole number from 1 up, or epoch" : NULL;
    *(int64_t *)at = 0;
    return NULL;
}

static const char *early_stop(void *at, const char *value) { /* tri_options */
    static const char right[] = "a whole number from 1 up, and perhaps a change: 3, 3:0.01";
    tri_options *o = at;
    char number[24];
    size_t n = strcspn(value, ":");
    if (n >= sizeof number) return right;
    base_format(number, sizeof number, "%.*s", (int)n, value);
    if (option_count(&o->early_stop, number)) return right;
    return value[n] && not_negative(&o->early_stop_change, value + n + 1) ? right : NULL;
}

/* ---- the table ---- */

#define FIELD(name) offsetof(tri_options, name)
#define LEARNING (USE_TRAIN | USE_DUMP | USE_BENCH | USE_MEMORY)

const struct option_row options_rows[] = {
    {"--data", "SPEC", "idx:DIR[,split=train|test][,mean=X][,std=X]: files of the\n"
     "MNIST family; images:DIR[,split=train|val][,size=N]:\npictures, a folder for each class; "
     "tar:PATTERN: pictures in\ntar archives; cifar:DIR; npy:FILE[;FILE]: arrays;\n"
     "text:FILE[:FILE...][,tokenizer=KIND]\n[,for=lm|bert][,length=N][,predictions=N]: texts;\n"
     "synthetic[:size=N]: made up (the default, unless the\nmodel has data of its own)",
     option_text, FIELD(data), USE_TRAIN | USE_EVAL | USE_BENCH | USE_MEMORY},
    {"--tokenizer", "KIND", "of --data text: bytes (the default), bert:FILE,\nbert-cased:FILE or "
     "gpt2:DIR", option_text, FIELD(tokenizer), USE_TRAIN | USE_EVAL | USE_BENCH | USE_MEMORY},
    {"--data-threads", "N", "threads of each worker that read the next step's samples\nwhile this one's are in "
     "use: auto, one if they take their\ntime; off; or so many (auto)", data_threads, FIELD(data_threads),
     USE_TRAIN | USE_BENCH | USE_MEMORY},
    {"--epochs", "N", "how often all samples are gone through (1)", epochs, 0, USE_TRAIN},
    {"--steps", "N", "how many steps are done; not with --epochs", steps, 0, USE_TRAIN | USE_BENCH},
    {"--batch", "N", "samples of a step, over all workers (64)", option_count, FIELD(batch), USE_ALL},
    {"--lanes", "V", "parts of a step, the unit of scheduling (chosen from\nmodel and batch)",
     option_count, FIELD(lanes), LEARNING},
    {"--threads", "T", "threads that draw lanes, or share the operators of one;\nthey change no "
     "result (one for each core)", option_count, FIELD(threads),
     USE_TRAIN | USE_EVAL | USE_BENCH | USE_MEMORY},
    {"--memory-limit", "SIZE", "refuses a run that needs more: 900M, 4G (what machine\nand cgroup "
     "can give)", option_size, FIELD(memory_limit), USE_TRAIN | USE_EVAL | USE_BENCH | USE_MEMORY},
    {"--optimizer", "NAME", "sgd, momentum, nesterov, adam, adamw, lars or lamb\n(sgd)", option_text,
     FIELD(optimizer.name), LEARNING},
    {"--lr", "X", "learning rate (0.01; of adam, adamw and lamb 0.001, of\nlars 1)", option_positive,
     FIELD(optimizer.lr), LEARNING},
    {"--momentum", "X", "of momentum, nesterov and lars (0.9)", below_one,
     FIELD(optimizer.momentum), LEARNING},
    {"--beta1", "X", "of adam, adamw and lamb: of the mean of gradients (0.9)", below_one,
     FIELD(optimizer.beta1), LEARNING},
    {"--beta2", "X", "the same, of the mean of their squares (0.999)", below_one,
     FIELD(optimizer.beta2), LEARNING},
    {"--eps", "X", "of adam, adamw, lamb and lars: added to the divisor\n(1e-8; of lamb 1e-6)", zero_up,
     FIELD(optimizer.eps), LEARNING},
    {"--trust", "X", "the trust coefficient of lars (0.001)", option_positive, FIELD(optimizer.trust),
     LEARNING},
    {"--schedule", "SPEC", "how the rate changes: constant, step:every=N,factor=X,\n"
     "poly:power=X,end=X or cosine:end=X, each with warmup=N\nsteps (constant)",
     option_text, FIELD(optimizer.schedule), LEARNING},
    {"--weight-decay", "X", "decay of weights, not of norms and biases (0)", not_negative,
     FIELD(optimizer.weight_decay), LEARNING},
    {"--clip-norm", "X", "scales gradients so that their norm is at most X (off)", option_positive,
     FIELD(optimizer.clip_norm), LEARNING},
    {"--gradients-mean", "on|off", "gradients are the mean over the batch; off: that mean\ntimes the number "
     "of lanes (on)", option_off, FIELD(optimizer.gradients_sum), LEARNING},
    {"--parallel", "WAY", "how the step is shared: data, its lanes among the\nworkers (data)",
     option_text, FIELD(parallel), USE_TRAIN},
    {"--recompute", "PATTERN", "scopes or operators whose values are computed again in\nthe backward "
     "pass, to save memory: layer1.?,*.relu*", option_text, FIELD(recompute), LEARNING},
    {"--amp", "LEVEL", "mixed precision: O0, none; O1, half products, the rest as\nits inputs are; "
     "O2, all but norms' weights and the loss;\nO3, all (O0)", option_text, FIELD(amp), USE_ALL},
    {"--amp-type", "TYPE", "the half type: bf16 or f16 (bf16)", option_text, FIELD(amp_type),
     USE_ALL},
    {"--loss-scale", "X", "off, a power of two, dynamic, or\ndynamic:start=X,every=N; updates that are "
     "not finite are\nskipped, also at a scale of 1 (off; with f16 dynamic)", option_text, FIELD(optimizer.loss_scale), LEARNING},
    {"--conv", "WAY", "convolutions by Winograd's transform where it pays: auto,\nor direct: never "
     "(auto)", option_text, FIELD(conv), USE_ALL},
    {"--passes", "LIST", "passes over the graph left out: -cse,-fold; -all,+cse:\n"
     "all but one (`trireme dump --help` lists them)", option_text, FIELD(passes), USE_ALL},
    {"--seed", "N", "of everything that is random (0)", option_seed, FIELD(seed), USE_ALL},
    {"--device", "NAME", "cpu or ref, the slow reference (cpu, where it is built in)", option_text,
     FIELD(device), USE_ALL},
    {"--shuffle", "on|off", "a new order of the samples in every epoch (on)", option_off,
     FIELD(no_shuffle), USE_TRAIN | USE_BENCH | USE_MEMORY},
    {"--sampler", "KIND", "the order of samples: shuffled, sequential; stratified:\nclasses evenly in every lane; with "
     "replacement:\nweighted:balanced, weighted:classes=X/X...,\nweighted:FILE (shuffled)", option_text,
     FIELD(sampler), USE_TRAIN | USE_BENCH | USE_MEMORY},
    {"--subset", "LIST", "of the data the samples FIRST:END, or those that a file\nlists", option_text, FIELD(subset),
     USE_TRAIN | USE_EVAL | USE_BENCH | USE_MEMORY},
    {"--tail", "WAY", "what fills no step at an epoch's end: drop, left out; keep,\na smaller step; pad, a step with others that "
     "do not count\n(drop)", option_text, FIELD(tail), USE_TRAIN | USE_BENCH | USE_MEMORY},
    {"--sink-size", "N", "callbacks of your own program come every N steps (1)", option_count, FIELD(sink_size),
     USE_TRAIN},
    {"--share", "K/N[,drop]", "every N-th sample from the K-th (0 to N - 1) on, for N\nruns that know nothing of one "
     "another", option_text, FIELD(share), USE_TRAIN | USE_BENCH | USE_MEMORY},
    {"--out", "DIR", "where metrics.jsonl goes; that of an earlier run becomes\n"
     "metrics.1.jsonl, or the next number that is free (of the\nprogram trireme: run)", option_text, FIELD(out),
     USE_TRAIN},
    {"--metrics-every", "N", "a row of metrics.jsonl for every N steps, with the means\nover them (a row for each step, "
     "at most 100 a second)", option_count, FIELD(metrics_every), USE_TRAIN},
    {"--save", "FILE", "writes the weights when all is done (safetensors)", option_text,
     FIELD(save), USE_TRAIN},
    {"--load", "FILE", "begins with these weights (safetensors; of a directory of\ncheckpoints the newest whole ones)",
     option_text, FIELD(load),
     USE_TRAIN | USE_EVAL | USE_BENCH},
    {"--partial", NULL, "of --load what fits is taken, and the rest is told", option_given, FIELD(partial),
     USE_TRAIN | USE_EVAL | USE_BENCH},
    {"--ckpt", "DIR", "checkpoints go there; the last step is always saved", option_text, FIELD(ckpt),
     USE_TRAIN | USE_MEMORY},
    {"--ckpt-key", "FILE", "checkpoints are sealed with the key in it, and --load takes\nwhat is (`trireme ckpt key FILE` "
     "makes one)", option_text, FIELD(ckpt_key), USE_TRAIN | USE_EVAL | USE_BENCH},
    {"--save-every", "N", "a checkpoint every N steps (none but the last)", option_count, FIELD(save_every),
     USE_TRAIN},
    {"--save-minutes", "M", "and every M minutes", option_positive, FIELD(save_minutes), USE_TRAIN},
    {"--keep", "K", "the newest K checkpoints stay (all)", option_count, FIELD(keep), USE_TRAIN},
    {"--keep-every", "E", "besides, those of steps that E divides", option_count, FIELD(keep_every), USE_TRAIN},
    {"--eval-data", "SPEC", "evaluates while training, behind each epoch and the last\nstep: data as of --data",
     option_text, FIELD(eval_data), USE_TRAIN | USE_MEMORY},
    {"--eval-every", "N|epoch", "or every N steps (epoch)", count_or_epoch, FIELD(eval_every), USE_TRAIN},
    {"--best", "METRIC", "by which evaluations are compared: top1, loss:min (of the\nloss the least is best, of others "
     "the most); with --ckpt\nthe checkpoint of the best is kept besides (loss)", option_text, FIELD(best), USE_TRAIN},
    {"--early-stop", "N[:X]", "the run ends when N evaluations in succession were not\nbetter, by more than X (0)",
     early_stop, 0, USE_TRAIN},
    {"--max-time", "S", "the run ends behind a step after S seconds, with code 3", option_seconds, FIELD(max_time),
     USE_TRAIN},
    {"--resume", NULL, "goes on from the newest whole checkpoint, if there is one,\nas if the run had never ended",
     option_given, FIELD(resume), USE_TRAIN},
    {"--on-nan", "WAY", "a loss that is nan or infinite: stop, the run ends with\ncode 1, and nothing of the step "
     "counts; warn, a line\nwhen it begins (stop)", option_text, FIELD(on_nan), USE_TRAIN},
    {"--on-event", "CMD", ON_EVENT_HELP, option_text, FIELD(on_event), USE_TRAIN},
    {"--quiet", NULL, "no progress", option_given, FIELD(quiet), USE_TRAIN},
    {0},
};

/* ---- reading ---- */

/* "--flag=value" or "--flag": whether the row's flag is what stands before any "=". */
static bool matches(const struct option_row *row, const char *word) {
    size_t n = strlen(row->flag);
    return !strncmp(word, row->flag, n) && (!word[n] || word[n] == '=');
}

static const struct option_row *find(const struct option_set *sets, unsigned use, const char *word,
                                     const struct option_set **set) {
    for (*set = sets; (*set)->rows; (*set)++)
        for (const struct option_row *row = (*set)->rows; row->flag; row++)
            if (row->use & use && matches(row, word)) return row;
    return NULL;
}

/* What other programs call some options. */
static const struct {
    const char *name, *ours;
} elsewhere[] = {
    {"--wd", "--weight-decay"},       {"--learning-rate", "--lr"}, {"--batch-size", "--batch"},
    {"--bs", "--batch"},              {"--optim", "--optimizer"},  {"--workers", "-n"},
    {"--num-workers", "--data-threads"}, {"--grad-clip", "--clip-norm"}, {"--checkpoint", "--ckpt"},
    {"--lr-scheduler", "--schedule"}, {"--output", "--out"},       {"--dataset", "--data"},
};

/* The option of these sets that is meant; null: none can be. */
static const char *meant(const struct option_set *sets, unsigned use, const char *flag, const struct nearest *near,
                         char text[32]) {
    const struct option_set *set;
    for (size_t i = 0; i < COUNT(elsewhere); i++)
        if (!strcmp(elsewhere[i].name, flag) && find(sets, use, elsewhere[i].ours, &set)) return elsewhere[i].ours;
    if (!nearest_name(near)) return NULL;
    base_format(text, 32, "--%s", near->name);
    return text;
}

/* An option of others is let pass if `foreign`, unless it looks like a slip, or is one that starts workers, which a
 * program itself does not. */
static tri_status unknown(const struct option_set *sets, unsigned use, bool foreign,
                          const char *word) {
    const struct option_set *set, launching[] = {{launch_rows, NULL}, {0}};
    char flag[32], near_text[32];
    snprintf(flag, sizeof flag, "%.*s", (int)strcspn(word, "="), word);
    if (foreign && find(launching, USE_ALL, flag, &set))
        return base_fail(TRI_USAGE, "%s is for several workers, an option of `trireme run`: trireme run -n 2 -- ./program",
                         flag);
    struct nearest near = {.wanted = flag + 2 * !strncmp(flag, "--", 2)};
    for (const struct option_set *s = sets; s->rows; s++)
        for (const struct option_row *row = s->rows; row->flag; row++)
            if (row->use & use && row->flag[1] == '-') nearest_offer(&near, row->flag + 2);
    if (foreign && near.distance > 1) return TRI_OK;
    if (find(sets, USE_ALL, flag, &set))
        return base_fail(TRI_USAGE, "%s has no meaning here; see --help", flag);
    const char *right = meant(sets, use, flag, &near, near_text);
    if (right) return base_fail(TRI_USAGE, "unknown option %s; do you mean %s?", flag, right);
    return base_fail(TRI_USAGE, "unknown option %s; see --help", flag);
}

/* What was given of which one alone can hold: the row of --epochs or --steps; of the order. */
struct alternatives {
    const struct option_row *length;
    bool shuffled, sequential;
};

static tri_status check_alternatives(const struct option_row *row, const char *value, struct alternatives *given) {
    bool length = row->set == epochs || row->set == steps;
    if (length && given->length && given->length != row)
        return base_fail(TRI_USAGE, "--epochs and --steps are both given; either says how long the "
                         "run is");
    if (length) given->length = row;
    if (!strcmp(row->flag, "--shuffle")) given->shuffled = !strcmp(value, "on");
    if (!strcmp(row->flag, "--sampler")) given->sequential = !strcmp(value, "sequential");
    if (given->shuffled && given->sequential)
        return base_fail(TRI_USAGE, "--shuffle on and --sampler sequential are both given; one order is possible");
    return TRI_OK;
}

/* Sets one option from its word, or the next one; *used: how many words it took. */
static tri_status take(const struct option_row *row, void *target, char **word, int *used,
                       struct alternatives *given) {
    const char *value = strchr(*word, '=');
    *used = 1;
    if (value)
        value++;
    else if (!row->argument)
        value = "";
    else if (word[1] && strncmp(word[1], "--", 2)) {
        value = word[1];
        *used = 2;
    }
    if (!value)
        return base_fail(TRI_USAGE, "%s lacks its value: %s %s", row->flag, row->flag,
                         row->argument);
    if (!row->argument && *used == 1 && strchr(*word, '='))
        return base_fail(TRI_USAGE, "%s takes no value", row->flag);
    const char *right = row->set((char *)target + row->offset, value);
    if (!right) return check_alternatives(row, value, given);
    return base_fail(TRI_USAGE, "%s %s: %s is needed", row->flag, *value ? value : "''", right);
}

tri_status options_take(const struct option_set *sets, unsigned use, bool foreign, int *argc,
                        char **argv) {
    int kept = 0, i = 0, used = 1;
    struct alternatives given = {0};
    bool open = true; /* no "--" yet */
    for (; i < *argc; i += used) {
        used = 1;
        const struct option_set *set;
        if (open && !strcmp(argv[i], "--") && i) {
            open = false;
            continue;
        }
        bool option = i && open && argv[i][0] == '-' && argv[i][1];
        const struct option_row *row = option ? find(sets, use, argv[i], &set) : NULL;
        if (row) {
            if (take(row, set->target, argv + i, &used, &given)) return TRI_USAGE;
            continue;
        }
        if (option && unknown(sets, use, foreign, argv[i])) return TRI_USAGE;
        argv[kept++] = argv[i];
    }
    argv[kept] = NULL;
    *argc = kept;
    return TRI_OK;
}

/* ---- describing ---- */

#define HELP_COLUMN 20

void options_describe(const struct option_row *rows, unsigned use, struct text *out) {
    for (const struct option_row *row = rows; row->flag; row++) {
        if (!(row->use & use)) continue;
        int width = HELP_COLUMN - 3 - (int)strlen(row->flag);
        text_add(out, "  %s %-*s", row->flag, width, row->argument ? row->argument : "");
        for (const char *line = row->help; *line;) {
            int n = (int)strcspn(line, "\n");
            if (line != row->help) text_add(out, "%*s", HELP_COLUMN, "");
            text_add(out, " %.*s\n", n, line);
            line += n + (line[n] == '\n');
        }
    }
}

/* ---- the public face ---- */

tri_options tri_options_default(void) { return (tri_options){0}; }

static char help[16384];
static pthread_once_t help_once = PTHREAD_ONCE_INIT;

static void make_help(void) {
    struct text t = {0};
    options_describe(options_rows, USE_TRAIN, &t);
    snprintf(help, sizeof help, "%s", t.failed || !t.data ? "(out of memory)\n" : t.data);
    text_free(&t);
}

const char *tri_options_help(void) {
    pthread_once(&help_once, make_help);
    return help;
}

tri_status tri_options_parse(tri_options *o, int *argc, char **argv) {
    for (int i = 1; i < *argc && strcmp(argv[i], "--"); i++)
        if (!strcmp(argv[i], "--help")) {
            printf("options of %s:\n%s", argv[0], tri_options_help());
            exit(fflush(stdout) ? TRI_FAILED : TRI_OK);
        }
    const struct option_set sets[] = {{options_rows, o}, {0}};
    tri_status status = options_take(sets, USE_TRAIN, true, argc, argv);
    if (status) fprintf(stderr, "%s: %s\n", argv[0], tri_message());
    return status;
}
