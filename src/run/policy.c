/* SPDX-License-Identifier: Apache-2.0 */
#include "run/policy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "checkpoint/checkpoint.h"
#include "data/data.h"
#include "run/evaluate.h"
#include "run/executor.h"
#include "run/record.h"

/* ---- opening ---- */

/* Lists the results of evaluations, the loss first. */
static tri_status list_results(struct policy *p, const tri_run *run) {
    const tri_graph *g = run->model;
    p->name = calloc(g->n_outputs + 1, sizeof *p->name);
    p->value = calloc(g->n_outputs + 1, sizeof *p->value);
    if (!p->name || !p->value) return base_no_memory("the names of results");
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < g->n_outputs; i++) {
            const char *name = g->output[i].name;
            if (evaluation_has(run, name) && !strcmp(name, "loss") == !pass)
                p->name[p->n++] = name;
        }
    return TRI_OK;
}

static tri_status unknown_metric(const struct policy *p, const tri_graph *g) {
    const struct graph_output *o = graph_output_find(g, p->of);
    struct nearest near = {.wanted = p->of};
    for (int i = 0; i < p->n; i++) nearest_offer(&near, p->name[i]);
    const char *why = !o                           ? "the network has no such output"
                      : o->tensor->spec.shape.rank ? "this output is not a single number"
                                                   : "this output depends on gradients (tri_grad), "
                                                     "which evaluations do not compute";
    return base_fail(TRI_USAGE, "--best %s: %s; evaluations have: %s", p->of, why,
                     *near.names ? near.names : "none");
}

/* "METRIC:max" or "METRIC:min". By default the largest value is the best, but the smallest loss.
 * Without a loss, evaluations are compared only if the options name a metric. */
static tri_status choose_metric(struct policy *p, const tri_run *run) {
    const char *best = run->options.best;
    char *colon = NULL;
    bool compares = best || p->patience || evaluation_has(run, "loss");
    p->of = strdup(best ? best : "loss");
    p->metric = malloc(strlen(p->of ? p->of : "") + sizeof ":max");
    if (!p->of || !p->metric) return base_no_memory("the name of a metric");
    colon = strrchr(p->of, ':');
    if (colon) *colon++ = 0;
    if (colon && strcmp(colon, "max") && strcmp(colon, "min"))
        return base_fail(TRI_USAGE, "--best %s: give a metric, and max or min after a colon: "
                         "top1:max", best);
    p->most = colon ? !strcmp(colon, "max") : strcmp(p->of, "loss") != 0;
    base_format(p->metric, strlen(p->of) + sizeof ":max", "%s:%s", p->of,
                p->most ? "max" : "min");
    if (!compares) *p->of = *p->metric = 0;
    return !compares || evaluation_has(run, p->of) ? TRI_OK : unknown_metric(p, run->model);
}

static tri_status check(const tri_options *o) {
    if (o->eval_every < 0 || o->early_stop < 0 || !(o->early_stop_change >= 0))
        return base_fail(TRI_USAGE, "eval_every, early_stop and early_stop_change (tri_options) "
                         "must be at least 0");
    if (!o->eval_data && !o->eval_source && (o->eval_every || o->best || o->early_stop))
        return base_fail(TRI_USAGE, "--eval-every, --best and --early-stop (tri_options) are for "
                         "evaluations during training, which need data: --eval-data");
    if ((o->eval_data || o->eval_source) && o->forward)
        return base_fail(TRI_USAGE, "eval_data (tri_options) is for runs that train; in a forward "
                         "run use tri_evaluate");
    return TRI_OK;
}

tri_status policy_open(struct policy *p, tri_run *run) {
    const tri_options *o = &run->options;
    tri_status status = check(o);
    if (status || (!o->eval_data && !p->data)) return status;
    if (!p->data) p->data = data_open(o->eval_data, run->model, o->seed, o->tokenizer, NULL);
    if (!p->data) return base_last();
    if (p->data->sequential)
        return base_fail(TRI_USAGE, "data %s can be read only once, in its own order; evaluations "
                         "read their data repeatedly", p->data->name);
    p->every = o->eval_every;
    p->keeps = o->best && o->ckpt;
    p->patience = o->early_stop;
    p->change = o->early_stop_change;
    status = evaluation_plan(run, p->data);
    if (!status) status = list_results(p, run);
    return status ? status : choose_metric(p, run);
}

