/* SPDX-License-Identifier: Apache-2.0
 * A worker's lanes: drawn from the board, or left to who would end them sooner; computed once more for
 * one who is slow with them. */
#include <stdio.h>
#include <string.h>

#include "data/data.h"
#include "run/loader.h"
#include "run/worker_inside.h"

/* ---- the samples ---- */

/* The samples of a lane, which the program then finds. */
static bool fetch_lane(struct worker *c, struct thread_context *o, struct program *p, int lane, struct tri_fault *fault) {
    struct machine *m = c->run->machine;
    const struct loader_wish w = {o->number - c->place * c->threads, (int64_t)c->step, lane, &o->shared->turns};
    char *buffer = NULL;
    worker_note(o, CREW_AT_DATA, lane, -1);
    tri_status status = c->run->data ? loader_fetch(c->run->loader, &w, &buffer) : TRI_OK;
    machine_bind_rows(m, p, buffer, lane_first(m->batch, m->lanes, lane));
    o->fetched = base_now() - o->began;
    worker_spend(&o->shared->data, o->began);
    if (!status) return true;
    fault->failed = true;
    base_format(fault->text, sizeof fault->text, "%s", tri_message());
    return false;
}

/* ---- one lane ---- */

/* Before each operator of a lane: says which, learns how long the one before took. */
static bool before_item(void *user, const struct program *p, size_t item) {
    struct thread_context *o = user;
    (void)p;
    int64_t began = o->began;
    worker_note(o, CREW_AT_LANE, o->lane, o->name + (int)item);
    if (item) {
        _Atomic int64_t *slowest = &o->worker->slowest[o->name + (int)item - 1];
        if (o->began - began > atomic_load_explicit(slowest, memory_order_relaxed))
            atomic_store_explicit(slowest, o->began - began, memory_order_relaxed);
    }
    struct board *b = &o->worker->run->machine->tree[o->k].board;
    return !worker_over(o->worker) &&
           (o->audits || !board_lost(b, (uint32_t)o->worker->step, o->number, o->lane));
}

/* Two who compute the same lane write the same. But who is late must not write into a later step's rows:
 * so it says what it is about to write, and looks then whether the step is still under way; and no step
 * is opened as long as somebody writes into the rows that it will use (worker_rows_are_free). */
static void write_rows(struct worker *c, struct thread_context *o, const struct program *p, int lane) {
    struct machine *m = c->run->machine;
    atomic_store(&o->shared->rows, c->step);
    if (!worker_over(c)) machine_collect_rows(m, p, lane);
    atomic_store(&o->shared->rows, 0);
}

bool worker_rows_are_free(void *arg) {
    const struct worker *c = arg;
    uint64_t next = atomic_load(&c->head->committed) + 1;
    for (int i = 0; i < c->head->places * c->threads; i++) {
        uint64_t step = atomic_load(&c->head->thread[i].rows);
        if (step && step + 1 < next) return false;
    }
    return true;
}

/* With the whole team, if that has one lane's programs only. */
static bool compute(struct worker *c, struct thread_context *o, int thread, int lane, char *slot,
                    struct program_step *step) {
    struct machine *m = c->run->machine;
    struct team *team = m->n_threads > 1 ? NULL : worker_team(c, m->lanes);
    struct program *p = machine_lane_program(m, &m->thread[thread], o->k, lane);
    step->sample = lane_first(m->batch, m->lanes, lane);
    o->lane = lane;
    o->name = c->now->first_name[2 * o->k + (p != (o->k ? &m->thread[thread].lane[0]
                                                   : &m->thread[thread].count[0]))];
    tree_bind_outputs(&m->tree[o->k], p, slot);
    p->before = before_item;
    p->user = o;
    bool done = fetch_lane(c, o, p, lane, step->fault) && program_run(p, team, step);
    if (done && o->k == 1 && !finite_lane(m, p)) {
        finite_explain(m, p, 0, lane, step);
        done = false;
    }
    p->before = NULL;
    if (done && o->k == 1 && machine_rows_bytes(m)) write_rows(c, o, p, lane);
    return done;
}

