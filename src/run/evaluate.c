/* SPDX-License-Identifier: Apache-2.0
 * Computes the means of all scalar outputs over a data set, with the run's parameters and operators
 * in evaluation mode. A smaller last batch has an executable of its own, so that every sample
 * counts once. */
#include "run/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/data.h"
#include "machine/budget.h"
#include "run/executor.h"
#include "run/feed.h"
#include "run/record.h"

struct evaluation {
    struct machine whole, rest;
    double *sum, *sums; /* by output: over all batches, over one */
    int64_t number;     /* of the batch that this process computes */
    int64_t slowest;    /* the longest time for a batch of a queue, nanoseconds */
};

/* ---- executables ---- */

/* Shows progress to the agent, which would report a stall. */
static void note_progress(tri_run *run) {
    int64_t number = run->evaluation->number;
    run->executor->at(run, CREW_AT_EVALUATE, number < INT32_MAX ? (int)number : -1);
}

static bool before_item(void *user, const struct program *p, size_t item) {
    (void)p, (void)item;
    note_progress(user);
    return true;
}

static void watch_items(const struct machine *m, tri_run *run) {
    for (int i = 0; machine_program(m, i); i++) {
        machine_program(m, i)->before = before_item;
        machine_program(m, i)->user = run;
    }
}

/* processes: how many have such an executable. `rest` borrows the memory of `whole`, and `whole`
 * that of the steps: no two of them run at a time. */
static tri_status plan(tri_run *run, struct machine *m, int64_t batch, int processes) {
    bool rest = m == &run->evaluation->rest;
    const struct machine *whole = &run->evaluation->whole;
    tri_options o = run->options;
    o.forward = true;
    o.batch = batch;
    o.lanes = 1;
    o.amp = NULL; /* the model has its precision already */
    const struct machine *last = &run->executable[run->n_executables - 1];
    const struct machine_place place = {.dev = run->dev,
                                        .team = run->team,
                                        .store = &run->store,
                                        .lender = rest ? whole : run->executable,
                                        .previous = rest ? whole : last,
                                        .processes = processes};
    return machine_plan(run->model, &o, &place, m);
}

static tri_status settle(tri_run *run, struct machine *m) {
    const int64_t limit = run->options.memory_limit;
    tri_status status = m->shared ? TRI_OK : budget_check(m, &run->store, limit);
    if (status)
        return base_fail(status, "an evaluation, %lld samples at a time: %s", (long long)m->batch,
                         tri_message());
    status = machine_allocate(m, &m->options);
    if (!status) watch_items(m, run);
    return status;
}

static tri_status make(tri_run *run, struct machine *m, int64_t batch) {
    struct evaluation *e = run->evaluation;
    if (m->compiled && m->batch == batch) return TRI_OK;
    machine_free(&e->rest);
    if (m == &e->whole) machine_free(&e->whole);
    tri_status status = plan(run, m, batch, 1);
    return status ? status : settle(run, m);
}

static void forget_results(const struct machine *m) {
    for (int i = 0; i < m->n_outputs; i++) m->output[i].result = NAN;
}

/* The same for all workers. */
static int64_t batch_of(const tri_run *run, const tri_data *data) {
    int64_t size = tri_data_size(data);
    return run->executable->batch < size ? run->executable->batch : size;
}

static tri_status begin(tri_run *run) {
    if (!run->evaluation) run->evaluation = calloc(1, sizeof *run->evaluation);
    return run->evaluation ? TRI_OK : base_no_memory("an evaluation");
}

tri_status evaluation_plan(tri_run *run, const tri_data *data) {
    int64_t batch = batch_of(run, data), rest = tri_data_size(data) % batch;
    int processes = run->executable->processes;
    tri_status status = begin(run);
    if (!status) status = plan(run, &run->evaluation->whole, batch, processes);
    if (!status && rest) status = plan(run, &run->evaluation->rest, rest, processes);
    return status ? status : feed_match(&run->evaluation->whole, data);
}

const struct machine *evaluation_machine(const tri_run *run) {
    const struct evaluation *e = run->evaluation;
    return !e ? &run->executable[run->n_executables - 1] : e->rest.compiled ? &e->rest : &e->whole;
}

tri_status evaluation_settle(tri_run *run) {
    struct evaluation *e = run->evaluation;
    tri_status status = settle(run, &e->whole);
    forget_results(&e->whole);
    return !status && e->rest.compiled ? settle(run, &e->rest) : status;
}

/* ---- a batch ---- */

/* Sets evaluation->sums. */
static tri_status compute_with(tri_run *run, struct machine *m, tri_data *data, int64_t first) {
    double *sums = run->evaluation->sums;
    tri_status status = feed_match(m, data);
    char *spare = status ? NULL : malloc(m->feed.spare_bytes + 1);
    if (!status && !spare) status = base_no_memory("a sample");
    for (int64_t row = 0; row < m->batch && !status; row++) {
        const struct feed_place to = {machine_buffer(m, 0), spare, row};
        note_progress(run);
        status = feed_row(m, data, &to, first + row, 0, run->options.seed);
    }
    free(spare);
    if (status) return status;
    feed_commit(m);
    run->fault.failed = false;
    bool done = machine_step(m, run->options.seed, 0, &run->fault);
    if (!done && run->fault.sample) {
        struct text name = {0};
        data_name_sample(data, first + run->fault.sample - 1, &name);
        if (!name.failed) fault_add(&run->fault, ", %s", name.data);
        text_free(&name);
    }
    if (!done)
        return base_fail(TRI_FAILED, "evaluation, samples %lld to %lld: %s", (long long)first,
                         (long long)(first + m->batch - 1), run->fault.text);
    for (int i = 0; i < m->n_outputs; i++) {
        const struct run_output *o = &m->output[i];
        sums[i] = o->spec.shape.rank ? 0 : machine_value(m, o) * (double)m->batch;
    }
    return TRI_OK;
}