tri_status policy_settle(const struct policy *p, tri_run *run) {
    return p->data ? evaluation_settle(run) : TRI_OK;
}

void policy_resume(struct policy *p, const struct checkpoint_state *s) {
    if (!p->data || !*s->metric) return;
    if (!strcmp(p->metric, s->metric))
        p->is = s->policy_state;
    else
        fprintf(stderr, "trireme: the checkpoint compares evaluations by %s, this run by %s: the "
                "best so far is forgotten\n", s->metric, p->metric);
}

void policy_free(struct policy *p) {
    tri_data_free(p->data);
    free(p->metric);
    free(p->of);
    free(p->name);
    free(p->value);
    *p = (struct policy){0};
}

/* ---- evaluating ---- */

static void compare_with_best(struct policy *p, double value, int64_t step) {
    struct policy_state *is = &p->is;
    double gain = p->most ? value - is->best : is->best - value;
    p->better = isfinite(value) && (!is->best_step || gain > p->change);
    is->step = step;
    is->no_better = p->better ? 0 : is->no_better + 1;
    if (!p->better) return;
    is->best = value;
    is->best_step = step;
}

static bool is_due(const struct policy *p, const tri_run *run) {
    return p->every ? run->done % p->every == 0 : run_epoch_ended(run);
}

/* The last step is always evaluated, but compared with the best only if an evaluation was due. So a
 * run that is extended later decides as if it had had its full length from the start. */
void policy_step(struct policy *p, tri_run *run) {
    p->here = p->better = false;
    if (!p->data) return;
    bool due = is_due(p, run);
    if (!due && run->done < run->total) return;
    p->failed = 0;
    tri_status status = run->executor->evaluate(run, p->data);
    if (status == TRI_STOPPED) return;
    if (status) {
        p->failed = run->done;
        base_format(p->error, sizeof p->error, "%s", tri_message());
        fprintf(stderr, "trireme: the evaluation after step %lld failed: %s\n",
                (long long)run->done, p->error);
        return;
    }
    p->here = true;
    for (int i = 0; i < p->n; i++) p->value[i] = tri_result(run, p->name[i]);
    if (due && p->is.step < run->done) compare_with_best(p, tri_result(run, p->of), run->done);
}

/* The step has a checkpoint already, so `better` must not ask for one. */
void policy_catch_up(struct policy *p, tri_run *run) {
    if (!p->data || !is_due(p, run) || p->is.step >= run->done) return;
    policy_step(p, run);
    p->better = false;
    policy_publish(p, run);
}

void policy_publish(const struct policy *p, tri_run *run) {
    if (!p->here) return;
    record_evaluation(run->record, run->done, run->epoch, p->n, p->name, p->value);
    run->executor->set_policy(run);
}

int64_t policy_best(const struct policy *p, const tri_run *run, double *value) {
    *value = p->is.best;
    for (int i = 0; i < p->n && !p->is.best_step && p->here; i++)
        if (!strcmp(p->name[i], p->of)) return *value = p->value[i], run->done;
    return p->is.best_step;
}

bool policy_stops(const struct policy *p) {
    return p->patience && p->is.no_better >= p->patience;
}

void policy_describe(const struct policy *p, int64_t step, struct text *out) {
    text_add(out, "eval at step %lld:", (long long)step);
    for (int i = 0; i < p->n; i++)
        text_add(out, "%s %s %#.4g", i ? " " : "", p->name[i], p->value[i]);
    if (p->is.best_step == step) text_add(out, "  (best %s so far)", p->of);
}

tri_status policy_end(const struct policy *p) {
    if (!p->failed) return TRI_OK;
    return base_fail(TRI_FAILED, "the last evaluation, after step %lld, failed: %s",
                     (long long)p->failed, p->error);
}
