/* SPDX-License-Identifier: Apache-2.0 */
#include "search/automatic.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"
#include "data/data.h"
#include "io/outfile.h"
#include "io/seal.h"
#include "machine/budget.h"
#include "observe/files.h"
#include "plan/option_rows.h"
#include "plan/rebatch.h"
#include "run/executor.h"
#include "run/open.h"

bool automatic_is_asked(const tri_options *o) {
    return option_choice("--parallel", o->parallel) == PARALLEL_AUTO;
}

/* ---- finding ---- */

tri_status automatic_path(const char *directory, struct text *path) {
    char whole[PATH_MAX];
    tri_status status = files_make_directory(directory);
    if (!status && !realpath(directory, whole))
        status = base_fail(TRI_FAILED, "%s: %s", directory, strerror(errno));
    if (!status) text_add(path, "%s/plan", whole);
    return !status && path->failed ? base_no_memory("a plan") : status;
}

/* *found: there is a checkpoint. */
static tri_status of_checkpoint(const tri_options *o, struct text *plan, bool *found) {
    struct checkpoint_state state;
    struct text wrong = {0};
    char folder[4096], *text = NULL;
    struct seal_key *key = NULL;
    tri_status status = o->ckpt_key ? seal_key_open(o->ckpt_key, &key) : TRI_OK;
    *found = false;
    if (!status && access(o->ckpt, F_OK)) return TRI_OK; /* the run makes it */
    if (!status) status = checkpoint_newest(o->ckpt, key, INT64_MAX, &state, &wrong);
    *found = !status && state.step >= 0;
    if (*found) {
        checkpoint_path(o->ckpt, state.step, folder);
        status = checkpoint_read_text(folder, CHECKPOINT_PLAN, checkpoint_key(folder, key),
                                      state.step, &text);
    }
    if (text) text_add(plan, "%s", text);
    free(text);
    text_free(&wrong);
    seal_key_free(key);
    return status;
}

static void tell(const struct find *f, const struct found *p) {
    struct text t = {0};
    find_describe(p, &t);
    text_add(&t, ": ");
    budget_mib(p->bytes, &t);
    text_add(&t, " MiB, %.4g ms a step, the best of %zu plan(s)%s", 1e3 * p->price.step.seconds,
             f->n, p->same_bits ? "" : "; its bits are its own");
    fprintf(stderr, "trireme: --parallel auto: %s\n", t.data ? t.data : "");
    text_free(&t);
}

static tri_status search(tri_graph *g, const tri_options *o, struct find_ask *ask,
                         struct text *plan) {
    struct find f = {0};
    struct prices prices = {0};
    struct text kept = {0};
    tri_options own = *o;
    own.parallel = NULL;
    tri_run *run = run_plan_with_data(g, &own, NULL);
    tri_status status = run ? prices_open(&prices, 0, &kept) : base_last();
    ask->keep = &kept;
    if (!status) status = find_plans(run, ask, &prices, &f);
    if (!status && !f.fit) status = find_none(&f);
    if (!status) status = find_print(&f.plan[0], plan);
    if (!status) tell(&f, &f.plan[0]);
    find_free(&f);
    prices_free(&prices);
    text_free(&kept);
    if (run) run_free(run);
    return status;
}

tri_status automatic_find(tri_graph *g, const tri_options *o, const struct find_ask *ask,
                          struct text *path) {
    struct find_ask own = *ask;
    own.recompute = o->recompute;
    own.cuts = o->cuts;
    struct text plan = {0};
    bool there = false;
    tri_status status = TRI_OK;
    if (o->plan)
        status = base_fail(TRI_USAGE, "--plan %s and --parallel auto (tri_options.parallel): give "
                           "one; auto finds a plan", o->plan);
    if (!status && o->resume && o->ckpt) status = of_checkpoint(o, &plan, &there);
    if (status || there) {
        tri_data_free(o->source);
        tri_data_free(o->eval_source);
        tri_graph_free(g);
    } else {
        status = search(g, o, &own, &plan);
    }
    if (!status) status = automatic_path(o->out ? o->out : "run", path);
    if (!status) status = outfile_text(path->data, &plan);
    text_free(&plan);
    return status;
}

/* The programs that this one starts have plans of their own. */
static const char *take_given(tri_run *run) {
    const char *given = getenv(AUTOMATIC_ENV);
    if (given) given = arena_copy(&run->kept, given);
    unsetenv(AUTOMATIC_ENV);
    return given;
}

/* Of a program that is a process alone, and of workers whose command has found the plan. */
tri_status search_settles(tri_run *run) {
    tri_options *o = &run->options;
    const char *given = run->worker && !o->forward && !run->passed ? take_given(run) : NULL;
    const struct find_ask ask = {.workers = 1, .threads = (int)o->threads};
    struct text path = {0};
    const bool asked = automatic_is_asked(o);
    if (o->forward || run->passed || !(asked || given)) {
        if (asked) o->parallel = NULL;
        return TRI_OK;
    }
    if (given && o->plan)
        return base_fail(TRI_USAGE, "--parallel auto has found %s, and the program names the plan "
                         "%s: give one", given, o->plan);
    if (run->worker && !given)
        return base_fail(TRI_USAGE, "--parallel auto (tri_options.parallel) of a program that runs "
                         "as several workers: trireme run --parallel auto");
    tri_status status = TRI_OK;
    if (!given) {
        tri_graph *g = graph_duplicate(run->model, run->model->batch);
        const bool kept = trial_lend(o->source, true), eval_kept = trial_lend(o->eval_source, true);
        status = g ? automatic_find(g, o, &ask, &path) : base_last();
        trial_lend(o->source, kept);
        trial_lend(o->eval_source, eval_kept);
        if (!status && !(given = arena_copy(&run->kept, path.data)))
            status = base_no_memory("a plan");
    }
    o->plan = given;
    o->parallel = NULL;
    text_free(&path);
    return status;
}
