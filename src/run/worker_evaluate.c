/* SPDX-License-Identifier: Apache-2.0
 * An evaluation by all workers: who reports begins it and adds up; who waits for the next step computes batches
 * meanwhile. Nobody has to: without the others the one who reports computes all, and it waits for none of them long. */
#include "data/data.h"
#include "run/evaluate.h"
#include "run/policy.h"
#include "run/worker_inside.h"

/* Of data that one process alone can read no other has any. */
static bool shares(const tri_run *run) { return run->policy->data && !run->policy->data->alone; }

uint64_t worker_evaluation_bytes(const tri_run *run, int64_t *batches) {
    *batches = shares(run) ? evaluation_batches(run, run->policy->data) : 0;
    return *batches ? eval_queue_bytes(*batches, evaluation_machine(run)->n_outputs) : 0;
}

void worker_evaluation_bind(struct worker *c, const tri_run *run) {
    struct crew_head *h = c->head;
    if (!h->n_batches) return;
    eval_queue_bind(&c->evaluation, c->base + h->evaluation, h->n_batches, evaluation_machine(run)->n_outputs);
    c->evaluation.queue = &h->event;
    c->evaluation.owner = c->place;
    c->evaluation.turns = &c->context[0].shared->turns;
}

tri_status worker_evaluate(struct worker *c, tri_run *run, tri_data *data) {
    struct crew_head *h = c->head;
    if (!c->evaluation.word) return tri_evaluate(run, data);
    eval_queue_begin(&c->evaluation, (uint64_t)run->done);
    atomic_store(&h->evaluated, (uint64_t)run->done);
    CLAIM_POINT("begin evaluation");
    crew_notify(h);
    tri_status status = evaluation_run(run, data, &c->evaluation);
    atomic_store(&h->evaluated, 0);
    CLAIM_POINT("end evaluation");
    return status;
}

/* One that has died evaluating has left the step there: who reports after it makes the same evaluation, and finds
 * what has been computed meanwhile. */
bool worker_evaluation_waits(struct worker *c) {
    struct eval_queue *s = &c->evaluation;
    uint64_t step = atomic_load(&c->head->evaluated);
    if (!step || !s->word || worker_rank(c) < 0 || worker_reports(c)) return false;
    if (s->step != (uint32_t)step) eval_queue_begin(s, step);
    return eval_queue_left(s);
}

/* What it cannot compute is told by who adds up, who meets the same. */
void worker_evaluation_help(struct worker *c, tri_run *run) {
    bool drawn;
    evaluation_draw(run, run->policy->data, &c->evaluation, &drawn);
    if (!drawn) c->evaluation.next = c->evaluation.batches;
}