static void learn(_Atomic int64_t *time, int64_t took) {
    int64_t old = atomic_load_explicit(time, memory_order_relaxed);
    atomic_store_explicit(time, old ? old + (took - old) / 4 : took, memory_order_relaxed);
}

/* The lowest lane's is kept. */
static void keep_fault(const struct worker *c, struct crew_thread *h, int lane, struct tri_fault *fault) {
    int before = atomic_load(&h->failed_lane);
    if (before >= 0 && before <= lane) return;
    loader_name_sample(c->run->loader, (int64_t)c->step, fault);
    memcpy(h->fault, fault->text, sizeof h->fault);
    atomic_store(&h->failed_lane, lane);
}

static struct program *program_of(const struct worker_stage *s, const struct tree_thread *h, int lane) {
    struct machine *m = s->c->run->machine;
    return machine_lane_program(m, &m->thread[h->local], s->k, lane);
}

/* Another's lane once more, to compare. */
static void audit(struct worker_stage *s, const struct tree_thread *h, int lane) {
    struct tree *t = &s->c->run->machine->tree[s->k];
    char *slot = tree_slot(t, h, lane);
    s->context->audits = true;
    if (compute(s->c, s->context, h->local, lane, slot, &s->step))
        worker_audit_compare(s->c, lane, program_of(s, h, lane), h->thread);
    else
        worker_audit_drop(s->c, lane, h->thread);
    s->context->audits = false;
    tree_drop(t, h, lane, slot);
}

/* again: it is another's, who is slow with it. */
static void run_lane(struct worker_stage *s, const struct tree_thread *h, int lane, char *slot, bool again) {
    struct worker *c = s->c;
    struct thread_context *o = s->context;
    struct tree *t = &c->run->machine->tree[s->k];
    int64_t began = base_now();
    bool first = true;
    atomic_store(&o->shared->lane_began, began);
    s->step.fault->failed = false;
    bool done = compute(c, o, h->local, lane, slot, &s->step);
    worker_spend(&o->shared->compute, began);
    if (done) {
        if (s->k == 1) worker_audit_note(c, lane, program_of(s, h, lane), h->thread);
        if (s->k == 1) learn(&o->shared->lane_time, base_now() - began);
        if (s->k == 1) learn(&o->shared->pure_time, base_now() - began - o->fetched);
        worker_note(o, CREW_AT_SUM, lane, -1);
        if (!again && !board_left(&t->board, h->step) && worker_leaves(s))
            tree_leave(t, h, lane, slot);
        else
            first = again ? tree_put_for(t, h, lane, slot, &s->step) : tree_put(t, h, lane, slot, &s->step);
        worker_spend(&o->shared->reduce, o->began);
    } else if (again) {
        tree_drop(t, h, lane, slot);
        first = false;
    } else {
        if (s->step.fault->failed && !worker_over(c)) keep_fault(c, o->shared, lane, s->step.fault);
        tree_fail(t, h, lane, slot);
    }
    atomic_store(&o->shared->lane_began, 0);
    atomic_fetch_add_explicit(first ? &o->shared->lanes_done : &o->shared->lanes_lost, 1,
                              memory_order_relaxed);
    crew_notify(c->head);
}

/* ---- who does it sooner ---- */

#define MUCH_SLOWER 2

/* Asked where there is nothing else left to be done: its time runs from then on. The quickest of those who take part
 * never leaves anything. */
bool worker_leaves(struct worker_stage *s) {
    const struct worker *c = s->c;
    int64_t takes = atomic_load(&s->context->shared->pure_time), least = takes;
    if (s->leaves) return s->leaves > 0 && base_now() < s->leaves;
    for (int i = 0; takes && i < c->head->places * c->threads; i += s->alone ? c->threads : 1) {
        int64_t t = atomic_load(&c->head->thread[i].pure_time);
        if (t && t < least && atomic_load(&c->head->worker[i / c->threads].rank) >= 0) least = t;
    }
    s->leaves = takes > MUCH_SLOWER * least ? base_now() + MUCH_SLOWER * least : -1;
    return s->leaves > 0;
}

