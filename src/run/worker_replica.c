/* SPDX-License-Identifier: Apache-2.0
 * Workers as members of replicas (crew/group.h). The captain claims a lane and gives an order; all
 * of the group play their roles in it (machine/replica.h). Only the captain uses the tree. */
#include <string.h>

#include "crew/spans.h"
#include "run/worker_inside.h"

#define PATIENCE 1000000000 /* nanoseconds for late members, if the time of a lane is not known */
#define LEAST_PATIENCE 1000000

static bool plays(const struct worker_stage *s) {
    return s->k == 1 && s->c->run->machine->members > 1;
}

/* Waits for a change of the group or the stage, or for the end of its patience. */
static void wait_in_group(const struct worker *c, enum crew_for what, bool (*holds)(void *),
                          void *arg) {
    struct thread_context *me = &c->context[0];
    worker_note_wait(me, what, c->group.number);
    int64_t until = base_now() < c->patience ? c->patience : INT64_MAX;
    crew_wait_until(c->head, holds, arg, until, &me->shared->heartbeat);
    spend(SPENT_UNKNOWN);
}

/* ---- who is there ---- */

/* The rank of a worker of this worker's group; -1: it is not one. */
static int rank_in_group(const struct worker *c, int place) {
    return crew_group_of(c->head, place) == c->group.number
               ? atomic_load(&c->head->worker[place].rank) : -1;
}

static bool is_there(const struct worker *c, int place) {
    return atomic_load(&c->head->place[place].there) == group_stage(c->step, c->group.number);
}

static bool is_expected(const struct worker *c, int place) {
    return rank_in_group(c, place) >= 0 && !is_there(c, place) &&
           atomic_load(&c->head->worker[place].state) == CREW_READY;
}

/* False: this worker has no rank. */
static bool enter(struct worker_stage *s) {
    struct worker *c = s->c;
    int number = crew_group_of(c->head, c->place);
    int64_t lane = 0;
    if (c->group.shared || number < 0) return c->group.shared;
    c->group = crew_group(c->head, c->base, number);
    c->order = 0;
    for (int i = 0; i < c->head->size.places; i++) {
        int64_t t = atomic_load(&c->head->thread[i * c->threads].lane_time);
        if (rank_in_group(c, i) >= 0 && t > lane) lane = t;
    }
    for (int leg = 0; worker_has_legs(s) && leg < c->run->machine->tree[1].buckets.legs; leg++) {
        int64_t t = atomic_load(&c->head->course.leg_time[leg]);
        if (t > lane) lane = t;
    }
    int64_t patience = !lane ? PATIENCE : lane / 4 > LEAST_PATIENCE ? lane / 4 : LEAST_PATIENCE;
    c->patience = base_now() + patience;
    atomic_store(&c->head->place[c->place].there, group_stage(c->step, c->group.number));
    crew_notify(c->head);
    return true;
}

void worker_leave_group(struct worker *c) {
    if (!c->group.shared) return;
    atomic_store(&c->head->place[c->place].there, 0);
    crew_notify(c->head);
    if (c->leaves_slots) return; /* it stays the captain */
    if (c->leads) group_resign(&c->group, c->place);
    c->leads = false;
    c->group.shared = NULL;
}

/* ---- slots of a lane that is given up ---- */

static bool is_quiet(void *arg) {
    const struct worker *c = arg;
    return group_quiet(&c->group, c->place);
}

static bool is_quiet_or_ending(void *arg) {
    const struct worker *c = arg;
    return is_quiet(arg) || atomic_load(&c->head->course.ending);
}

/* Once no member is late any more. */
static bool drop_slots(struct worker *c) {
    if (!c->leaves_slots) return true;
    if (!is_quiet(c)) return false;
    tree_drop(&c->left, false);
    group_resign(&c->group, c->place);
    c->leads = c->leaves_slots = false;
    if (!is_there(c, c->place)) c->group.shared = NULL; /* else the next captain may expect it */
    return true;
}

/* Before the process leaves the run. */
void worker_settle_group(struct worker *c) {
    while (c->leaves_slots && !atomic_load(&c->head->course.ending) && !drop_slots(c))
        wait_in_group(c, CREW_FOR_QUIET, is_quiet_or_ending, c);
}

/* ---- captains ---- */

/* Whether no worker of a lower rank will become the captain. */
static bool may_lead(const struct worker *c) {
    bool late = base_now() > c->patience;
    if (atomic_load(&c->group.shared->captain) || worker_rank(c) < 0) return false;
    for (int i = 0; i < c->head->size.places; i++) {
        int rank = rank_in_group(c, i);
        if (rank >= 0 && rank < worker_rank(c) &&
            (is_there(c, i) || (is_expected(c, i) && !late)))
            return false;
    }
    return true;
}

