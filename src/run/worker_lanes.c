/* SPDX-License-Identifier: Apache-2.0
 * A worker's lanes. A thread claims lanes on the board. It leaves the last ones to others that
 * would finish them sooner, and computes a lane again if another thread is slow with it. */
#include <stdio.h>
#include <string.h>

#include "data/data.h"
#include "crew/spans.h"
#include "run/loader.h"
#include "run/worker_inside.h"

/* ---- samples ---- */

bool worker_fetch_lane(struct worker *c, struct thread_context *me, struct program *const *p, int n,
                       int lane, struct tri_fault *fault) {
    struct machine *m = c->run->machine;
    const struct loader_request r = {me->number - c->place * c->threads, (int64_t)c->step, lane,
                                     &me->shared->heartbeat};
    char *buffer = NULL;
    worker_note(me, CREW_AT_DATA, lane, -1);
    tri_status status = c->run->data ? loader_fetch(c->run->loader, &r, &buffer) : TRI_OK;
    for (int i = 0; i < n; i++)
        machine_bind_rows(m, p[i], buffer, lane_first(m->batch, m->lanes, lane));
    me->fetched = base_now() - me->began;
    if (!status) return true;
    fault->failed = true;
    base_format(fault->text, sizeof fault->text, "%s", tri_message());
    return false;
}

/* ---- one lane ---- */

/* Before each operator of a lane: notes it. False: nobody needs the lane any more. */
static bool before_item(void *user, const struct program *p, size_t item) {
    struct thread_context *me = user;
    (void)p;
    worker_note(me, CREW_AT_LANE, me->lane, me->name + (int)item);
    struct board *b = tree_board(&me->worker->run->machine->tree[me->k], me->leg);
    return !worker_over(me->worker) &&
           (me->audits || !board_lost(b, (uint32_t)me->worker->step, me->number, me->lane));
}

/* A bucket's results are there: they will be published and summed, or compared. */
static bool complete(void *user, const struct tree_lane *l, int bucket) {
    struct thread_context *me = user;
    worker_note(me, CREW_AT_SUM, l->lane, -1);
    if (me->audits) worker_audit_compare(me->worker, l, bucket);
    else if (me->k == 1) worker_audit_note(me->worker, l, bucket);
    return !me->audits;
}

/* Two threads that compute the same lane write the same values. But a late thread must not write to
 * the rows of a later step. So it announces the write, then checks that the step is still open; and
 * no step is opened while a thread writes to the rows that it will use (worker_rows_are_free). */
static void write_rows(struct worker *c, struct thread_context *me, const struct program *p,
                       int lane) {
    struct machine *m = c->run->machine;
    atomic_store(&me->shared->rows, c->step);
    if (!worker_over(c)) machine_collect_rows(m, p, me->leg, lane);
    atomic_store(&me->shared->rows, 0);
}

bool worker_rows_are_free(void *arg) {
    const struct worker *c = arg;
    uint64_t next = atomic_load(&c->head->course.committed) + 1;
    for (int i = 0; i < c->head->size.place_threads; i++) {
        uint64_t step = atomic_load(&c->head->thread[i].rows);
        if (step && step + 1 < next) return false;
    }
    return true;
}

/* What a leg reads may have been released while it ran, if another thread has published it. Then
 * results and faults mean nothing. */
static bool is_lost(const struct worker *c, const struct thread_context *me) {
    const struct machine *m = c->run->machine;
    return me->k == 1 && m->pipeline.tracks && !me->audits &&
           board_lost(tree_board(&c->run->machine->tree[1], me->leg), (uint32_t)c->step, me->number,
                      me->lane);
}

/* team: null if there are programs for several lanes at a time. */
static bool compute_with(struct worker *c, struct thread_context *me, struct team *team,
                         struct tree_lane *l, struct program_step *step) {
    struct machine *m = c->run->machine;
    struct program *p = l->p;
    bool together = me->k == 1 && m->members > 1;
    step->sample = lane_first(m->batch, m->lanes, l->lane);
    me->leg = l->leg;
    me->lane = l->lane;
    me->name = c->current->first_name[2 * me->k + l->size];
    p->before = before_item;
    p->user = me;
    bool done = together ? worker_compute_together(c, me, l, step)
                         : worker_fetch_lane(c, me, &p, 1, l->lane, step->fault) &&
                               program_run(p, team, step);
    if (is_lost(c, me)) step->fault->failed = done = false;
    if (done && me->k == 1 && !finite_lane(m, p)) {
        finite_explain(m, p, 0, l->lane, step);
        done = false;
    }
    p->before = NULL;
    if (done && me->k == 1 && machine_bytes(m, REGION_ROWS)) write_rows(c, me, p, l->lane);
    return done;
}

