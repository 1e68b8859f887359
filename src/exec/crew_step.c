/* SPDX-License-Identifier: Apache-2.0
 * A worker's part in the steps: lanes and sums, drawn from the board; then the update's tasks, sweep by
 * sweep. Every stage of a step ends when its words say so, whoever has written them: a worker that
 * comes late, or anew, finds out where the step stands by reading them. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "data/data.h"
#include "exec/crew.h"
#include "exec/crew_layout.h"

/* ---- what a hand is at ---- */

static void note(struct crew_oar *o, enum crew_at at, int lane, int item) {
    struct crew_hand *h = o->hand;
    int64_t now = crew_now();
    atomic_store_explicit(&h->since, now, memory_order_relaxed);
    atomic_store_explicit(&h->lane, lane, memory_order_relaxed);
    atomic_store_explicit(&h->item, item, memory_order_relaxed);
    atomic_store_explicit(&h->step, (uint32_t)o->crew->step, memory_order_relaxed);
    atomic_store_explicit(&h->at, (int)at, memory_order_relaxed);
    atomic_store_explicit(&h->turns, atomic_load_explicit(&h->turns, memory_order_relaxed) + 1,
                          memory_order_release);
    o->began = now;
}

static void spend(_Atomic int64_t *sum, int64_t since) {
    atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + crew_now() - since,
                          memory_order_relaxed);
}

static bool over(const struct crew *c) {
    return atomic_load(&c->head->committed) >= c->step || atomic_load(&c->head->ending);
}

/* Before each operator of a lane: says which, learns how long the one before took. */
static bool before_item(void *user, const struct program *p, size_t item) {
    struct crew_oar *o = user;
    (void)p;
    int64_t began = o->began;
    note(o, CREW_AT_LANE, o->lane, o->name + (int)item);
    if (item) {
        _Atomic int64_t *slowest = &o->crew->slowest[o->name + (int)item - 1];
        if (o->began - began > atomic_load_explicit(slowest, memory_order_relaxed))
            atomic_store_explicit(slowest, o->began - began, memory_order_relaxed);
    }
    return !over(o->crew);
}

/* ---- a lane ---- */

/* Steps are counted from 0 here. */
static tri_status fetch_rows(tri_run *run, uint64_t step, int64_t first, int64_t n) {
    tri_status status = TRI_OK;
    sampler_seek(&run->sampler, (int64_t)step);
    for (int64_t row = first; row < first + n && !status; row++) {
        uint64_t index;
        sampler_take(&run->sampler, row, 1, &index);
        status = feed_sample(&run->machine, run->data, row, (int64_t)index, run->sampler.epoch,
                             run->options.seed);
    }
    return status;
}

/* The samples of a lane, unless they are there. A source that knows only its next sample is read
 * through by every worker. */
static tri_status fetch(struct crew *c, int lane) {
    tri_run *run = c->run;
    struct machine *m = &run->machine;
    int64_t first = lane_first(m->batch, m->lanes, lane), n = lane_samples(m->batch, m->lanes, lane);
    if (!run->data || c->fetched[lane] == (int64_t)c->step) return TRI_OK;
    tri_status status = TRI_OK;
    for (; run->data->sequential && c->read < c->step && !status; c->read++)
        status = fetch_rows(run, c->read, 0, m->batch);
    if (!run->data->sequential) status = fetch_rows(run, c->step - 1, first, n);
    if (!status) c->fetched[lane] = (int64_t)c->step;
    return status;
}

static bool fetch_lane(struct crew *c, struct crew_oar *o, int lane, struct tri_fault *fault) {
    note(o, CREW_AT_DATA, lane, -1);
    pthread_mutex_lock(&c->fetching);
    tri_status status = fetch(c, lane);
    pthread_mutex_unlock(&c->fetching);
    spend(&o->hand->data, o->began);
    if (!status) return true;
    fault->failed = true;
    base_format(fault->text, sizeof fault->text, "%s", tri_message());
    return false;
}