bool worker_resigns(const struct worker *c) { return c->leads && worker_rank(c) < 0; }

bool worker_leads(struct worker_stage *s) {
    struct worker *c = s->c;
    if (!plays(s)) return true;
    if (!drop_slots(c) || !enter(s)) return false;
    if (worker_resigns(c)) {
        group_resign(&c->group, c->place);
        c->leads = false;
    }
    if (!c->leads) c->leads = may_lead(c) && group_lead(&c->group, c->place);
    if (c->leads && machine_play(c->run->machine, 0, c->group.number)) {
        worker_fail(c, tri_message());
        return false;
    }
    return c->leads;
}

/* ---- working on an order ---- */

struct order {
    struct worker *c;
    uint64_t number;
    struct group_task task;
    const struct program_step *step;
    struct tree_lane *lane; /* the captain's; null: this worker follows */
    int size;               /* which of the two sizes the lane has */
    int role[CREW_MOST_WORKERS], roles;
    bool audits, alone; /* alone: thread 0 plays for the others of its team */
    atomic_bool failed; /* a thread of this worker */
};

/* A thread's part of the order that the worker is at work on. */
static struct order_thread {
    struct order *order;
    struct thread_context *me;
    struct tri_fault fault;
    size_t item; /* at work on */
    bool done, waits;
} order_thread[CREW_MOST_THREADS];

/* Whether nobody needs the lane any more. */
static bool is_lost(const struct order *o) {
    const struct tree_lane *l = o->lane;
    return worker_over(o->c) ||
           (l && !o->audits &&
            board_lost(tree_board(l->tree, l->leg), l->who.step, l->who.thread, l->lane));
}

static bool goes_on(void *thread) {
    const struct order_thread *t = thread;
    const struct order *o = t->order;
    const struct worker *c = o->c;
    return group_stands(&c->group, o->number) && !atomic_load(&o->failed) && !is_lost(o);
}

static void end_wait(struct order_thread *t) {
    if (!t->waits) return;
    spend(SPENT_UNKNOWN);
    t->waits = false;
}

static struct program *program_of(const struct order *o, int role) {
    return o->c->run->machine->member[role].lane[o->size];
}

/* The thread that plays the executor. */
static int thread_of(const struct order *o, int executor) {
    const struct worker *c = o->c;
    if (executor < 0) return SPAN_NOBODY;
    return atomic_load(&c->group.shared->role[executor / c->threads]) * c->threads +
           executor % c->threads;
}

static void note(void *thread, size_t item, int waits_for) {
    struct order_thread *t = thread;
    struct thread_context *me = t->me;
    const struct order *o = t->order;
    t->item = item;
    t->waits = waits_for != REPLICA_RUNS;
    if (!t->waits) {
        worker_note(me, CREW_AT_LANE, o->task.lane, me->name + (int)item);
        return;
    }
    worker_note_wait(me, CREW_FOR_MEMBERS, o->c->group.number);
    if (spend_is_recorded())
        spend_whom(thread_of(o, waits_for),
                   program_of(o, o->role[0])->g->first_item - 1 + (int)item);
}

/* The captain opens and closes buckets as in a lane of its own; the others learn the slots. */
static bool at_stop(void *thread, int role, int stop) {
    struct order_thread *t = thread;
    struct order *o = t->order;
    struct tree *tree = &o->c->run->machine->tree[1];
    atomic_int *slot = group_slots(o->c->group.shared);
    int bucket = tree_opens(tree, o->size, o->task.leg, stop);
    if (!role && stop < o->lane->p->n_stops) {
        end_wait(t);
        o->lane->p->at_stop(o->lane->p->stop_arg, stop);
        if (bucket >= 0) atomic_store(&slot[bucket], tree_slot(o->lane, bucket));
    } else if (bucket >= 0) {
        tree_bind_slot(tree, program_of(o, role), bucket, atomic_load(&slot[bucket]));
    }
    return true;
}

