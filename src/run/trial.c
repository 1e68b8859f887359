/* SPDX-License-Identifier: Apache-2.0 */
#include "run/trial.h"

#include "data/data.h"
#include "machine/budget.h"
#include "plan/option_rows.h"
#include "plan/ready.h"
#include "plan/rebatch.h"
#include "run/evaluate.h"
#include "run/executor.h"
#include "run/open.h"
#include "run/policy.h"
#include "run/worker.h"

struct trial trial_of(const tri_run *own) {
    struct trial t = {.options = own->options, .batch = own->model->batch};
    if (own->worker) t.size = own->worker->head->size;
    return t;
}

bool trial_lend(tri_data *d, bool kept) {
    bool before = d && d->kept;
    if (d) d->kept = kept;
    return before;
}

tri_run *trial_plan(tri_run *own, const struct trial *t) {
    tri_options o = t->options;
    tri_data *data = own->data ? own->data : o.source, *eval = own->policy->data;
    const bool watched = !own->worker || own->worker->context; /* the others only plan */
    if (watched) own->executor->at(own, CREW_AT_COMPILE, -1); /* many trials are no stall */
    tri_graph *g = graph_duplicate(own->written ? own->written : own->model, t->batch);
    if (!g) return NULL;
    o.batch = t->batch;
    o.source = data;
    if (own->data) o.subset = NULL; /* these are the samples of the subset */
    o.eval_source = eval;
    const bool kept = trial_lend(data, true), eval_kept = trial_lend(eval, true);
    tri_run *run = run_plan_with_data(g, &o, t->size.workers ? &t->size : NULL);
    trial_lend(data, kept);
    trial_lend(eval, eval_kept);
    if (run && !data) own->data = run->data;
    if (run && !eval) own->policy->data = run->policy->data;
    return run;
}

void trial_end(const tri_run *own, tri_run *run) {
    tri_data *data = own->data ? own->data : own->options.source;
    if (!run) return;
    const bool kept = trial_lend(data, true), eval_kept = trial_lend(own->policy->data, true);
    run_free(run);
    trial_lend(data, kept);
    trial_lend(own->policy->data, eval_kept);
}

size_t trial_needs(const tri_run *run) {
    const struct machine *last = evaluation_machine(run);
    return budget_with_others(last, &run->store) + budget_program(last);
}

tri_status trial_bytes(tri_run *own, const struct trial *t, size_t *bytes) {
    struct trial free_of_limit = *t;
    free_of_limit.options.memory_limit = 0;
    free_of_limit.options.save_plan = NULL;
    tri_run *run = trial_plan(own, &free_of_limit);
    if (!run) return base_last();
    *bytes = trial_needs(run);
    trial_end(own, run);
    return TRI_OK;
}

/* ---- options that help ---- */

#define WORTH 98 /* percent: an option that saves less does not help */
#define FORMAT(...) base_format(words, sizeof(((struct lighter *)0)->words), __VA_ARGS__)

/* The one that the run has, as both cannot be given. */
static const char *threads_flag(const tri_run *own) {
    return own->worker && !own->options.threads ? "--threads-per-worker" : "--threads";
}

static bool no_spares(const tri_run *own, int n, struct trial *t, char *words) {
    (void)own;
    if (n > 1 || !t->size.spares) return false;
    t->size.spares = 0;
    FORMAT("--spares 0");
    return true;
}

static bool fewer_threads(const tri_run *own, int n, struct trial *t, char *words) {
    const int before = t->size.workers ? t->size.threads : run_threads(own), threads = before >> n;
    if (threads < 1) return false;
    if (t->size.workers) t->size.threads = threads;
    else t->options.threads = threads;
    FORMAT("%s %d", threads_flag(own), threads);
    return true;
}

static bool fewer_workers(const tri_run *own, int n, struct trial *t, char *words) {
    if (t->size.workers >> n < 1 || t->size.most > t->size.workers) return false;
    t->size.most = t->size.workers >>= n;
    FORMAT("-n %d %s %d", t->size.workers, threads_flag(own), t->size.threads);
    return true;
}

/* The option's words after its own, up to number `last`: those that need less memory. */
static bool next_word(const char *flag, int last, const char **value, int n, char *words) {
    const int place = option_choice(flag, *value) + n;
    if (place > last) return false;
    *value = option_row(flag)->words[place];
    FORMAT("%s %s", flag, *value);
    return true;
}

static bool divide_states(const tri_run *own, int n, struct trial *t, char *words) {
    (void)own;
    return next_word("--zero", 3, &t->options.zero, n, words);
}

static bool shorter_numbers(const tri_run *own, int n, struct trial *t, char *words) {
    (void)own;
    return next_word("--amp", 2, &t->options.amp, n, words);
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

/* Several workers share the activations of a lane then. */
static bool split(const tri_run *own, int n, struct trial *t, char *words) {
    static const char *const meshes[] = {"model=2", "model=4", "model=8"};
    int ready = 0;
    while (strategies_ready[ready].name) ready++;
    const size_t mesh = (size_t)((n - 1) / ready);
    if (mesh == COUNT(meshes) || 2 << mesh > t->size.workers || own->machine->replicas)
        return false;
    t->options.mesh = meshes[mesh];
    t->options.strategy = strategies_ready[(n - 1) % ready].name;
    FORMAT("--mesh %s --strategy %s", t->options.mesh, t->options.strategy);
    return true;
}

static bool smaller_batch(const tri_run *own, int n, struct trial *t, char *words) {
    t->batch >>= n;
    if (t->batch < (own->options.lanes ? own->machine->lanes : 1)) return false;
    FORMAT("--batch %lld", (long long)t->batch);
    return true;
}

/* Each sets a trial to number n of its values, from 1 on, and writes its words. False: there are
 * no more. */
static const struct help {
    bool (*set)(const tri_run *own, int n, struct trial *t, char *words);
    bool other_bits;
} helps[] = {
    {no_spares, false},   {fewer_threads, false}, {fewer_workers, false},  {divide_states, false},
    {recompute, false},   {fewer_lanes, true},    {more_lanes, true},      {shorter_numbers, true},
    {split, true},        {smaller_batch, true},
};

int trial_lighter(tri_run *own, size_t limit, struct lighter out[LIGHTER_MOST]) {
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
        best.fits = best.needs <= limit;
        const bool less = best.fits || best.needs >> 20 < (needs >> 20) * WORTH / 100;
        if (*best.words && less) out[found++] = best;
    }
    return found;
}

void trial_describe(const struct lighter *l, char gap, struct text *out) {
    budget_mib(l->needs, out);
    text_add(out, " MiB%cwith %s", gap, l->words);
    if (l->fits || l->other_bits)
        text_add(out, "%c(%s%s%s)", gap, l->fits ? "fits" : "",
                 l->fits && l->other_bits ? ", " : "", l->other_bits ? "other bits" : "");
}

tri_status trial_advise(tri_run *run) {
    struct lighter all[LIGHTER_MOST];
    struct text t = {0};
    const struct verdict v =
        budget_verdict(evaluation_machine(run), &run->store, run->options.memory_limit);
    text_add(&t, "%s", tri_message());
    const int n = trial_lighter(run, v.limit, all);
    text_add(&t, n ? ". It would need" : ". " LIGHTER_NONE);
    for (int i = 0; i < n; i++) {
        text_add(&t, i ? ", " : " ");
        trial_describe(&all[i], ' ', &t);
    }
    tri_status status = t.failed ? base_no_memory("the plan of memory")
                                 : base_fail(TRI_USAGE, "%s", t.data);
    text_free(&t);
    return status;
}