/* All threads that compute the lane say when it began. Members of a replica say so themselves. */
static bool compute(struct worker *c, struct thread_context *me, struct tree_lane *l,
                    struct program_step *step, int64_t began) {
    struct machine *m = c->run->machine;
    struct team *team = m->n_threads > 1 ? NULL : worker_team(c, m->lanes);
    struct thread_context *end = me + (team && m->members == 1 ? c->threads : 1);
    for (struct thread_context *t = me; t < end; t++) atomic_store(&t->shared->lane_began, began);
    bool done = compute_with(c, me, team, l, step);
    for (struct thread_context *t = me + 1; t < end; t++) atomic_store(&t->shared->lane_began, 0);
    return done;
}

static struct tree_lane lane_of(struct worker_stage *s, const struct tree_thread *who, int leg,
                                int lane) {
    struct machine *m = s->c->run->machine;
    int size = machine_lane_size(m, lane);
    struct program *p = s->k == 1 && m->members > 1
                            ? m->member[0].lane[size]
                            : machine_lane_program(m, &m->thread[who->local], s->k, lane);
    struct tree_lane l = {.tree = &m->tree[s->k], .who = *who, .lane = lane, .leg = leg,
                          .size = size, .step = &s->step, .p = p, .complete = complete,
                          .user = s->context};
    return l;
}

static void learn(_Atomic int64_t *time, int64_t took) {
    int64_t old = atomic_load_explicit(time, memory_order_relaxed);
    atomic_store_explicit(time, old ? old + (took - old) / 4 : took, memory_order_relaxed);
}

/* Keeps the fault of the lowest lane. */
void worker_keep_fault(const struct worker *c, struct crew_thread *t, int lane,
                       struct tri_fault *fault) {
    int before = atomic_load(&t->failed_lane);
    if (before >= 0 && before <= lane) return;
    loader_name_sample(c->run->loader, (int64_t)c->step, fault);
    memcpy(t->fault, fault->text, sizeof t->fault);
    atomic_store(&t->failed_lane, lane);
}

/* Computes a leg of another worker again, to compare the results. */
static void audit(struct worker_stage *s, const struct tree_thread *who, int leg, int lane) {
    struct tree_lane l = lane_of(s, who, leg, lane);
    s->context->audits = l.audits = true;
    CHECK(tree_begin(&l));
    if (compute(s->c, s->context, &l, &s->step, base_now())) {
        tree_end(&l, false);
    } else {
        worker_audit_drop(s->c, &l);
        if (!s->c->leaves_slots) tree_drop(&l, false);
    }
    s->context->audits = false;
    atomic_store(&s->context->shared->lane_began, 0);
}

/* again: the lane is another thread's, which is slow with it. */
static void run_lane(struct worker_stage *s, const struct tree_thread *who, int leg, int lane,
                     bool again) {
    struct worker *c = s->c;
    struct thread_context *me = s->context;
    struct tree_lane l = lane_of(s, who, leg, lane);
    int64_t began = base_now();
    bool first = false, legs = worker_has_legs(s);
    int over = legs ? machine_legs_over(c->run->machine, who->step) : 0;
    s->step.fault->failed = false;
    s->busy[again].over = 0;
    if (!tree_begin(&l)) {
        worker_note_busy(s, again, over);
        if (!again) board_release(tree_board(l.tree, leg), who->step, who->thread, lane);
        crew_notify(c->head);
        return;
    }
    bool done = compute(c, me, &l, &s->step, began);
    if (done) {
        int64_t took = base_now() - began - l.closing;
        if (s->k == 1 && !legs) learn(&me->shared->lane_time, took);
        if (s->k == 1 && !legs) learn(&me->shared->pure_time, took - me->fetched);
        if (legs) worker_learn_leg(c, leg, took - me->fetched);
        bool leaves = !again && !legs && !board_left(tree_board(l.tree, leg), who->step, 1) &&
                      worker_defers(s);
        first = tree_end(&l, !leaves);
    } else {
        bool failed = s->step.fault->failed && !again;
        if (failed && !worker_over(c)) worker_keep_fault(c, me->shared, lane, s->step.fault);
        if (!c->leaves_slots) tree_drop(&l, failed);
        else if (failed) board_fail(tree_board(l.tree, leg), who->step, who->thread, lane);
        if (!failed && !again) board_release(tree_board(l.tree, leg), who->step, who->thread, lane);
    }
    atomic_store(&me->shared->lane_began, 0);
    if (spend_is_recorded()) spend_around(SPAN_LANE, began, base_now());
    if (s->k == 1) /* a lane that is also counted is one lane */
        atomic_fetch_add_explicit(first ? &me->shared->lanes_done : &me->shared->lanes_lost, 1,
                                  memory_order_relaxed);
    crew_notify(c->head);
}

/* ---- leaving work to faster threads ---- */

#define MUCH_SLOWER 2