static bool compute(struct crew *c, struct crew_oar *o, int thread, int lane, char *slot,
                    struct program_step *step) {
    struct machine *m = &c->run->machine;
    struct program *p = machine_lane_program(m, &m->worker[thread], o->k, lane);
    step->sample = lane_first(m->batch, m->lanes, lane);
    o->lane = lane;
    o->name = c->first_name[2 * o->k + (p != (o->k ? &m->worker[thread].lane[0]
                                                   : &m->worker[thread].count[0]))];
    machine_bind_rows(m, p, step->sample);
    tree_bind_outputs(&m->tree[o->k], p, slot);
    p->before = before_item;
    p->user = o;
    bool done = fetch_lane(c, o, lane, step->fault) && program_run(p, NULL, step);
    p->before = NULL;
    if (done && o->k == 1) machine_collect_rows(m, p, lane);
    return done;
}

static void learn_lane_time(struct crew_hand *h, int64_t took) {
    int64_t old = atomic_load_explicit(&h->lane_time, memory_order_relaxed);
    atomic_store_explicit(&h->lane_time, old ? old + (took - old) / 4 : took, memory_order_relaxed);
}

static void run_lane(struct crew *c, int thread, const struct tree_hand *h, int lane,
                     struct program_step *step) {
    struct crew_oar *o = &c->oar[thread];
    struct tree *t = &c->run->machine.tree[o->k];
    int64_t began = crew_now();
    char *slot = tree_slot(t, h, lane);
    step->fault->failed = false;
    if (!compute(c, o, thread, lane, slot, step)) {
        struct crew_hand *hand = o->hand;
        int before = atomic_load(&hand->failed_lane);
        if (step->fault->failed && (before < 0 || lane < before)) {
            memcpy(hand->fault, step->fault->text, sizeof hand->fault);
            atomic_store(&hand->failed_lane, lane);
        }
        tree_fail(t, h, lane, slot);
        return;
    }
    spend(&o->hand->compute, began);
    if (o->k == 1) learn_lane_time(o->hand, crew_now() - began);
    note(o, CREW_AT_SUM, lane, -1);
    tree_put(t, h, lane, slot, step);
    spend(&o->hand->reduce, o->began);
    atomic_fetch_add_explicit(&o->hand->lanes_done, 1, memory_order_relaxed);
}

/* ---- all lanes ---- */

struct stage {
    struct crew *c;
    int k, thread;
    int sweep, from;
    struct program_step step;
};

static void fail_run(struct crew *c, int lane, int hand) {
    struct crew_head *h = c->head;
    snprintf(h->failure, sizeof h->failure, "step %llu: %s", (unsigned long long)c->step,
             h->hand[hand].fault);
    (void)lane;
    atomic_store(&h->ending, CREW_FAILED);
    crew_notify(h);
}

static bool lanes_changed(void *arg) {
    const struct stage *s = arg;
    struct board *b = &s->c->run->machine.tree[s->k].board;
    int failed;
    return over(s->c) || board_left(b, (uint32_t)s->c->step) > 0 ||
           board_complete(b, (uint32_t)s->c->step, &failed) || failed >= 0 ||
           board_has_orphan(b, (uint32_t)s->c->step);
}

/* Whether the stage goes on for this hand. */
static bool wait_for_lanes(struct stage *s, struct crew_oar *o) {
    struct board *b = &s->c->run->machine.tree[s->k].board;
    uint32_t step = (uint32_t)s->c->step;
    int failed;
    if (over(s->c) || board_complete(b, step, &failed)) return false;
    if (failed >= 0) {
        fail_run(s->c, failed, board_unpack(atomic_load(&b->node[failed])).hand);
        return false;
    }
    note(o, CREW_AT_WAIT, -1, -1);
    crew_until(s->c->head, lanes_changed, s, &o->hand->turns);
    spend(&o->hand->wait, o->began);
    return true;
}

