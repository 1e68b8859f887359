/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/shapes.h"

#include <string.h>

#include "plan/rebatch.h"

/* A lane of a smaller step has no more samples than others have. */
static int64_t lanes_for(const struct machine *usual, int64_t batch) {
    int64_t lane = lane_samples(usual->batch, usual->lanes, 0);
    return (batch + lane - 1) / lane;
}

tri_status shapes_keep(tri_run *run) {
    const tri_graph *g = run->model;
    const char *tail = run->options.tail;
    if (run->options.forward || !tail || strcmp(tail, "keep")) return TRI_OK;
    run->written = graph_rebatch(g, g->batch, g->lanes, false);
    return run->written ? TRI_OK : base_last();
}

static tri_status plan_machine(tri_run *run, int64_t batch) {
    struct machine *usual = run->shape, *m = &run->shape[run->n_shapes];
    tri_graph **model = &run->shape_model[run->n_shapes];
    tri_options o = run->options;
    o.batch = batch;
    o.lanes = lanes_for(usual, batch);
    *model = graph_rebatch(run->written, batch, run->written->lanes, false);
    if (!*model) return base_last();
    const struct machine_place place = {
        .dev = run->dev, .team = run->team, .store = &run->store, .lender = usual, .turns = true,
        .beside = &run->shape[run->n_shapes - 1], .hands = usual->hands, .processes = usual->processes,
        .more_slots = usual->more_slots};
    tri_status status = machine_plan(*model, &o, &place, m);
    if (!status) status = feed_match(m, run->data);
    return status;
}

static tri_status plan_shape(tri_run *run, int64_t batch) {
    char why[512];
    tri_status status = plan_machine(run, batch);
    run->n_shapes++;
    if (!status) return TRI_OK;
    base_format(why, sizeof why, "%s", tri_message());
    return base_fail(status, "the last step of an epoch has %lld samples (--tail keep): %s", (long long)batch, why);
}

tri_status shapes_plan(tri_run *run) {
    int64_t batch = run->data ? sampler_least(&run->sampler) : run->shape->batch;
    tri_status status = batch < run->shape->batch ? plan_shape(run, batch) : TRI_OK;
    return status ? status : machine_join(run->shape, run->n_shapes);
}

tri_status shapes_settle(tri_run *run) {
    tri_status status = TRI_OK;
    for (int i = 1; i < run->n_shapes && !status; i++) status = machine_settle(&run->shape[i], &run->options);
    return status;
}

struct machine *shapes_at(const tri_run *run, int64_t step) {
    struct machine *shape = (struct machine *)run->shape;
    int64_t batch = run->n_shapes > 1 ? sampler_rows(&run->sampler, step - 1) : shape->batch;
    while (shape->batch != batch) CHECK(++shape < run->shape + run->n_shapes);
    return shape;
}