/* Called when no lane is left to claim; the time limit starts then. The fastest of the threads that
 * take part never leaves anything. */
bool worker_defers(struct worker_stage *s) {
    const struct worker *c = s->c;
    int64_t takes = atomic_load(&s->context->shared->pure_time), least = takes;
    if (s->defers) return s->defers > 0 && base_now() < s->defers;
    for (int i = 0; takes && i < c->head->size.place_threads; i += s->alone ? c->threads : 1) {
        int64_t t = atomic_load(&c->head->thread[i].pure_time);
        if (t && t < least && atomic_load(&c->head->worker[i / c->threads].rank) >= 0) least = t;
    }
    s->defers = takes > MUCH_SLOWER * least ? base_now() + MUCH_SLOWER * least : -1;
    return s->defers > 0;
}

#define MARGIN 0.9 /* another thread must need less than this part of this thread's time */

/* Estimates when a thread finishes its lane, from its average time. If it is late already, it is
 * expected to take as long again as it is late. */
static int64_t busy_for(const struct crew_thread *t, int64_t now) {
    int64_t began = atomic_load(&t->lane_began), takes = atomic_load(&t->lane_time);
    if (!began) return 0;
    int64_t left = takes - (now - began);
    return left > 0 ? left : -left;
}

/* Estimates when the other threads would have computed all lanes that are left. INT64_MAX: there
 * are no others, or their times are not known. */
