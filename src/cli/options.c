/* SPDX-License-Identifier: Apache-2.0
 * Reading options from a command line; the public functions for them. */
#include "cli/options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "plan/plan_file.h"

int cli_fail(void) {
    fprintf(stderr, "trireme: %s\n", tri_message());
    return (int)base_last();
}

/* Whether `word` is the row's flag, as "--flag" or "--flag=value". */
static bool matches(const struct option_row *row, const char *word) {
    size_t n = strlen(row->flag);
    return !strncmp(word, row->flag, n) && (!word[n] || word[n] == '=');
}

const struct option_row *options_find(const struct option_set *sets, unsigned use,
                                      const char *word, const struct option_set **set) {
    for (*set = sets; (*set)->rows; (*set)++)
        for (const struct option_row *row = (*set)->rows; row->flag; row++)
            if (row->use & use && matches(row, word)) return row;
    return NULL;
}

/* Names that other programs use. */
static const struct {
    const char *name, *ours;
} elsewhere[] = {
    {"--wd", "--weight-decay"},
    {"--learning-rate", "--lr"},
    {"--batch-size", "--batch"},
    {"--bs", "--batch"},
    {"--optim", "--optimizer"},
    {"--workers", "-n"},
    {"--num-workers", "--data-threads"},
    {"--grad-clip", "--clip-norm"},
    {"--checkpoint", "--ckpt"},
    {"--lr-scheduler", "--schedule"},
    {"--output", "--out"},
    {"--dataset", "--data"},
    {"--device-mesh", "--mesh"},
    {"--parallel-mode", "--parallel"},
    {"--tensor-parallel", "--mesh"},
    {"--tp", "--mesh"},
};

/* If `foreign`, unknown options pass, except those that look like a typing error and those that
 * start workers, which only `trireme run` does. */
static tri_status unknown(const struct option_set *sets, unsigned use, bool foreign,
                          const char *word) {
    const struct option_set *set, launching[] = {{launch_rows, NULL}, {0}};
    char flag[32];
    snprintf(flag, sizeof flag, "%.*s", (int)strcspn(word, "="), word);
    if (foreign && options_find(launching, USE_ALL, flag, &set))
        return base_fail(TRI_USAGE, "%s is an option of `trireme run`, which starts several "
                         "workers: trireme run -n 2 -- ./program", flag);
    struct nearest near = {.wanted = flag + 2 * !strncmp(flag, "--", 2), .before = "--"};
    for (const struct option_set *s = sets; s->rows; s++)
        for (const struct option_row *row = s->rows; row->flag; row++)
            if (row->use & use && row->flag[1] == '-') nearest_offer(&near, row->flag + 2);
    if (foreign && near.distance > 1) return TRI_OK;
    if (options_find(sets, USE_ALL, flag, &set))
        return base_fail(TRI_USAGE, "%s has no effect on this command; see --help", flag);
    const char *owner = foreign ? NULL : options_owner(flag);
    if (owner) return base_fail(TRI_USAGE, "%s is an option of `trireme %s`", flag, owner);
    for (size_t i = 0; i < COUNT(elsewhere); i++)
        if (!strcmp(elsewhere[i].name, flag) && options_find(sets, use, elsewhere[i].ours, &set))
            return base_fail(TRI_USAGE, "unknown option %s; do you mean %s?", flag,
                             elsewhere[i].ours);
    return base_fail(TRI_USAGE, "unknown option %s%s", flag, nearest_or(&near, "; see --help"));
}

/* Options already given that exclude others. */
struct alternatives {
    const struct option_row *length; /* --epochs or --steps */
    const char *shuffle, *sampler;
};

static tri_status check_alternatives(const struct option_row *row, const char *value,
                                     struct alternatives *given) {
    bool length = !strcmp(row->flag, "--epochs") || !strcmp(row->flag, "--steps");
    if (length && given->length && given->length != row)
        return base_fail(TRI_USAGE, "--epochs and --steps are both given; each sets the length of "
                         "the run: give one");
    if (length) given->length = row;
    if (!strcmp(row->flag, "--shuffle")) given->shuffle = value;
    if (!strcmp(row->flag, "--sampler")) given->sampler = value;
    if (given->shuffle && given->sampler &&
        !strcmp(given->sampler, strcmp(given->shuffle, "on") ? "shuffled" : "sequential"))
        return base_fail(TRI_USAGE, "--shuffle %s and --sampler %s are both given, and contradict "
                         "each other: give one", given->shuffle, given->sampler);
    return TRI_OK;
}

/* The value of an option in its word or in the next one; null: it lacks it. *used becomes the
 * number of words read. */
static char *value_of(const struct option_row *row, char **word, int *used) {
    char *value = strchr(*word, '=');
    *used = 1;
    if (value) return value + 1;
    if (!row->argument) return strchr(*word, 0);
    if (!word[1] || !strncmp(word[1], "--", 2)) return NULL;
    *used = 2;
    return word[1];
}