static tri_status compute(tri_run *run, tri_data *data, int64_t number) {
    struct evaluation *e = run->evaluation;
    int64_t first = number * e->whole.batch, left = tri_data_size(data) - first;
    e->number = number;
    note_progress(run);
    if (left >= e->whole.batch) return compute_with(run, &e->whole, data, first);
    tri_status status = make(run, &e->rest, left);
    return status ? status : compute_with(run, &e->rest, data, first);
}

/* Publishes the batch in the queue. One that failed is computed again by the process that adds up,
 * which reports why. */
static tri_status compute_claimed(tri_run *run, tri_data *data, const struct eval_queue *queue,
                                  int64_t number) {
    struct evaluation *e = run->evaluation;
    int64_t began = base_now();
    tri_status status = compute(run, data, number);
    eval_queue_put(queue, number, status ? NULL : e->sums);
    int64_t took = base_now() - began;
    if (took > e->slowest) e->slowest = took;
    return status;
}

static tri_status start(tri_run *run, const tri_data *data) {
    struct evaluation *e = run->evaluation;
    tri_status status = make(run, &e->whole, batch_of(run, data));
    if (status) return status;
    size_t n = (size_t)e->whole.n_outputs + 1;
    free(e->sum);
    e->sum = calloc(2 * n, sizeof *e->sum);
    if (!e->sum) return base_no_memory("an evaluation");
    e->sums = e->sum + n;
    forget_results(&e->whole);
    return TRI_OK;
}

/* ---- all batches ---- */

struct wanted {
    const tri_run *run;
    const struct eval_queue *queue;
    int64_t batch, until;
};

static bool is_settled(void *arg) {
    const struct wanted *w = arg;
    return !eval_queue_in_flight(w->queue, w->batch) || run_is_asked_to_end(w->run) ||
           base_now() > w->until;
}

/* Gets the sums of a batch. This process first computes the batches that nobody has claimed, then
 * waits for the one that another computes, but not for long: then it computes that itself. The
 * agent releases the claims of the dead. */
static tri_status obtain(tri_run *run, tri_data *data, struct eval_queue *queue, int64_t k,
                         const double **sums) {
    struct evaluation *e = run->evaluation;
    *sums = NULL;
    for (int64_t b; queue && !run_is_asked_to_end(run);) {
        *sums = eval_queue_find(queue, k);
        if (*sums || (b = eval_queue_claim(queue, k)) < 0) break;
        tri_status status = compute_claimed(run, data, queue, b);
        if (status) return status;
    }
    if (queue && queue->queue && !*sums) {
        struct wanted w = {run, queue, k, wait_late(e->slowest)};
        wait_until(queue->queue, WAIT_CROWDED, is_settled, &w, w.until, queue->heartbeat);
        *sums = eval_queue_find(queue, k);
    }
    if (run_is_asked_to_end(run))
        return base_fail(TRI_STOPPED, "the evaluation was interrupted: the run was asked to end");
    if (*sums) return TRI_OK;
    *sums = e->sums;
    return compute(run, data, k);
}

static tri_status add_up(tri_run *run, tri_data *data, struct eval_queue *queue) {
    struct evaluation *e = run->evaluation;
    tri_status status = TRI_OK;
    int64_t batches = evaluation_batches(run, data);
    for (int64_t k = 0; k < batches && !status; k++) {
        const double *sums;
        status = obtain(run, data, queue, k, &sums);
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

tri_status evaluation_compute_next(tri_run *run, tri_data *data, struct eval_queue *queue,
                                   bool *found) {
    *found = false;
    tri_status status = begin(run);
    if (!status) status = start(run, data);
    if (status) return status;
    CHECK(queue->values == run->evaluation->whole.n_outputs);
    int64_t k = eval_queue_claim(queue, 0);
    *found = k >= 0;
    return *found ? compute_claimed(run, data, queue, k) : TRI_OK;
}

tri_status evaluation_run(tri_run *run, tri_data *data, struct eval_queue *queue) {
    double began = base_seconds();
    run->executor->at(run, CREW_AT_EVALUATE, -1);
    tri_status status = begin(run);
    if (!status) status = machine_keep_outputs(run->machine);
    if (!status) status = start(run, data);
    if (!status) status = add_up(run, data, queue);
    run->executor->at(run, run->options.forward ? CREW_AT_REST : CREW_AT_CALLBACK, -1);
    run->record->aside += base_seconds() - began;
    return status;
}

tri_status tri_evaluate(tri_run *run, tri_data *data) {
    return run && data ? evaluation_run(run, data, NULL) : TRI_FAILED;
}

static const struct run_output *find_result(const tri_run *run, const char *name) {
    const struct run_output *o =
        run && run->evaluation ? machine_output(&run->evaluation->whole, name) : NULL;
    return o && !o->spec.shape.rank ? o : NULL;
}

bool evaluation_has(const tri_run *run, const char *name) { return find_result(run, name) != NULL; }

double tri_result(const tri_run *run, const char *name) {
    const struct run_output *o = find_result(run, name);
    return o ? o->result : NAN;
}

void evaluation_free(struct evaluation *e) {
    if (!e) return;
    machine_free(&e->whole);
    machine_free(&e->rest);
    free(e->sum);
    free(e);
}