static void row_lanes(void *arg, int thread) {
    struct stage s = *(struct stage *)arg;
    struct crew *c = s.c;
    struct crew_oar *o = &c->oar[thread];
    struct tree *t = &c->run->machine.tree[s.k];
    struct tri_fault fault = {0};
    struct tree_hand h = {(uint32_t)c->step, o->number, thread};
    s.thread = thread;
    s.step.fault = &fault;
    o->k = s.k;
    for (bool go = true; go && !over(c);) {
        int ranks = crew_size(c) * c->threads, rank = crew_rank(c) * c->threads + thread;
        int lane = board_draw(&t->board, h.step, h.hand, rank, ranks), node = -1;
        if (lane >= 0) {
            run_lane(c, thread, &h, lane, &s.step);
            crew_notify(c->head);
        } else if ((node = board_orphan(&t->board, h.step, h.hand)) >= 0) {
            note(o, CREW_AT_SUM, -1, -1);
            tree_sum(t, &h, node, &s.step);
            crew_notify(c->head);
        } else {
            go = wait_for_lanes(&s, o);
        }
    }
}

/* ---- the update ---- */

static void commit(struct crew *c) {
    const struct machine *m = &c->run->machine;
    struct crew_head *h = c->head;
    int k = c->step % 2, n = 0;
    atomic_store(&h->values[k].step, 0);
    for (int i = 0; i < m->n_outputs && n < h->n_values; i++)
        if (!m->output[i].spec.shape.rank)
            h->values[k].value[n++] = machine_scalar_now(m, &m->output[i]);
    h->values[k].rate = h->rate;
    atomic_store(&h->values[k].step, c->step);
}

static void run_task(struct stage *s, int task, int64_t part, const struct sweep_hand *h) {
    struct crew *c = s->c;
    const struct task *t = &c->sweeps.task[task];
    if (t->item >= 0) {
        note(&c->oar[h->thread], CREW_AT_UPDATE, -1, c->first_name[4] + t->item);
        sweep_run(&c->sweeps, task, part, h, &s->step);
    } else if (t->item == TASK_UPDATE) {
        const struct sweep_copy *copy = &c->copy[t->update];
        if (!copy->condition || *(const bool *)copy->condition)
            memcpy(copy->target, copy->value, copy->bytes);
    } else {
        commit(c);
    }
    sweep_done(task, h);
}

static bool sweep_changed(void *arg) {
    struct stage *s = arg;
    const struct crew *c = s->c;
    uint32_t step = (uint32_t)c->step;
    return over(c) || sweep_complete(&c->sweeps, s->sweep, c->task, step, &s->from) ||
           sweep_waits(&c->sweeps, s->sweep, c->task, step);
}

static void row_sweep(struct stage *s, const struct sweep_hand *h) {
    struct crew *c = s->c;
    struct crew_oar *o = &c->oar[h->thread];
    while (!over(c)) {
        int64_t part, began = crew_now();
        int task = sweep_draw(&c->sweeps, s->sweep, h, &part);
        if (task >= 0) {
            run_task(s, task, part, h);
            crew_notify(c->head);
            spend(&o->hand->reduce, began);
            continue;
        }
        if (sweep_complete(&c->sweeps, s->sweep, c->task, h->step, &s->from)) return;
        note(o, CREW_AT_WAIT, -1, -1);
        crew_until(c->head, sweep_changed, s, &o->hand->turns);
        spend(&o->hand->wait, o->began);
    }
}