#define MARGIN 0.9 /* so much of its own time another must need at most */

/* How long until this hand has ended its lane: what lanes take it; if it is late already, as long again
 * as it is late. */
static int64_t busy_for(const struct crew_thread *h, int64_t now) {
    int64_t began = atomic_load(&h->lane_began), takes = atomic_load(&h->lane_time);
    if (!began) return 0;
    int64_t left = takes - (now - began);
    return left > 0 ? left : -left;
}

/* Of the other hands' lanes: another would have done all that are left by then; INT64_MAX: there is no
 * other, or nothing is known of it. */
static int64_t others_end(const struct worker_stage *s, int left, int64_t now) {
    int64_t ready[CREW_MOST_THREADS], takes[CREW_MOST_THREADS], last = 0;
    const struct worker *c = s->c;
    int n = 0;
    for (int i = 0; i < c->head->places * c->threads; i++) {
        const struct crew_thread *h = &c->head->thread[i];
        int64_t t = atomic_load(&h->lane_time);
        if (h == s->context->shared || !t || atomic_load(&c->head->worker[i / c->threads].rank) < 0)
            continue;
        ready[n] = busy_for(h, now);
        takes[n++] = t;
    }
    for (; left > 0 && n; left--) {
        int best = 0;
        for (int i = 1; i < n; i++)
            if (ready[i] + takes[i] < ready[best] + takes[best]) best = i;
        ready[best] += takes[best];
        if (ready[best] > last) last = ready[best];
    }
    return n ? last : INT64_MAX;
}

/* Whether all lanes that are left will be done by others before this hand could do one. The quickest of
 * all never thinks so. If none has been drawn when that time is over, this hand draws after all; and it
 * trusts itself a little more each time, for what made it slow may have passed. */
static bool better_not(struct worker_stage *s, struct board *b) {
    _Atomic int64_t *own = &s->context->shared->lane_time;
    int64_t takes = atomic_load(own), now = base_now();
    int left = takes ? board_left(b, (uint32_t)s->c->step) : 0;
    if (!left || left == s->left || left > 4 * worker_size(s->c) * s->c->threads) return false;
    int64_t end = others_end(s, left, now);
    if ((double)end >= MARGIN * (double)takes) return false;
    atomic_store(own, takes - takes / 16);
    s->until = now + end + end / 2;
    s->left = left;
    return true;
}

static bool anybody_again(const struct worker *c, int lane) {
    for (int i = 0; i < c->head->places * c->threads; i++)
        if (atomic_load(&c->head->thread[i].again) == lane + 1) return true;
    return false;
}

/* A lane that another is at and that this hand would end sooner; -1: none. */
static int slow_lane(const struct worker_stage *s) {
    const struct worker *c = s->c;
    struct board *b = &c->run->machine->tree[s->k].board;
    int64_t takes = atomic_load(&s->context->shared->lane_time), now = base_now();
    if (s->k != 1 || !takes) return -1;
    for (int lane = 0, owner; lane < b->tree->lanes; lane++)
        if (board_in_flight(b, (uint32_t)c->step, s->context->number, lane, &owner) &&
            MARGIN * (double)busy_for(&c->head->thread[owner], now) > (double)takes &&
            !anybody_again(c, lane))
            return lane;
    return -1;
}

static bool try_again(struct worker_stage *s, const struct tree_thread *h) {
    int lane = slow_lane(s);
    char *slot = lane < 0 ? NULL : tree_spare_slot(&s->c->run->machine->tree[s->k], h, lane);
    if (!slot) return false;
    atomic_store(&s->context->shared->again, lane + 1);
    run_lane(s, h, lane, slot, true);
    atomic_store(&s->context->shared->again, 0);
    return true;
}

