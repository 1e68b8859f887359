/* SPDX-License-Identifier: Apache-2.0 */
#include "run/lighter.h"

#include "plan/option_rows.h"
#include "run/trial.h"

#define WORTH 99 /* percent: an option that saves less does not help */
#define FORMAT(...) base_format(words, sizeof(((struct lighter *)0)->words), __VA_ARGS__)

/* Each function changes a trial to number n of its values, from 1 on, and names it. False: there
 * are no more. */

static bool fewer_threads(const tri_run *own, int n, struct trial *t, char *words) {
    const int before = t->size.workers ? t->size.threads : run_threads(own), threads = before >> n;
    if (threads < 1) return false;
    if (t->size.workers) t->size.threads = threads;
    else t->options.threads = threads;
    FORMAT("%s %d", t->size.workers ? "--threads-per-worker" : "--threads", threads);
    return true;
}

static bool fewer_workers(const tri_run *own, int n, struct trial *t, char *words) {
    (void)own;
    if (t->size.workers - n < 1 || t->size.most > t->size.workers) return false;
    t->size.most = t->size.workers -= n;
    FORMAT("-n %d", t->size.workers);
    return true;
}

static bool no_spares(const tri_run *own, int n, struct trial *t, char *words) {
    (void)own;
    if (n > 1 || !t->size.spares) return false;
    t->size.spares = 0;
    FORMAT("--spares 0");
    return true;
}

/* The n-th of an option's words after its own, up to number `last`: those that need less memory. */
static bool next_word(const char *flag, int last, int n, const char **value, char *words) {
    const int place = option_choice(flag, *value) + n;
    if (place > last) return false;
    *value = option_row(flag)->words[place];
    FORMAT("%s %s", flag, *value);
    return true;
}

static bool divide_states(const tri_run *own, int n, struct trial *t, char *words) {
    (void)own;
    return next_word("--zero", 3, n, &t->options.zero, words);
}

static bool recompute(const tri_run *own, int n, struct trial *t, char *words) {
    (void)own;
    if (n > 1 || t->options.recompute) return false;
    t->options.recompute = "full";
    FORMAT("--recompute full");
    return true;
}

static bool set_lanes(int64_t lanes, struct trial *t, char *words) {
    if (lanes < 1 || lanes > t->batch) return false;
    t->options.lanes = lanes;
    FORMAT("--lanes %lld", (long long)lanes);
    return true;
}

static bool fewer_lanes(const tri_run *own, int n, struct trial *t, char *words) {
    return set_lanes(own->machine->lanes >> n, t, words);
}

static bool more_lanes(const tri_run *own, int n, struct trial *t, char *words) {
    return set_lanes(own->machine->lanes << n, t, words);
}

static bool shorter_numbers(const tri_run *own, int n, struct trial *t, char *words) {
    (void)own;
    return next_word("--amp", 2, n, &t->options.amp, words);
}

static bool smaller_batch(const tri_run *own, int n, struct trial *t, char *words) {
    t->batch >>= n;
    if (t->batch < own->machine->lanes) return false;
    FORMAT("--batch %lld", (long long)t->batch);
    return true;
}

static const struct help {
    bool (*set)(const tri_run *own, int n, struct trial *t, char *words);
    bool other_bits;
} helps[] = {
    {no_spares, false},   {fewer_threads, false}, {fewer_workers, false},  {divide_states, false},
    {recompute, false},   {fewer_lanes, true},    {more_lanes, true},      {shorter_numbers, true},
    {smaller_batch, true},
};

int lighter_options(tri_run *own, size_t limit, struct lighter out[LIGHTER_MOST]) {
    const struct trial is = trial_of(own);
    size_t needs = 0;
    int found = 0;
    if (trial_bytes(own, &is, &needs)) return 0;
    for (size_t i = 0; i < COUNT(helps) && found < LIGHTER_MOST; i++) {
        struct lighter best = {.needs = needs, .other_bits = helps[i].other_bits}, one = best;
        for (int n = 1; best.needs > limit || n == 1; n++) {
            struct trial t = is;
            if (!helps[i].set(own, n, &t, one.words)) break;
            if (!trial_bytes(own, &t, &one.needs) && one.needs < best.needs) best = one;
        }
        if (*best.words && best.needs < needs / 100 * WORTH) out[found++] = best;
    }
    return found;
}
