/* SPDX-License-Identifier: Apache-2.0
 * An evaluation by all workers: who reports begins it and adds up; who waits for the next step computes batches
 * meanwhile. Nobody has to: without the others the one who reports computes all, and it waits for none of them long. */
#include "data/data.h"
#include "run/worker_inside.h"

/* Of data that one process alone can read no other has any. */
static bool shares(const tri_run *run) { return run->judge.data && !run->judge.data->alone; }

uint64_t crew_evaluation_bytes(const tri_run *run, int64_t *batches) {
    *batches = shares(run) ? evaluation_batches(run, run->judge.data) : 0;
    return *batches ? share_bytes(*batches, evaluation_machine(run)->n_outputs) : 0;
}

void crew_evaluation_bind(struct crew *c, const tri_run *run) {
    struct crew_head *h = c->head;
    if (!h->n_batches) return;
    share_bind(&c->evaluation, c->base + h->evaluation, h->n_batches, evaluation_machine(run)->n_outputs);
    c->evaluation.bell = &h->event;
    c->evaluation.owner = c->place;
}

void crew_at_batch(struct crew *c, int64_t batch) {
    c->batch = batch;
    crew_note(&c->oar[0], CREW_AT_EVALUATE, batch < INT32_MAX ? (int)batch : -1, -1);
}

tri_status crew_evaluate(struct crew *c, tri_run *run, tri_data *data) {
    struct crew_head *h = c->head;
    if (!c->evaluation.word) return tri_evaluate(run, data);
    share_begin(&c->evaluation, (uint64_t)run->done);
    atomic_store(&h->evaluated, (uint64_t)run->done);
    BOARD_POINT("begin evaluation");
    crew_notify(h);
    tri_status status = evaluation_run(run, data, &c->evaluation);
    atomic_store(&h->evaluated, 0);
    BOARD_POINT("end evaluation");
    return status;
}

/* One that has died evaluating has left the step there: who reports after it makes the same evaluation, and finds
 * what has been computed meanwhile. */
bool crew_evaluation_waits(struct crew *c) {
    struct share *s = &c->evaluation;
    uint64_t step = atomic_load(&c->head->evaluated);
    if (!step || !s->word || crew_rank(c) < 0 || crew_reports(c)) return false;
    if (s->step != (uint32_t)step) share_begin(s, step);
    return share_left(s);
}

/* What it cannot compute is told by who adds up, who meets the same. */
void crew_evaluation_help(struct crew *c, tri_run *run) {
    bool drawn;
    evaluation_draw(run, run->judge.data, &c->evaluation, &drawn);
    if (!drawn) c->evaluation.next = c->evaluation.batches;
}