static void play(void *order, int thread) {
    struct order *o = order;
    struct worker *c = o->c;
    struct order_thread *t = &order_thread[thread];
    struct replica_part part[CREW_MOST_THREADS];
    struct crew_group *g = c->group.shared;
    int64_t began = base_now();
    int n = 0;
    if (o->alone && thread) return;
    *t = (struct order_thread){.order = o, .me = &c->context[thread]};
    t->me->name = c->current->first_name[2 + o->size];
    t->me->k = 1;
    t->me->leg = o->task.leg;
    if (thread) atomic_store(&t->me->shared->lane_began, began);
    for (int i = 0; i < o->roles; i++)
        for (int k = 0; k < c->threads; k++)
            if (o->alone || k == thread)
                part[n++] = (struct replica_part){
                    &c->run->machine->member[o->role[i]].replica[o->size][o->task.leg], k};
    struct program_step step = *o->step;
    step.fault = &t->fault;
    const struct replica_run run = {
        group_words(g), o->task.base, &g->queue,
        crew_crowded(c->head) ? WAIT_CROWDED : WAIT_TOGETHER, &t->me->shared->heartbeat,
        goes_on, note, at_stop, t};
    t->done = replica_run(part, n, &run, &step);
    end_wait(t);
    if (!t->done) {
        atomic_store(&o->failed, true);
        wait_wake(&g->queue);
    }
    if (!thread) return;
    atomic_store(&t->me->shared->lane_began, 0);
    worker_rest(t->me);
}

/* Binds what is in memory when the leg begins. */
static void bind_leg(struct order *o, struct program *p) {
    struct tree *t = &o->c->run->machine->tree[1];
    atomic_int *slot = group_slots(o->c->group.shared);
    tree_bind_slot(t, p, t->buckets.last[o->task.leg], o->task.slot);
    for (int b = 0; b < t->buckets.n; b++)
        if (tree_hands(t, o->task.leg, b)) tree_bind_slot(t, p, b, atomic_load(&slot[b]));
}

/* This worker's roles, and their programs. */
static bool take_roles(struct order *o) {
    struct worker *c = o->c;
    struct machine *m = c->run->machine;
    struct crew_group *g = c->group.shared;
    for (int r = 0; r < m->members; r++)
        if (atomic_load(&g->role[r]) == c->place) o->role[o->roles++] = r;
    for (int i = 0; i < o->roles; i++) {
        if (machine_play(m, o->role[i], c->group.number)) {
            worker_fail(c, tri_message());
            return false;
        }
        if (!o->lane || o->role[i]) bind_leg(o, program_of(o, o->role[i]));
    }
    return true;
}

static bool fetch(struct order *o, struct thread_context *me, struct tri_fault *fault) {
    struct program *p[CREW_MOST_WORKERS];
    for (int i = 0; i < o->roles; i++) p[i] = program_of(o, o->role[i]);
    return worker_fetch_lane(o->c, me, p, o->roles, o->task.lane, fault);
}

/* Does this worker's part of the order. The fault is that of the first item that failed here. */
static bool work(struct order *o, struct tri_fault *fault) {
    struct worker *c = o->c;
    struct machine *m = c->run->machine;
    struct thread_context *me = &c->context[0];
    struct team *team = worker_team(c, m->lanes * m->members);
    size_t item = SIZE_MAX;
    o->size = machine_lane_size(m, o->task.lane);
    o->alone = !team;
    spend(SPENT_OPEN); /* the first time it prepares programs */
    if (!take_roles(o) || !fetch(o, me, fault)) return false;
    team_run(team, play, o);
    bool done = true;
    for (int t = 0; t < (o->alone ? 1 : c->threads); t++) {
        const struct order_thread *own = &order_thread[t];
        done &= own->done;
        if (!own->fault.failed || own->item >= item) continue;
        item = own->item;
        *fault = own->fault;
    }
    return done;
}

/* ---- the captain ---- */

static bool may_order(void *arg) {
    const struct worker *c = arg;
    if (worker_over(c)) return true;
    if (!is_quiet(arg)) return false;
    for (int i = 0; i < c->head->size.places && base_now() < c->patience; i++)
        if (is_expected(c, i)) return false;
    return true;
}

static bool is_quiet_or_lost(void *order) {
    const struct order *o = order;
    return is_quiet(o->c) || is_lost(o);
}

/* Those that are there: this worker, then the others by rank. */
static int muster(const struct worker *c, int *who) {
    int n = 1, size = worker_size(c), most = c->run->machine->members;
    *who = c->place;
    for (int rank = 0; rank < size && n < most; rank++)
        for (int i = 0; i < c->head->size.places && n < most; i++)
            if (i != c->place && is_there(c, i) &&
                atomic_load(&c->head->worker[i].rank) == rank)
                who[n++] = i;
    return n;
}

