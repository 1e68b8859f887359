/* SPDX-License-Identifier: Apache-2.0
 * The means of all scalar outputs over a data set, with the run's parameters and operators in
 * evaluation mode. A last, smaller batch gets a machine of its own, so that every sample counts
 * once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/run.h"

struct evaluation {
    struct machine whole, rest;
    double *sum; /* by output */
};

static tri_status make(tri_run *run, struct machine *m, int64_t batch, const struct machine *lender) {
    tri_options o = run->options;
    o.forward = true;
    o.batch = batch;
    o.lanes = 1;
    o.amp = NULL; /* the model has its precision already */
    struct machine_place place = {.dev = run->dev, .team = run->team, .store = &run->store,
                                  .lender = lender};
    return machine_make(run->model, &o, &place, m);
}

static tri_status make_whole(tri_run *run, struct evaluation *e, int64_t batch) {
    if (e->whole.compiled && e->whole.batch == batch) return TRI_OK;
    machine_free(&e->rest);
    machine_free(&e->whole);
    return make(run, &e->whole, batch, &run->machine);
}

/* It has what the other has, which waits meanwhile. */
static tri_status make_rest(tri_run *run, struct evaluation *e, int64_t batch) {
    if (e->rest.compiled && e->rest.batch == batch) return TRI_OK;
    machine_free(&e->rest);
    return make(run, &e->rest, batch, &e->whole);
}

static tri_status run_batch_at(tri_run *run, struct machine *m, tri_data *data, int64_t first) {
    tri_status status = feed_match(m, data);
    for (int64_t row = 0; row < m->batch && !status; row++)
        status = feed_sample(m, data, row, first + row, 0, run->options.seed);
    if (status) return status;
    feed_commit(m);
    run->fault.failed = false;
    if (!machine_step(m, run->options.seed, 0, &run->fault))
        return base_fail(TRI_FAILED, "evaluation, samples %lld to %lld: %s", (long long)first,
                         (long long)(first + m->batch - 1), run->fault.text);
    for (int i = 0; i < m->n_outputs; i++)
        if (!m->output[i].spec.shape.rank)
            run->evaluation->sum[i] += machine_value(m, &m->output[i]) * (double)m->batch;
    return TRI_OK;
}

static tri_status evaluate(tri_run *run, tri_data *data) {
    struct evaluation *e = run->evaluation;
    int64_t size = tri_data_size(data), batch = run->machine.batch, first = 0;
    if (batch > size) batch = size;
    tri_status status = make_whole(run, e, batch);
    if (status) return status;
    free(e->sum);
    e->sum = calloc((size_t)e->whole.n_outputs + 1, sizeof *e->sum);
    if (!e->sum) return base_no_memory("an evaluation");
    for (int i = 0; i < e->whole.n_outputs; i++) e->whole.output[i].result = NAN;
    for (; first + batch <= size && !status; first += batch)
        status = run_batch_at(run, &e->whole, data, first);
    if (first < size && !status) {
        status = make_rest(run, e, size - first);
        if (!status) status = run_batch_at(run, &e->rest, data, first);
    }
    for (int i = 0; i < e->whole.n_outputs && !status; i++)
        e->whole.output[i].result = e->sum[i] / (double)size;
    return status;
}

tri_status tri_evaluate(tri_run *run, tri_data *data) {
    if (!run || !data) return TRI_FAILED;
    if (!run->evaluation) run->evaluation = calloc(1, sizeof *run->evaluation);
    if (!run->evaluation) return base_no_memory("an evaluation");
    tri_status status = machine_keep_outputs(&run->machine);
    return status ? status : evaluate(run, data);
}

double tri_result(const tri_run *run, const char *name) {
    const struct run_output *o =
        run && run->evaluation ? machine_output(&run->evaluation->whole, name) : NULL;
    return o && !o->spec.shape.rank ? o->result : NAN;
}

void evaluation_free(struct evaluation *e) {
    if (!e) return;
    machine_free(&e->whole);
    machine_free(&e->rest);
    free(e->sum);
    free(e);
}