/* ---- all lanes ---- */

/* Whether all lanes are there, and have been audited. */
static bool ended(const struct worker_stage *s, int *failed) {
    return board_complete(&s->c->run->machine->tree[s->k].board, (uint32_t)s->c->step, failed) &&
           (s->k != 1 || !worker_audit_pending(s->c));
}

static bool changed(void *arg) {
    struct worker_stage *s = arg;
    struct board *b = &s->c->run->machine->tree[s->k].board;
    uint32_t step = (uint32_t)s->c->step;
    int failed;
    bool left = board_left(b, step) > 0;
    return worker_over(s->c) || ended(s, &failed) || failed >= 0 ||
           (board_has_orphan(b, step) && (left || !worker_leaves(s))) ||
           (s->k == 1 && worker_audit_waits(s->c)) || (left ? base_now() > s->until : slow_lane(s) >= 0);
}

/* Whether the stage goes on for this hand. */
static bool wait_for_others(struct worker_stage *s) {
    struct board *b = &s->c->run->machine->tree[s->k].board;
    struct thread_context *o = s->context;
    int failed;
    if (worker_over(s->c) || ended(s, &failed)) return false;
    if (failed >= 0) {
        int thread = claim_read(&b->node[failed]).owner;
        worker_fail_step(s->c, s->c->head->thread[thread].fault);
        return false;
    }
    worker_note(o, CREW_AT_WAIT, -1, -1);
    bool left = board_left(b, (uint32_t)s->c->step) > 0;
    int64_t soon = base_now() + atomic_load(&o->shared->lane_time);
    if (!left && worker_leaves(s) && s->leaves < soon) soon = s->leaves;
    crew_until_or(s->c->head, changed, s, left ? s->until : soon, &o->shared->turns);
    worker_spend(&o->shared->wait, o->began);
    return true;
}

static int draw(struct worker_stage *s, struct board *b, const struct tree_thread *h) {
    const struct worker *c = s->c;
    int each = c->run->machine->n_threads;
    int ranks = worker_size(c) * each, rank = worker_rank(c) * each + h->local;
    s->until = 0;
    if (rank < 0) return -1; /* a spare: it audits */
    if (s->k == 1 && better_not(s, b)) return -1;
    return board_draw(b, h->step, h->thread, rank, ranks);
}

void worker_run_lanes(void *arg, int thread) {
    struct worker_stage s = *(struct worker_stage *)arg;
    struct worker *c = s.c;
    struct tree *t = &c->run->machine->tree[s.k];
    struct tri_fault fault = {0};
    if (thread >= c->run->machine->n_threads) return;
    s.context = &c->context[thread];
    s.context->k = s.k;
    s.alone = c->run->machine->n_threads <= 1;
    atomic_store(&s.context->shared->failed_lane, -1);
    s.step.fault = &fault;
    struct tree_thread h = {(uint32_t)c->step, s.context->number, thread};
    for (bool go = true; go && !worker_over(c);) {
        bool leaves = !board_left(&t->board, h.step) && worker_leaves(&s); /* and draws none: sums are made before */
        int node = leaves ? -1 : board_orphan(&t->board, h.step, h.thread), lane;
        if (node >= 0) { /* before new lanes: each that is left would keep slots */
            worker_note(s.context, CREW_AT_SUM, -1, -1);
            tree_sum(t, &h, node, &s.step);
            crew_notify(c->head);
        } else if (!leaves && (lane = draw(&s, &t->board, &h)) >= 0) {
            if (!atomic_load(&worker_self(c)->drew_lane)) atomic_store(&worker_self(c)->drew_lane, base_now());
            run_lane(&s, &h, lane, tree_slot(t, &h, lane), false);
        } else if (s.k == 1 && (lane = worker_audit_draw(c, h.thread)) >= 0) {
            audit(&s, &h, lane);
        } else if (!try_again(&s, &h)) {
            go = wait_for_others(&s);
        }
    }
    worker_rest(s.context);
}