/* Sets one option; see value_of. */
static tri_status take(const struct option_row *row, void *target, char **word, int *used,
                       struct alternatives *given) {
    const char *value = value_of(row, word, used);
    if (!value)
        return base_fail(TRI_USAGE, "%s lacks its value: %s %s", row->flag, row->flag,
                         row->argument);
    if (!row->argument && *used == 1 && strchr(*word, '='))
        return base_fail(TRI_USAGE, "%s takes no value", row->flag);
    const char *expected = row->set((char *)target + row->offset, value);
    if (!expected) return check_alternatives(row, value, given);
    return base_fail(TRI_USAGE, "%s %s: expected %s", row->flag, *value ? value : "''", expected);
}

tri_status options_take(const struct option_set *sets, unsigned use, bool foreign, int *argc,
                        char **argv) {
    int kept = 0, i = 0, used = 1;
    struct alternatives given = {0};
    bool open = true; /* before "--" */
    for (; i < *argc; i += used) {
        used = 1;
        const struct option_set *set;
        if (open && !strcmp(argv[i], "--") && i) {
            open = false;
            continue;
        }
        bool option = i && open && argv[i][0] == '-' && argv[i][1];
        const struct option_row *row = option ? options_find(sets, use, argv[i], &set) : NULL;
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

bool options_ask_help(int argc, char **argv, const char *also, const char **topic) {
    int i = 1;
    while (i < argc && strcmp(argv[i], "--") && strcmp(argv[i], "--help") && strcmp(argv[i], also))
        i++;
    *topic = i + 1 < argc && *argv[i + 1] != '-' ? argv[i + 1] : NULL;
    return i < argc && strcmp(argv[i], "--");
}

/* Counts the values that the words give to an option, a list of numbers (an argument
 * whose name is a letter) as several. *chosen becomes number n, and if `put` is not null, that is
 * the value of all of its words. */
static int values_of(const struct option_set *sets, unsigned use, const struct option_row *row,
                     char **word, int n, struct arena *a, char **chosen, char *put) {
    const struct option_set *set;
    int seen = 0;
    for (int used = 1; *word && strcmp(*word, "--"); word += used, used = 1) {
        const struct option_row *found = options_find(sets, use, *word, &set);
        const char *at = found ? value_of(found, word, &used) : NULL;
        if (found != row || !at || !row->argument) continue;
        for (size_t bytes; at; at = at[bytes] ? at + bytes + 1 : NULL) {
            bytes = row->argument[1] ? strlen(at) : strcspn(at, ",");
            if (seen++ == n) *chosen = arena_text(a, "%.*s", (int)bytes, at);
        }
        if (put) word[used - 1] = used == 2 ? put : arena_text(a, "%s=%s", row->flag, put);
    }
    return seen;
}

tri_status options_pick(const struct option_set *sets, unsigned use, char **argv,
                        struct options_picked *p) {
    int k = p->number;
    p->all = 1;
    for (const struct option_set *s = sets; s->rows; s++)
        for (const struct option_row *row = s->rows; row->flag; row++) {
            char *value = NULL;
            if (!(row->use & use)) continue;
            int n = values_of(sets, use, row, argv + 1, -1, &p->arena, &value, NULL);
            if (n < 2) continue;
            values_of(sets, use, row, argv + 1, k % n, &p->arena, &value, NULL);
            if (value) values_of(sets, use, row, argv + 1, -1, &p->arena, &value, value);
            text_add(&p->words, "%s%s %s", p->words.size ? " " : "", row->flag, value);
            k /= n;
            p->all = p->all > INT_MAX / n ? INT_MAX : p->all * n;
        }
    return p->arena.failed || p->words.failed ? base_no_memory("a command line") : TRI_OK;
}

tri_status options_take_plan(tri_options *o) {
    if (!o->plan) return TRI_OK;
    const struct plan_file *p = plan_read(o->plan, true);
    return p ? plan_take(p, o) : base_last();
}

/* ---- public functions ---- */

tri_options tri_options_default(void) { return (tri_options){0}; }

/* Ends the process. */
static void print_help(const char *program, const char *topic) {
    struct text t = {0};
    text_add(&t, "options of %s:\n", program);
    tri_status status = options_describe((const struct option_row *const[]){options_rows, NULL},
                                         USE_TRAIN, topic, &t);
    if (!status && t.failed) status = base_no_memory("the help");
    if (status)
        fprintf(stderr, "%s: %s\n", program, tri_message());
    else
        fputs(t.data, stdout);
    exit(!status && fflush(stdout) ? TRI_FAILED : (int)status);
}

tri_status tri_options_parse(tri_options *o, int *argc, char **argv) {
    const char *topic;
    if (options_ask_help(*argc, argv, "--help", &topic)) print_help(argv[0], topic);
    const struct option_set sets[] = {{options_rows, o}, {0}};
    const tri_options before = *o;
    options_forget_usual(o);
    tri_status status = options_take(sets, USE_TRAIN, true, argc, argv);
    if (!status) status = options_take_plan(o);
    options_restore_usual(o, &before); /* the program may read them */
    if (status) fprintf(stderr, "%s: %s\n", argv[0], tri_message());
    return status;
}