static void row_sweeps(void *arg, int thread) {
    struct stage s = *(struct stage *)arg;
    struct crew *c = s.c;
    struct tri_fault fault = {0};
    struct sweep_hand h = {
        .step = (uint32_t)c->step, .hand = c->oar[thread].number, .thread = thread,
        .rank = crew_rank(c) * c->threads + thread, .ranks = crew_size(c) * c->threads,
        .word = c->task, .undo = crew_undo(c->head, c->base, c->oar[thread].number),
        .base = c->base};
    s.step.fault = &fault;
    for (s.sweep = 0; s.sweep < c->sweeps.n && !over(c); s.sweep++) row_sweep(&s, &h);
}

/* ---- a step ---- */

static void commit_step(struct crew *c) {
    uint64_t before = c->step - 1;
    if (atomic_load(&c->head->ending)) return;
    if (atomic_compare_exchange_strong(&c->head->committed, &before, c->step)) crew_notify(c->head);
}

static void row(struct crew *c, tri_run *run) {
    struct machine *m = &run->machine;
    struct stage s = {.c = c, .step = {.seed = run->options.seed, .step = (int64_t)c->step}};
    struct tri_fault fault = {0};
    s.step.fault = &fault;
    for (int i = 0; i < m->n_scalars; i++) m->scalar[i].value = c->head->scalar[i];
    for (int i = 0; i < m->n_scalars; i++)
        m->dev->copy_in(m->scalar[i].memory, &m->scalar[i].value, sizeof(float));
    machine_rows(m, c->shared.rows[c->step % 2]);
    for (s.k = 0; s.k < 2 && !over(c); s.k++) {
        if (!m->tree[s.k].g) continue;
        if (s.k && m->compilation.pre) program_run(&m->pre, run->team, &s.step);
        team_run(run->team, row_lanes, &s);
        if (!over(c)) machine_bind_tops(m, s.k);
    }
    for (int i = 0; i < m->n_outputs; i++)
        if (m->output[i].tensor)
            m->output[i].memory = program_value(&m->step, m->output[i].tensor->id);
    if (!over(c)) {
        team_run(run->team, row_sweeps, &s);
        commit_step(c);
    }
}

/* What the step has left, also if later ones are done meanwhile. */
static void take_values(struct crew *c, tri_run *run) {
    struct crew_head *h = c->head;
    for (uint64_t step, before;;) {
        step = atomic_load(&h->committed);
        before = atomic_load(&h->values[step % 2].step);
        int n = 0;
        for (int i = 0; i < run->machine.n_outputs && n < h->n_values; i++)
            if (!run->machine.output[i].spec.shape.rank)
                run->machine.output[i].value = h->values[step % 2].value[n++];
        run->rate = h->values[step % 2].rate;
        run->done = (int64_t)step;
        if (before == step && atomic_load(&h->values[step % 2].step) == step) break;
    }
    if (run->data) {
        sampler_seek(&run->sampler, run->done - 1);
        run->epoch = run->sampler.epoch;
    }
}

static void note_memory(const struct crew *c) {
    struct rusage u;
    if (!getrusage(RUSAGE_SELF, &u)) atomic_store(&crew_self(c)->peak, (int64_t)u.ru_maxrss * 1024);
}

static void open_step(struct crew *c, tri_run *run, uint64_t step) {
    struct crew_head *h = c->head;
    struct machine *m = &run->machine;
    run->done = (int64_t)step - 1;
    run->rate = schedule_rate(&run->schedule, run->options.optimizer.lr, (int64_t)step, run->total);
    if (run->lr) run->lr->value = (float)run->rate;
    if (run->number) run->number->value = (float)step;
    h->rate = run->rate;
    for (int i = 0; i < m->n_scalars; i++) h->scalar[i] = m->scalar[i].value;
    for (int k = 0; k < 2; k++)
        if (m->tree[k].g) board_clear(&m->tree[k].board);
    if (!atomic_load(&h->began)) atomic_store(&h->began, crew_now());
    atomic_store(&h->opened, step);
    crew_notify(h);
}

