/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/wire_ask.h"
#include "run/executables.h"

#include <string.h>

#include "plan/option_rows.h"
#include "plan/rebatch.h"
#include "run/feed.h"
#include "run/padding.h"

/* The number of lanes that keeps them as large as the usual ones at most. */
static int64_t lanes_for(const struct machine *usual, int64_t batch) {
    int64_t lane = lane_samples(usual->batch, usual->lanes, 0);
    return (batch + lane - 1) / lane;
}

void executables_limits(const tri_run *run, int64_t limit[LENGTHS_MOST], int *n) {
    const tri_graph *g = run->model;
    limit[0] = INT64_MAX;
    for (int i = 0; i < g->n_shorter; i++) limit[i + 1] = g->shorter[i].length;
    *n = run->options.forward ? 1 : g->n_shorter + 1;
}

/* All executables must have the same outputs in the same order. */
static tri_status check_outputs(const struct machine *usual, const struct machine *m) {
    for (int i = 0; i < usual->n_outputs || i < m->n_outputs; i++) {
        const struct run_output *a = i < usual->n_outputs ? &usual->output[i] : NULL;
        const struct run_output *b = i < m->n_outputs ? &m->output[i] : NULL;
        if (a && b && !strcmp(a->name, b->name) && a->metric == b->metric &&
            a->spec.shape.rank == b->spec.shape.rank)
            continue;
        if (a && b)
            return base_fail(TRI_USAGE, "output %d is \"%s\", in the usual network \"%s\": both "
                             "need the same outputs in the same order", i + 1, b->name, a->name);
        return base_fail(TRI_USAGE, "only %s network has the output \"%s\"",
                         a ? "the usual" : "its", a ? a->name : b->name);
    }
    return TRI_OK;
}

/* Not every schedule suits the fewer lanes of a smaller step; 1f1b takes any number. */
static bool suits(const struct machine *usual, const tri_options *o) {
    const struct compilation *c = &usual->compilation;
    const struct pipeline_wish wish = {c->pipeline, (int)o->chunks, (int)o->lanes, 0};
    int tracks;
    return !c->stages || !pipeline_tracks(&wish, c->stages, &tracks);
}

static tri_status plan_executable(tri_run *run, struct sampler_step kind) {
    struct machine *usual = run->executable, *m = &run->executable[run->n_executables];
    tri_graph **model = &run->shape_model[run->n_executables];
    const tri_graph *from = kind.class ? run->model->shorter[kind.class - 1].g : run->written;
    tri_options o = run->options;
    o.batch = kind.rows;
    o.lanes = lanes_for(usual, kind.rows);
    if (wire_ask_estimates(&o) && o.lanes != usual->lanes)
        return base_fail(TRI_USAGE, "--wire %s keeps estimates of the sums of %lld lanes, and here "
                         "are %lld: --tail drop leaves the step out, --tail pad fills it", o.wire,
                         (long long)usual->lanes, (long long)o.lanes);
    if (!suits(usual, &o)) o.pipeline = NULL, o.chunks = 0;
    *model = graph_rebatch(from, kind.rows, from->lanes, false);
    if (!*model) return base_last();
    const struct machine_place place = {.dev = run->dev,
                                        .team = run->team,
                                        .store = &run->store,
                                        .lender = usual,
                                        .other_shape = true,
                                        .previous = &run->executable[run->n_executables - 1],
                                        .all_threads = usual->all_threads,
                                        .hosts = usual->hosts,
                                        .paths = usual->paths,
                                        .weight = usual->weight,
                                        .processes = usual->processes,
                                        .auditors = usual->auditors};
    tri_status status = machine_plan(*model, &o, &place, m);
    m->shorter = kind.class > 0;
    if (!status) status = check_outputs(usual, m);
    if (!status) status = feed_match(m, run->data);
    if (!status && run->sampler.pad) status = padding_plan(*model, m);
    return status;
}

static tri_status plan_shape(tri_run *run, struct sampler_step kind) {
    char why[512], which[64] = "";
    tri_status status = plan_executable(run, kind);
    run->shape_class[run->n_executables++] = kind.class;
    if (!status) return TRI_OK;
    base_format(why, sizeof why, "%s", tri_message());
    if (kind.class)
        base_format(which, sizeof which, " no longer than %lld",
                    (long long)run->model->shorter[kind.class - 1].length);
    bool last = kind.rows < run->executable->batch;
    return base_fail(status, "a step of %lld sample(s)%s%s: %s", (long long)kind.rows, which,
                     last ? ", the last of an epoch (--tail keep)" : "", why);
}

static bool is_usual(const tri_run *run, struct sampler_step kind) {
    return !kind.class && kind.rows == run->executable->batch;
}

tri_status executables_plan(tri_run *run) {
    struct sampler_step kind[2 * LENGTHS_MOST];
    bool trains = run->data && !run->options.forward;
    int n = trains ? sampler_kinds(&run->sampler, kind, COUNT(kind)) : 0, shapes = 1;
    tri_status status = TRI_OK;
    for (int i = 0; i < n; i++) shapes += !is_usual(run, kind[i]);
    if (shapes > CREW_MOST_SHAPES)
        return base_fail(TRI_USAGE, "steps of %d shapes; there can be %d: use fewer networks for "
                         "shorter samples, or --tail drop", shapes, CREW_MOST_SHAPES);
    for (int i = 0; i < n && !status; i++)
        if (!is_usual(run, kind[i])) status = plan_shape(run, kind[i]);
    return status ? status : machine_join(run->executable, run->n_executables);
}

tri_status executables_settle(tri_run *run) {
    tri_status status = TRI_OK;
    for (int i = 1; i < run->n_executables && !status; i++)
        status = machine_allocate(&run->executable[i], &run->options);
    return status;
}

struct machine *executables_at(const tri_run *run, int64_t step) {
    struct machine *all = (struct machine *)run->executable;
    if (run->n_executables == 1) return all;
    struct sampler_step kind = sampler_step(&run->sampler, step - 1);
    int i = 0;
    while (run->shape_class[i] != kind.class || all[i].batch != kind.rows)
        CHECK(++i < run->n_executables);
    return &all[i];
}