/* The fault that another worker met in this lane. */
static void take_fault(const struct worker *c, int lane, struct tri_fault *fault) {
    struct crew_group *g = c->group.shared;
    for (int r = 0; r < g->roles && !fault->failed; r++) {
        const struct crew_thread *t =
            &c->head->thread[atomic_load(&g->role[r]) * c->threads];
        if (atomic_load(&t->failed_lane) != lane) continue;
        fault->failed = true;
        base_format(fault->text, sizeof fault->text, "%s", t->fault);
    }
}

bool worker_compute_together(struct worker *c, struct thread_context *me, struct tree_lane *l,
                             const struct program_step *step) {
    int who[CREW_MOST_WORKERS];
    struct order o = {.c = c, .step = step, .lane = l, .audits = me->audits};
    struct tree *t = l->tree;
    o.task = (struct group_task){.stage = group_stage(c->step, c->group.number), .lane = l->lane,
                                 .leg = l->leg, .slot = tree_slot(l, t->buckets.last[l->leg])};
    if (!may_order(c)) wait_in_group(c, CREW_FOR_QUIET, may_order, c);
    if (worker_over(c)) return false;
    atomic_int *slot = group_slots(c->group.shared);
    for (int b = 0; b < t->buckets.n; b++)
        if (tree_hands(t, l->leg, b)) atomic_store(&slot[b], tree_slot(l, b));
    o.number = group_order(&c->group, c->place, who, muster(c, who), &o.task);
    bool done = work(&o, step->fault);
    if (!done) {
        group_give_up(&c->group, o.number);
        if (!is_quiet_or_lost(&o)) wait_in_group(c, CREW_FOR_QUIET, is_quiet_or_lost, &o);
        c->leaves_slots = is_lost(&o) && !is_quiet(c);
        c->left = *l;
        if (!c->leaves_slots) take_fault(c, l->lane, step->fault);
    }
    group_close(&c->group, c->place);
    return done;
}

/* ---- the others ---- */

/* An order that this worker has not worked on yet; 0: there is none. */
static uint64_t next_order(const struct worker *c) {
    uint64_t order = group_find(&c->group, c->place, group_stage(c->step, c->group.number));
    return order == c->order ? 0 : order;
}

static bool something_to_follow(void *arg) {
    struct worker_stage *s = arg;
    struct worker *c = s->c;
    int failed, leg;
    if (worker_over(c) || worker_lanes_ended(s, &failed, &leg)) return true;
    if (c->leaves_slots) return is_quiet(c);
    if (!c->group.shared) return worker_rank(c) >= 0;
    return next_order(c) || may_lead(c);
}

static void follow(struct worker_stage *s, uint64_t order) {
    struct worker *c = s->c;
    struct thread_context *me = s->context;
    struct order o = {.c = c, .number = order, .step = &s->step};
    int64_t began = base_now();
    c->order = order;
    if (!group_begin(&c->group, c->place, order, &o.task)) return;
    struct machine *m = c->run->machine;
    s->step.fault->failed = false;
    s->step.sample = lane_first(m->batch, m->lanes, o.task.lane);
    me->lane = o.task.lane;
    me->leg = o.task.leg;
    atomic_store(&me->shared->lane_began, began);
    bool done = work(&o, s->step.fault);
    if (!done && s->step.fault->failed && !worker_over(c)) {
        atomic_store(&me->shared->failed_lane, -1); /* the captain keeps that of the lowest lane */
        worker_keep_fault(c, me->shared, o.task.lane, s->step.fault);
    }
    if (!done) group_give_up(&c->group, order);
    if (spend_is_recorded()) spend_around(SPAN_LANE, began, base_now());
    group_end(&c->group, c->place);
    atomic_store(&me->shared->lane_began, 0);
    if (done) atomic_fetch_add_explicit(&me->shared->lanes_done, 1, memory_order_relaxed);
}

bool worker_follow(struct worker_stage *s) {
    struct worker *c = s->c;
    struct thread_context *me = s->context;
    int failed, leg;
    if (worker_over(c) || worker_lanes_ended(s, &failed, &leg)) return false;
    atomic_store(&me->shared->lane_time, 0); /* only captains compute lanes */
    atomic_store(&me->shared->pure_time, 0);
    if (c->group.shared) {
        uint64_t order = next_order(c);
        if (order) {
            follow(s, order);
            return true;
        }
        wait_in_group(c, CREW_FOR_ORDER, something_to_follow, s);
    } else {
        worker_note_wait(me, CREW_FOR_STEP, 0); /* it has no rank */
        crew_wait(c->head, something_to_follow, s, &me->shared->heartbeat);
        spend(SPENT_UNKNOWN);
    }
    return true;
}
