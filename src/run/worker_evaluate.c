/* SPDX-License-Identifier: Apache-2.0
 * An evaluation by all workers. The reporter begins it and adds up; workers that wait for the next
 * step compute batches meanwhile. The reporter needs none of them: alone it computes all batches,
 * and it waits for no other worker for long. */
#include "data/data.h"
#include "run/evaluate.h"
#include "run/policy.h"
#include "run/worker_inside.h"

/* No if the data can be read by one process only. */
static bool is_shared(const tri_run *run) {
    return run->policy->data && !run->policy->data->alone;
}

void worker_evaluation_size(const tri_run *run, struct region *out) {
    out->n = is_shared(run) ? evaluation_batches(run, run->policy->data) : 0;
    out->bytes = eval_queue_bytes(1, evaluation_machine(run)->n_outputs);
}

void worker_evaluation_bind(struct worker *c, const tri_run *run) {
    struct crew_head *h = c->head;
    const int64_t batches = c->region[REGION_EVALUATION].n;
    if (!batches) return;
    eval_queue_bind(&c->evaluation, worker_region(c, REGION_EVALUATION, 0), batches,
                    evaluation_machine(run)->n_outputs);
    c->evaluation.queue = &h->event;
    c->evaluation.owner = c->context->number;
    c->evaluation.heartbeat = &c->context[0].shared->heartbeat;
}

tri_status worker_evaluate(struct worker *c, tri_run *run, tri_data *data) {
    struct crew_head *h = c->head;
    if (!c->evaluation.word) return tri_evaluate(run, data);
    eval_queue_begin(&c->evaluation, (uint64_t)run->done);
    atomic_store(&h->course.evaluated, (uint64_t)run->done);
    CLAIM_POINT("begin evaluation");
    crew_notify(h);
    tri_status status = evaluation_run(run, data, &c->evaluation);
    atomic_store(&h->course.evaluated, 0);
    CLAIM_POINT("end evaluation");
    return status;
}

/* If the reporter dies while it evaluates, head->evaluated keeps the step. The next reporter makes
 * the same evaluation and uses the batches that are done by then. */
bool worker_evaluation_waits(struct worker *c) {
    struct eval_queue *q = &c->evaluation;
    uint64_t step = atomic_load(&c->head->course.evaluated);
    if (!step || !q->word || worker_rank(c) < 0 || worker_reports(c)) return false;
    if (q->step != (uint32_t)step) eval_queue_begin(q, step);
    return eval_queue_left(q);
}

/* A failure is ignored here: the reporter computes the batch again and reports it. */
void worker_evaluation_help(struct worker *c, tri_run *run) {
    bool found;
    evaluation_compute_next(run, run->policy->data, &c->evaluation, &found);
    if (!found) c->evaluation.next = c->evaluation.batches;
}