static int64_t others_end(const struct worker_stage *s, int left, int64_t now) {
    int64_t ready[CREW_MOST_THREADS], takes[CREW_MOST_THREADS], last = 0;
    const struct worker *c = s->c;
    int n = 0;
    for (int i = 0; i < c->head->size.place_threads; i++) {
        const struct crew_thread *t = &c->head->thread[i];
        int64_t lane_time = atomic_load(&t->lane_time);
        if (t == s->context->shared || !lane_time ||
            atomic_load(&c->head->worker[i / c->threads].rank) < 0)
            continue;
        ready[n] = busy_for(t, now);
        takes[n++] = lane_time;
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

/* Whether the other threads will have done all lanes that are left before this thread could do one.
 * Never true for the fastest thread. If none of the lanes is claimed when that time is over, this
 * thread claims one after all. Each time it lowers its own estimate a little, as whatever made it
 * slow may be over. */
static bool leaves_lanes(struct worker_stage *s, struct board *b) {
    _Atomic int64_t *own = &s->context->shared->lane_time;
    int64_t takes = atomic_load(own), now = base_now();
    const int most = 4 * worker_size(s->c) * s->c->threads;
    int left = takes ? board_left(b, (uint32_t)s->c->step, most + 1) : 0;
    if (!left || left == s->left || left > most) return false;
    int64_t end = others_end(s, left, now);
    if ((double)end >= MARGIN * (double)takes) return false;
    atomic_store(own, takes - takes / 16);
    s->until = now + end + end / 2;
    s->left = left;
    return true;
}

/* A lane that another thread computes, and that this thread would finish sooner; -1: none. */
static int slow_lane(const struct worker_stage *s) {
    const struct worker *c = s->c;
    struct board *b = tree_board(&c->run->machine->tree[s->k], 0);
    int64_t takes = atomic_load(&s->context->shared->lane_time), now = base_now();
    if (s->k != 1 || !takes) return -1;
    for (int lane = 0, owner; lane < b->tree->lanes; lane++)
        if (board_in_flight(b, (uint32_t)c->step, s->context->number, lane, &owner) &&
            MARGIN * (double)busy_for(&c->head->thread[owner], now) > (double)takes &&
            !worker_is_repeated(c, 1 + lane))
            return lane;
    return -1;
}

static bool repeat_slow_lane(struct worker_stage *s, const struct tree_thread *who) {
    int leg = 0, lane = worker_has_legs(s) ? worker_slow_leg(s, &leg) : slow_lane(s);
    if (lane < 0) return false;
    atomic_store(&s->context->shared->again,
                 1 + leg * (int)s->c->run->machine->lanes + lane);
    run_lane(s, who, leg, lane, true);
    atomic_store(&s->context->shared->again, 0);
    return true;
}

/* ---- all lanes ---- */

bool worker_lanes_ended(const struct worker_stage *s, int *failed, int *leg) {
    return tree_complete(&s->c->run->machine->tree[s->k], (uint32_t)s->c->step, failed, leg) &&
           (s->k != 1 || !worker_audit_pending(s->c));
}

/* Whether lanes are left for this worker to claim. */
static bool any_left(const struct worker_stage *s) {
    struct board *b = tree_board(&s->c->run->machine->tree[s->k], 0);
    return worker_rank(s->c) >= 0 && board_left(b, (uint32_t)s->c->step, 1) > 0;
}

static bool changed(void *arg) {
    struct worker_stage *s = arg;
    uint32_t step = (uint32_t)s->c->step;
    int failed, leg;
    if (worker_over(s->c) || worker_lanes_ended(s, &failed, &leg) || failed >= 0) return true;
    if (worker_resigns(s->c) || !worker_has_lease(s->c)) return true;
    if (worker_has_legs(s))
        return worker_leg_is_ready(s) || worker_audit_waits(s->c) ||
               tree_has_orphan(&s->c->run->machine->tree[1], step) ||
               worker_slow_leg(s, &leg) >= 0;
    bool left = any_left(s);
    return (tree_has_orphan(&s->c->run->machine->tree[s->k], step) &&
            (left || !worker_defers(s))) ||
           (s->k == 1 && worker_audit_waits(s->c)) ||
           (left ? base_now() > s->until : !worker_defers(s) && slow_lane(s) >= 0);
}

#define LOOKS 2000000 /* nanoseconds between two looks whether another track is late */

/* A thread that computes a lane or leg; -1: none does. */
static int in_flight(const struct worker_stage *s) {
    struct tree *t = &s->c->run->machine->tree[s->k];
    for (int leg = 0; leg < t->buckets.legs; leg++)
        for (int lane = 0, owner; lane < t->shape.lanes; lane++)
            if (board_in_flight(tree_board(t, leg), (uint32_t)s->c->step, s->context->number, lane,
                                &owner))
                return owner;
    return -1;
}

static enum crew_for waits_for(const struct worker_stage *s) {
    if (worker_waits_for_hosts(s)) return CREW_FOR_HOSTS;
    if (worker_has_legs(s)) return worker_lacks_slots(s) ? CREW_FOR_SLOTS : CREW_FOR_LEGS;
    return any_left(s) || in_flight(s) >= 0 ? CREW_FOR_LANES : CREW_FOR_SUMS;
}

/* False: the stage is over for this thread. */
static bool wait_for_others(struct worker_stage *s) {
    struct thread_context *me = s->context;
    int failed, leg;
    if (worker_over(s->c) || worker_lanes_ended(s, &failed, &leg)) return false;
    if (failed >= 0) {
        struct board *b = tree_board(&s->c->run->machine->tree[s->k], leg);
        int thread = claim_read(&b->node[failed]).owner;
        worker_fail_step(s->c, s->c->head->thread[thread].fault);
        return false;
    }
    worker_note_wait(me, waits_for(s), s->k);
    if (spend_is_recorded()) spend_whom(in_flight(s), -1);
    bool left = any_left(s);
    int64_t soon = base_now() + atomic_load(&me->shared->lane_time);
    if (!left && worker_defers(s) && s->defers < soon) soon = s->defers;
    if (worker_has_legs(s)) left = false, soon = base_now() + LOOKS;
    crew_wait_until(s->c->head, changed, s, left ? s->until : soon, &me->shared->heartbeat);
    return true;
}

static int claim_lane(struct worker_stage *s, const struct tree_thread *who, int *leg) {
    struct board *b = tree_board(&s->c->run->machine->tree[s->k], 0);
    s->until = 0;
    *leg = 0;
    if (worker_rank(s->c) < 0) return -1; /* a spare: it audits */
    if (worker_has_legs(s)) return worker_claim_leg(s, leg);
    if (s->k == 1 && leaves_lanes(s, b)) return -1;
    return board_claim_lane(b, who->step, who->thread);
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
    struct tree_thread who = {(uint32_t)c->step, s.context->number, thread};
    for (bool go = true; go && !worker_over(c);) {
        worker_wait_for_lease(c, s.context);
        if (!worker_leads(&s)) {
            go = worker_follow(&s);
            continue;
        }
        /* If it defers, it claims neither sums nor lanes, and repeats none. */
        bool defers = !worker_has_legs(&s) && !board_left(tree_board(t, 0), who.step, 1) &&
                      worker_defers(&s);
        int lane, leg;
        /* Sums before new lanes, as a sum that waits keeps its operands' slots. */
        if (!defers && tree_has_orphan(t, who.step)) {
            worker_note(s.context, CREW_AT_SUM, -1, -1);
            if (tree_orphan(t, &who, &s.step)) crew_notify(c->head);
        } else if (!defers && (lane = claim_lane(&s, &who, &leg)) >= 0) {
            if (!atomic_load(&worker_self(c)->first_claimed))
                atomic_store(&worker_self(c)->first_claimed, base_now());
            run_lane(&s, &who, leg, lane, false);
        } else if (s.k == 1 && (lane = worker_audit_claim(c, who.thread, &leg)) >= 0) {
            audit(&s, &who, leg, lane);
        } else if (defers || !repeat_slow_lane(&s, &who)) {
            go = wait_for_others(&s);
        }
    }
    worker_leave_group(c);
    worker_rest(s.context);
}