static bool something_to_do(void *arg) {
    const struct crew *c = arg;
    const struct crew_head *h = c->head;
    bool open = atomic_load(&h->opened) > atomic_load(&h->committed);
    return (open && crew_rank(c) >= 0) || atomic_load(&h->ending) ||
           atomic_load(&crew_self(c)->leave) ||
           (crew_reports(c) && (!atomic_load(&h->paused) || atomic_load(&h->stop)));
}

static void end_run(struct crew *c, enum crew_ending how) {
    int none = CREW_RUNS;
    atomic_compare_exchange_strong(&c->head->ending, &none, (int)how);
    crew_notify(c->head);
}

/* The reporter's duty between two steps. False: there is nothing to be opened. */
static bool open_next(struct crew *c, tri_run *run) {
    struct crew_head *h = c->head;
    uint64_t committed = atomic_load(&h->committed);
    if (atomic_load(&h->opened) > committed) return true;
    if ((int64_t)committed >= run->total)
        end_run(c, CREW_FINISHED);
    else if (atomic_load(&h->stop))
        end_run(c, CREW_STOPPED);
    else if (!atomic_load(&h->paused))
        open_step(c, run, committed + 1);
    return !atomic_load(&h->ending);
}

static bool fails(struct crew *c, tri_status *status) {
    if (atomic_load(&c->head->ending) == CREW_FAILED)
        *status = base_fail(TRI_FAILED, "%s", c->head->failure);
    return false;
}

static bool returns(struct crew *c, tri_run *run) {
    take_values(c, run);
    if (crew_reports(c)) c->told = atomic_load(&c->head->committed);
    crew_at(c, CREW_AT_CALLBACK);
    return true;
}

bool crew_step(struct crew *c, tri_run *run, tri_status *status) {
    struct crew_head *h = c->head;
    atomic_store(&h->total, (uint64_t)run->total);
    note_memory(c);
    for (;;) {
        if (crew_reports(c) && !c->reports) crew_turn_output(c);
        uint64_t committed = atomic_load(&h->committed);
        /* What is called back for the latest step may have died with the reporter before. */
        if (crew_reports(c) && committed && c->told < committed && !atomic_load(&h->ending) &&
            atomic_load(&h->opened) == committed)
            return returns(c, run);
        if (atomic_load(&h->ending) || atomic_load(&crew_self(c)->leave)) return fails(c, status);
        if (crew_reports(c) && !open_next(c, run)) return fails(c, status);
        if (atomic_load(&h->opened) > atomic_load(&h->committed) && crew_rank(c) >= 0) {
            c->step = atomic_load(&h->opened);
            row(c, run);
            if (atomic_load(&h->ending) == CREW_FAILED) return fails(c, status);
            if (atomic_load(&h->committed) >= c->step) return returns(c, run);
            continue;
        }
        note(&c->oar[0], CREW_AT_WAIT, -1, -1);
        crew_until(h, something_to_do, c, &c->oar[0].hand->turns);
    }
}

/* ---- the end ---- */

static bool over_or_mine(void *arg) {
    const struct crew *c = arg;
    return atomic_load(&c->head->closed) || crew_reports(c) || atomic_load(&crew_self(c)->leave);
}

bool crew_finish(struct crew *c, tri_run *run) {
    (void)run;
    if (crew_reports(c)) end_run(c, CREW_FINISHED); /* its loop may end before all steps are done */
    crew_until(c->head, over_or_mine, c, &c->oar[0].hand->turns);
    if (crew_reports(c) && !c->reports) crew_turn_output(c);
    crew_at(c, CREW_AT_SAVE);
    return crew_reports(c);
}

void crew_leave(struct crew *c, int code) {
    (void)code;
    if (crew_reports(c)) {
        atomic_store(&c->head->closed, 1);
        crew_notify(c->head);
    }
    atomic_store(&crew_self(c)->state, CREW_LEFT);
    crew_at(c, CREW_AT_LEAVE);
    crew_notify(c->head);
}
