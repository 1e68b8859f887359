/* SPDX-License-Identifier: Apache-2.0 */
#include "run/policy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "data/data.h"
#include "run/evaluate.h"
#include "run/executor.h"
#include "run/record.h"

/* ---- opening ---- */

/* What evaluations have, the loss first. */
static tri_status list_results(struct policy *j, const tri_run *run) {
    const tri_graph *g = run->model;
    j->name = calloc(g->n_outputs + 1, sizeof *j->name);
    j->value = calloc(g->n_outputs + 1, sizeof *j->value);
    if (!j->name || !j->value) return base_no_memory("the names of results");
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < g->n_outputs; i++) {
            const char *name = g->output[i].name;
            if (evaluation_has(run, name) && !strcmp(name, "loss") == !pass) j->name[j->n++] = name;
        }
    return TRI_OK;
}

static tri_status unknown_metric(const struct policy *j, const tri_graph *g) {
    const struct graph_output *o = graph_output_find(g, j->of);
    struct text names = {0};
    for (int i = 0; i < j->n; i++) text_add(&names, "%s%s", i ? ", " : "", j->name[i]);
    const char *why = !o                           ? "the network has no such result"
                      : o->tensor->spec.shape.rank ? "this output is not one number"
                                                   : "this result depends on gradients (tri_grad), "
                                                     "which an evaluation lacks";
    tri_status status = base_fail(TRI_USAGE, "--best %s: %s; an evaluation has: %s", j->of, why,
                                  names.data ? names.data : "none");
    text_free(&names);
    return status;
}

/* "METRIC:max", "METRIC:min"; of METRIC alone the most is best, and the least of the loss. Without a
 * loss evaluations are compared only by a metric that is named. */
static tri_status choose_metric(struct policy *j, const tri_run *run) {
    const char *best = run->options.best;
    char *colon = NULL;
    bool compares = best || j->patience || evaluation_has(run, "loss");
    j->of = strdup(best ? best : "loss");
    j->metric = malloc(strlen(j->of ? j->of : "") + sizeof ":max");
    if (!j->of || !j->metric) return base_no_memory("the name of a metric");
    colon = strrchr(j->of, ':');
    if (colon) *colon++ = 0;
    if (colon && strcmp(colon, "max") && strcmp(colon, "min"))
        return base_fail(TRI_USAGE, "--best %s: a metric, and behind a colon max or min, is needed: top1:max", best);
    j->most = colon ? !strcmp(colon, "max") : strcmp(j->of, "loss") != 0;
    base_format(j->metric, strlen(j->of) + sizeof ":max", "%s:%s", j->of, j->most ? "max" : "min");
    if (!compares) *j->of = *j->metric = 0;
    return !compares || evaluation_has(run, j->of) ? TRI_OK : unknown_metric(j, run->model);
}

static tri_status check(const tri_options *o) {
    if (o->eval_every < 0 || o->early_stop < 0 || !(o->early_stop_change >= 0))
        return base_fail(TRI_USAGE, "eval_every, early_stop and early_stop_change (tri_options) must be at least 0");
    if (!o->eval_data && !o->eval_source && (o->eval_every || o->best || o->early_stop))
        return base_fail(TRI_USAGE, "--eval-every, --best and --early-stop (tri_options) are of evaluations while "
                         "training: name their data with --eval-data");
    if ((o->eval_data || o->eval_source) && o->forward)
        return base_fail(TRI_USAGE, "eval_data (tri_options) is for runs that train; this one is forward: "
                         "tri_evaluate");
    return TRI_OK;
}

tri_status policy_open(struct policy *j, tri_run *run) {
    const tri_options *o = &run->options;
    tri_status status = check(o);
    if (status || (!o->eval_data && !j->data)) return status;
    if (!j->data) j->data = data_open(o->eval_data, run->model, o->seed, o->tokenizer, NULL);
    if (!j->data) return base_last();
    if (j->data->sequential)
        return base_fail(TRI_USAGE, "data %s comes in an order of its own, once; evaluations read theirs again and "
                         "again", j->data->name);
    j->every = o->eval_every;
    j->keeps = o->best && o->ckpt;
    j->patience = o->early_stop;
    j->change = o->early_stop_change;
    status = evaluation_plan(run, j->data);
    if (!status) status = list_results(j, run);
    return status ? status : choose_metric(j, run);
}

tri_status policy_settle(const struct policy *j, tri_run *run) {
    return j->data ? evaluation_settle(run) : TRI_OK;
}

void policy_resume(struct policy *j, const struct checkpoint_state *s) {
    if (!j->data || !*s->metric) return;
    if (!strcmp(j->metric, s->metric))
        j->is = s->policy_state;
    else
        fprintf(stderr, "trireme: evaluations were compared by %s before; by %s they begin anew\n", s->metric,
                j->metric);
}

void policy_free(struct policy *j) {
    tri_data_free(j->data);
    free(j->metric);
    free(j->of);
    free(j->name);
    free(j->value);
    *j = (struct policy){0};
}

/* ---- judging ---- */

static void weigh(struct policy *j, double value, int64_t step) {
    struct policy_state *is = &j->is;
    double gain = j->most ? value - is->best : is->best - value;
    j->better = isfinite(value) && (!is->best_step || gain > j->change);
    is->step = step;
    is->no_better = j->better ? 0 : is->no_better + 1;
    if (!j->better) return;
    is->best = value;
    is->best_step = step;
}

static bool is_due(const struct policy *j, const tri_run *run) {
    return j->every ? run->done % j->every == 0 : run_epoch_ended(run);
}

/* Behind the last step there is one in any case; but it counts only if it was due, so that a run that is made longer
 * later decides as if it had been so long at once. */
void policy_step(struct policy *j, tri_run *run) {
    j->here = j->better = false;
    if (!j->data) return;
    bool due = is_due(j, run);
    if (!due && run->done < run->total) return;
    j->failed = 0;
    tri_status status = run->executor->evaluate(run, j->data);
    if (status == TRI_STOPPED) return;
    if (status) {
        j->failed = run->done;
        base_format(j->error, sizeof j->error, "%s", tri_message());
        fprintf(stderr, "trireme: the evaluation behind step %lld failed: %s\n", (long long)run->done, j->error);
        return;
    }
    j->here = true;
    for (int i = 0; i < j->n; i++) j->value[i] = tri_result(run, j->name[i]);
    if (due && j->is.step < run->done) weigh(j, tri_result(run, j->of), run->done);
}

/* The checkpoint of the step is there already, if it is the best. */
void policy_catch_up(struct policy *j, tri_run *run) {
    if (!j->data || !is_due(j, run) || j->is.step >= run->done) return;
    policy_step(j, run);
    j->better = false;
    policy_publish(j, run);
}

void policy_publish(const struct policy *j, tri_run *run) {
    if (!j->here) return;
    record_evaluation(run->record, run->done, run->epoch, j->n, j->name, j->value);
    run->executor->set_policy(run);
}

bool policy_stops(const struct policy *j) { return j->patience && j->is.no_better >= j->patience; }

void policy_describe(const struct policy *j, int64_t step, struct text *out) {
    text_add(out, "eval at step %lld:", (long long)step);
    for (int i = 0; i < j->n; i++) text_add(out, "%s %s %#.4g", i ? " " : "", j->name[i], j->value[i]);
    if (j->is.best_step == step) text_add(out, "  (best %s so far)", j->of);
}

tri_status policy_end(const struct policy *j) {
    if (!j->failed) return TRI_OK;
    return base_fail(TRI_FAILED, "the last evaluation, behind step %lld, failed: %s", (long long)j->failed, j->error);
}
