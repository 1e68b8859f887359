/* SPDX-License-Identifier: Apache-2.0
 * The means of all scalar outputs over a data set, with the run's parameters and operators in
 * evaluation mode. A last, smaller batch gets a machine of its own, so that every sample counts
 * once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/crew.h"
#include "exec/run.h"
#include "exec/share.h"

struct evaluation {
    struct machine whole, rest;
    double *sum, *sums; /* by output: of all, of a batch */
};

/* Others may wait meanwhile: who watches them all sees that it goes on. */
static bool turn(void *user, const struct program *p, size_t item) {
    (void)p, (void)item;
    crew_at(user, CREW_AT_EVALUATE);
    return true;
}

static void count_turns(const struct machine *m, struct crew *c) {
    for (int i = 0; c && machine_program(m, i); i++) {
        machine_program(m, i)->before = turn;
        machine_program(m, i)->user = c;
    }
}

static tri_status make(tri_run *run, struct machine *m, int64_t batch, const struct machine *lender) {
    tri_options o = run->options;
    o.forward = true;
    o.batch = batch;
    o.lanes = 1;
    o.amp = NULL; /* the model has its precision already */
    const struct machine *beside = lender == run->shape ? &run->shape[run->n_shapes - 1] : lender;
    struct machine_place place = {.dev = run->dev, .team = run->team, .store = &run->store, .lender = lender,
                                  .beside = beside};
    tri_status status = machine_make(run->model, &o, &place, m);
    if (!status) count_turns(m, run->crew);
    return status;
}

static tri_status make_whole(tri_run *run, struct evaluation *e, int64_t batch) {
    if (e->whole.compiled && e->whole.batch == batch) return TRI_OK;
    machine_free(&e->rest);
    machine_free(&e->whole);
    return make(run, &e->whole, batch, run->shape);
}

/* It has what the other has, which waits meanwhile. */
static tri_status make_rest(tri_run *run, struct evaluation *e, int64_t batch) {
    if (e->rest.compiled && e->rest.batch == batch) return TRI_OK;
    machine_free(&e->rest);
    return make(run, &e->rest, batch, &e->whole);
}

/* Until there are some. */
static void forget_results(const struct machine *m) {
    for (int i = 0; i < m->n_outputs; i++) m->output[i].result = NAN;
}

static int64_t batch_of(const tri_run *run, const tri_data *data) {
    int64_t size = tri_data_size(data);
    return run->shape->batch < size ? run->shape->batch : size;
}

static tri_status begin(tri_run *run) {
    if (!run->evaluation) run->evaluation = calloc(1, sizeof *run->evaluation);
    return run->evaluation ? TRI_OK : base_no_memory("an evaluation");
}

tri_status evaluation_prepare(tri_run *run, const tri_data *data) {
    struct evaluation *e;
    int64_t batch = batch_of(run, data), rest = tri_data_size(data) % batch;
    tri_status status = begin(run);
    if (status) return status;
    e = run->evaluation;
    status = make_whole(run, e, batch);
    forget_results(&e->whole);
    if (!status && rest) status = make_rest(run, e, rest);
    if (!status) status = feed_match(&e->whole, data);
    return status;
}

/* Its sums go to e->sums. */
static tri_status compute_with(tri_run *run, struct machine *m, tri_data *data, int64_t first) {
    double *sums = run->evaluation->sums;
    tri_status status = feed_match(m, data);
    char *spare = status ? NULL : malloc(m->feed.spare_bytes + 1);
    if (!status && !spare) status = base_no_memory("a sample");
    for (int64_t row = 0; row < m->batch && !status; row++) {
        if (run->crew) crew_at(run->crew, CREW_AT_EVALUATE);
        status = feed_row(m, data, &(struct feed_place){m->rooms, spare, row}, first + row, 0, run->options.seed);
    }
    free(spare);
    if (status) return status;
    feed_commit(m);
    run->fault.failed = false;
    if (!machine_step(m, run->options.seed, 0, &run->fault))
        return base_fail(TRI_FAILED, "evaluation, samples %lld to %lld: %s", (long long)first,
                         (long long)(first + m->batch - 1), run->fault.text);
    for (int i = 0; i < m->n_outputs; i++)
        sums[i] = m->output[i].spec.shape.rank ? 0 : machine_value(m, &m->output[i]) * (double)m->batch;
    return TRI_OK;
}

static tri_status compute(tri_run *run, tri_data *data, int64_t number) {
    struct evaluation *e = run->evaluation;
    int64_t first = number * e->whole.batch, left = tri_data_size(data) - first;
    if (left >= e->whole.batch) return compute_with(run, &e->whole, data, first);
    tri_status status = make_rest(run, e, left);
    return status ? status : compute_with(run, &e->rest, data, first);
}

static tri_status start(tri_run *run, const tri_data *data) {
    struct evaluation *e = run->evaluation;
    tri_status status = make_whole(run, e, batch_of(run, data));
    if (status) return status;
    size_t n = (size_t)e->whole.n_outputs + 1;
    free(e->sum);
    e->sum = calloc(2 * n, sizeof *e->sum);
    if (!e->sum) return base_no_memory("an evaluation");
    e->sums = e->sum + n;
    forget_results(&e->whole);
    return TRI_OK;
}

static tri_status add_up(tri_run *run, tri_data *data, const struct share *share) {
    struct evaluation *e = run->evaluation;
    tri_status status = TRI_OK;
    int64_t batches = evaluation_batches(run, data);
    for (int64_t k = 0; k < batches && !status; k++) {
        if (run_is_asked_to_end(run))
            return base_fail(TRI_STOPPED, "the evaluation was broken off, for the run was asked to end");
        const double *sums = share ? share_find(share, k) : NULL;
        if (!sums) status = compute(run, data, k);
        if (!sums) sums = e->sums;
        for (int i = 0; i < e->whole.n_outputs && !status; i++) e->sum[i] += sums[i];
    }
    for (int i = 0; i < e->whole.n_outputs && !status; i++)
        e->whole.output[i].result = e->sum[i] / (double)tri_data_size(data);
    return status;
}

int64_t evaluation_batches(const tri_run *run, const tri_data *data) {
    int64_t batch = batch_of(run, data);
    return (tri_data_size(data) + batch - 1) / batch;
}

tri_status evaluation_draw(tri_run *run, tri_data *data, const struct share *share) {
    tri_status status = begin(run);
    if (!status) status = start(run, data);
    CHECK(status || share->head->values == run->evaluation->whole.n_outputs);
    for (int64_t k; !status && (k = share_draw(share)) >= 0;) {
        status = compute(run, data, k);
        if (!status) share_put(share, k, run->evaluation->sums);
    }
    return status;
}

tri_status evaluation_run(tri_run *run, tri_data *data, const struct share *share) {
    tri_status status = begin(run);
    if (!status) status = machine_keep_outputs(run->machine);
    if (!status) status = start(run, data);
    if (!status) status = add_up(run, data, share);
    if (run->crew) crew_at(run->crew, CREW_AT_CALLBACK);
    return status;
}

tri_status tri_evaluate(tri_run *run, tri_data *data) {
    return run && data ? evaluation_run(run, data, NULL) : TRI_FAILED;
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
