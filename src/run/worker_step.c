/* SPDX-License-Identifier: Apache-2.0
 * A worker's steps: first lanes and sums, claimed on the board; then the update's tasks, sweep by
 * sweep. Each stage of a step ends when its claims say so, whoever published them. So a worker that
 * starts or arrives late learns from the claims how far the step is. */
#include <math.h>
#include <sys/resource.h>

#include "crew/spans.h"
#include "run/checkpointer.h"
#include "run/diverge.h"
#include "run/executables.h"
#include "run/executor.h"
#include "run/feed.h"
#include "run/loader.h"
#include "run/policy.h"
#include "run/worker_inside.h"

/* ---- what a thread does ---- */

static enum spent spent_at(const struct thread_context *me, int at) {
    static const enum spent spent[CREW_ATS] = {
        [CREW_AT_START] = SPENT_START,       [CREW_AT_COMPILE] = SPENT_START,
        [CREW_AT_DATA] = SPENT_READ,         [CREW_AT_LANE] = SPENT_COMPUTE,
        [CREW_AT_SUM] = SPENT_SUM,           [CREW_AT_UPDATE] = SPENT_UPDATE,
        [CREW_AT_CALLBACK] = SPENT_CALLBACK, [CREW_AT_EVALUATE] = SPENT_EVALUATE,
        [CREW_AT_SAVE] = SPENT_SAVE,         [CREW_AT_LEAVE] = SPENT_START,
        [CREW_AT_REST] = SPENT_WAIT_THREADS, [CREW_AT_COMPUTE] = SPENT_COMPUTE};
    static const enum spent waits[CREW_FORS] = {
        [CREW_FOR_STEP] = SPENT_WAIT_OPENING, [CREW_FOR_LANES] = SPENT_WAIT_LANES,
        [CREW_FOR_SUMS] = SPENT_WAIT_SUMS,    [CREW_FOR_SLOTS] = SPENT_WAIT_SLOTS,
        [CREW_FOR_LEGS] = SPENT_WAIT_LEGS,    [CREW_FOR_TASKS] = SPENT_WAIT_TASKS,
        [CREW_FOR_ORDER] = SPENT_WAIT_SEATS,  [CREW_FOR_QUIET] = SPENT_WAIT_SEATS,
        [CREW_FOR_MEMBERS] = SPENT_WAIT_SEATS, [CREW_FOR_HOSTS] = SPENT_WAIT_HOSTS,
        [CREW_FOR_PAUSE] = SPENT_WAIT_PAUSE};
    if (at == CREW_AT_WAIT)
        return waits[atomic_load_explicit(&me->shared->waits_for, memory_order_relaxed) >> 32];
    return me->audits && (at == CREW_AT_LANE || at == CREW_AT_SUM) ? SPENT_AUDIT : spent[at];
}

static void begin_activity(struct thread_context *me, const struct noted *is) {
    struct crew_thread *t = me->shared;
    const int at = is->at;
    bool in_lane =
        is->lane >= 0 && (at == CREW_AT_LANE || at == CREW_AT_DATA || at == CREW_AT_SUM);
    bool in_leg = in_lane && me->k == 1 && me->worker->head->layout.legs.stages;
    int leg = in_leg ? worker_leg(me->worker, is->leg) : -1;
    me->noted = *is;
    me->began = base_now();
    spend_at(spent_at(me, at), me->began);
    me->spender.step = is->step;
    me->spender.lane = (int16_t)is->lane;
    me->spender.leg = (int8_t)leg;
    me->spender.item = -1;
    me->spender.whom = SPAN_NOBODY;
    atomic_store_explicit(&t->since, me->began, memory_order_relaxed);
    atomic_store_explicit(&t->lane, is->lane, memory_order_relaxed);
    atomic_store_explicit(&t->leg, leg, memory_order_relaxed);
    atomic_store_explicit(&t->step, is->step, memory_order_relaxed);
    atomic_store_explicit(&t->at, at, memory_order_relaxed);
}

void worker_note(struct thread_context *me, enum crew_at at, int lane, int item) {
    _Atomic uint64_t *beat = &me->shared->heartbeat;
    const struct noted is = {(int)at, lane, me->leg, (uint32_t)me->worker->step}, *was = &me->noted;
    if (item < 0 || was->at != is.at || was->lane != is.lane || was->leg != is.leg ||
        was->step != is.step)
        begin_activity(me, &is);
    atomic_store_explicit(&me->shared->item, item, memory_order_relaxed);
    atomic_store_explicit(beat, atomic_load_explicit(beat, memory_order_relaxed) + 1,
                          memory_order_release);
}

void worker_note_wait(struct thread_context *me, enum crew_for what, int part) {
    const uint64_t waits_for = (uint64_t)what << 32 | (uint32_t)part;
    atomic_store_explicit(&me->shared->waits_for, waits_for, memory_order_relaxed);
    worker_note(me, CREW_AT_WAIT, -1, -1);
}

void worker_at(struct worker *c, enum crew_at at, int part) {
    worker_note(&c->context[0], at, part, -1);
}

void worker_rest(struct thread_context *me) {
    if (me->worker->threads > 1) worker_note(me, CREW_AT_REST, -1, -1);
}

struct team *worker_team(const struct worker *c, int64_t pieces) {
    int64_t workers = worker_size(c) < pieces ? worker_size(c) : pieces;
    return workers < c->head->size.cores ? c->run->team : NULL;
}

bool worker_over(const struct worker *c) {
    const struct crew_course *r = &c->head->course;
    return atomic_load(&r->committed) >= c->step || atomic_load(&r->ending);
}

void worker_fail(const struct worker *c, const char *text) {
    struct crew_head *h = c->head;
    int none = 0, runs = CREW_RUNS;
    if (atomic_load(&h->course.ending) ||
        !atomic_compare_exchange_strong(&h->course.failing, &none, c->context->number + 1))
        return;
    base_format(h->course.failure, sizeof h->course.failure, "%s", text);
    atomic_compare_exchange_strong(&h->course.ending, &runs, CREW_FAILED);
    crew_notify_end(h);
}

void worker_fail_step(const struct worker *c, const char *text) {
    char all[sizeof c->head->course.failure];
    base_format(all, sizeof all, "step %llu: %s", (unsigned long long)c->step, text);
    worker_fail(c, all);
}

/* ---- a step ---- */

static void commit_step(struct worker *c) {
    struct crew_course *course = &c->head->course;
    uint64_t before = c->step - 1;
    if (atomic_load(&course->ending)) return;
    const int64_t now = base_now(), opened_at = atomic_load(&course->opened_at);
    atomic_store(&course->committed_at, now);
    if (!atomic_compare_exchange_strong(&course->committed, &before, c->step)) return;
    crew_note_slow(course, c->step, now - opened_at);
    crew_notify_end(c->head);
}

#define FEW_TASKS 32 /* one thread does them before others would have woken up */

/* Runs what comes before the lanes (0), or after them (1). */
static void run_sweeps(const struct worker *c, struct worker_stage s, int which) {
    int tasks = c->current->sweeps[which].n_tasks;
    struct team *team = tasks > FEW_TASKS ? worker_team(c, tasks) : NULL;
    s.k = which;
    s.alone = !team;
    if (c->current->sweeps[which].n) team_run(team, worker_run_sweeps, &s);
}

/* Takes the scalars that the reporter has set, so that any worker can report next. */
static void take_scalars(const struct worker *c, tri_run *run) {
    for (int i = 0; i < run->executable->n_scalars; i++)
        run->executable->scalar[i].value = c->head->course.scalar[i];
    run->set_rate = c->head->course.set_rate;
}

static void run_step(struct worker *c, tri_run *run) {
    worker_select_executable(c, run, c->step);
    worker_profile_step(c, c->step);
    struct machine *m = run->machine;
    struct worker_stage s = {.c = c, .step = {.seed = run->options.seed, .step = (int64_t)c->step}};
    struct tri_fault fault = {0};
    s.step.fault = &fault;
    team_crowd(run->team, crew_crowded(c->head));
    take_scalars(c, run);
    machine_copy_scalars(m, run->executable);
    machine_set_scalars(m);
    machine_place_rows(m, worker_region(c, REGION_ROWS, c->step % 2));
    if (run->data) machine_use_buffer(m, loader_buffer(run->loader, (int64_t)c->step));
    for (s.k = 0; s.k < 2 && !worker_over(c); s.k++) {
        if (s.k) run_sweeps(c, s, 0);
        if (!m->tree[s.k].g || worker_over(c)) continue;
        team_run(m->n_threads > 1 ? run->team : NULL, worker_run_lanes, &s);
        if (!worker_over(c)) machine_bind_tops(m, s.k);
    }
    machine_find_outputs(m);
    if (!worker_over(c) && worker_rank(c) >= 0) {
        run_sweeps(c, s, 1);
        commit_step(c);
    }
    /* Its team has left; it is watched again from now on. */
    worker_note_wait(&c->context[0], CREW_FOR_STEP, 0);
}

/* Takes the results of the latest step. Repeats that if a later step is done meanwhile. */
static void take_values(struct worker *c, tri_run *run) {
    struct crew_head *h = c->head;
    for (uint64_t step, before;;) {
        step = atomic_load(&h->course.committed);
        before = atomic_load(&h->course.values[step % 2].step);
        worker_select_executable(c, run, step);
        const double *value = worker_region(c, REGION_RESULTS, step % 2);
        for (int i = 0; i < run->machine->n_outputs; i++)
            if (!run->machine->output[i].spec.shape.rank) run->machine->output[i].value = value[i];
        run->rate = h->course.values[step % 2].rate;
        run->skips = h->course.values[step % 2].skips;
        run->done = (int64_t)step;
        atomic_thread_fence(memory_order_acquire);
        if (before == step && atomic_load(&h->course.values[step % 2].step) == step) break;
    }
    if (run->data) run->epoch = sampler_epoch(&run->sampler, run->done - 1);
}

#define MEMORY_INTERVAL 100000000 /* nanoseconds */

static void note_memory(struct worker *c) {
    struct rusage u;
    int64_t now = base_now();
    if (now - c->memory_seen < MEMORY_INTERVAL) return;
    c->memory_seen = now;
    if (!getrusage(RUSAGE_SELF, &u))
        atomic_store(&worker_self(c)->peak, (int64_t)u.ru_maxrss * 1024);
}

/* What this run decides on a step. */
static void decide(struct worker *c, tri_run *run, const struct machine *m, uint64_t step) {
    struct crew_course *r = &c->head->course;
    run->done = (int64_t)step - 1;
    run_set_scalars(run, (int64_t)step);
    r->rate = run->rate;
    r->set_rate = run->set_rate;
    for (int i = 0; i < run->executable->n_scalars; i++)
        r->scalar[i] = run->executable->scalar[i].value;
    r->shape_of[step % 2] = (int)(m - run->executable);
}

static void open_step(struct worker *c, tri_run *run, uint64_t step) {
    struct crew_head *h = c->head;
    struct machine *m = executables_at(run, (int64_t)step);
    if (run->fed && feed_take(run, (int64_t)step)) {
        worker_fail(c, tri_message());
        return;
    }
    worker_profile_open(c, run, step);
    crew_wait(h, worker_rows_are_free, c, &c->context[0].shared->heartbeat);
    if (!worker_enters(c, step)) return;
    for (int k = 0; k < 2; k++)
        if (m->tree[k].g) tree_clear(&m->tree[k]);
    if (worker_is_offered(c, step)) {
        worker_take_offer(c, run, step);
    } else {
        decide(c, run, m, step);
        worker_offer(c, m, step);
    }
    atomic_store(&h->course.opened_at, base_now());
    if (!atomic_load(&h->course.began))
        atomic_store(&h->course.began, atomic_load(&h->course.opened_at));
    atomic_store(&h->course.opened, step);
    crew_notify(h);
}

/* Spares take part if there are audits, which they make unless the workers form replicas. */
static bool takes_part(const struct worker *c) {
    return worker_rank(c) >= 0 || (c->head->size.audit > 0 && !c->head->layout.seats);
}

static bool is_open(const struct worker *c) {
    return atomic_load(&c->head->course.opened) > atomic_load(&c->head->course.committed);
}

static bool something_to_do(void *arg) {
    const struct worker *c = arg;
    const struct crew_head *h = c->head;
    return (is_open(c) && takes_part(c) && atomic_load(&h->course.opened) != c->step) ||
           atomic_load(&h->course.ending) || atomic_load(&worker_self(c)->leave) ||
           worker_evaluation_waits(arg) || !worker_has_lease(c) ||
           (worker_opens(c) && worker_may_open(c) &&
            (!worker_reports(c) || !atomic_load(&h->asked.paused) ||
             atomic_load(&h->asked.stop))) ||
           (worker_reports(c) && c->run->options.ckpt && worker_save_asked(c));
}

static void end_run(struct worker *c, enum crew_ending how) {
    int none = CREW_RUNS;
    atomic_compare_exchange_strong(&c->head->course.ending, &none, (int)how);
    crew_notify_end(c->head);
}

/* Opens the next step, or ends the run. For the reporter, between two steps. False: the run
 * ends. */
static bool open_next(struct worker *c, tri_run *run) {
    struct crew_head *h = c->head;
    if (is_open(c)) return true;
    worker_enters_none(c);
    if (!worker_may_open(c)) return true;
    uint64_t committed = atomic_load(&h->course.committed); /* of a host that joins, only now */
    if (!worker_reports(c)) {
        open_step(c, run, committed + 1);
        return !atomic_load(&h->course.ending);
    }
    /* It has become the reporter or teller just now, and has not called back for this step. */
    if (committed > atomic_load(&h->course.base) && c->reported < (int64_t)committed) return true;
    if (diverge_check(run, (int64_t)committed, h->course.values[committed % 2].skips))
        worker_fail(c, tri_message());
    else if ((int64_t)committed >= run->total || policy_stops(run->policy))
        end_run(c, CREW_FINISHED);
    else if (atomic_load(&h->asked.stop) || run_is_late(run))
        end_run(c, CREW_STOPPED);
    else if (!atomic_load(&h->asked.paused))
        open_step(c, run, committed + 1);
    return !atomic_load(&h->course.ending);
}

static bool fails(struct worker *c, tri_status *status) {
    if (atomic_load(&c->head->course.ending) == CREW_FAILED)
        *status = base_fail(TRI_FAILED, "%s", c->head->course.failure);
    return false;
}

static void take_policy_state(const struct worker *c, tri_run *run) {
    const struct crew_course *r = &c->head->course;
    run->policy->is = r->policy_state[atomic_load(&r->n_policy_states) % 2];
}

static bool returns(struct worker *c, tri_run *run) {
    take_values(c, run);
    if (worker_reports(c)) {
        take_scalars(c, run);
        take_policy_state(c, run);
        c->reported = run->done;
    }
    worker_at(c, CREW_AT_CALLBACK, -1);
    return true;
}

/* Between two steps. */
static enum crew_for waits_for(const struct worker *c) {
    if (!is_open(c) && atomic_load(&c->head->asked.paused)) return CREW_FOR_PAUSE;
    return worker_has_hosts(c) && !is_open(c) ? CREW_FOR_HOSTS : CREW_FOR_STEP;
}

bool worker_step(struct worker *c, tri_run *run, tri_status *status) {
    struct crew_head *h = c->head;
    const int64_t now = base_now();
    spend_at(SPENT_OPEN, now);
    if (spend_is_recorded() && worker_opens(c)) spend_around(SPAN_STEP, c->stepped, now);
    c->stepped = now;
    if (worker_opens(c)) worker_profile_end(c, atomic_load(&h->course.committed));
    atomic_store(&h->course.total, (uint64_t)run->total);
    note_memory(c);
    worker_agree(c, run);
    for (;;) {
        worker_log_changes(c);
        worker_wait_for_lease(c, &c->context[0]);
        if (worker_reports(c) && !c->reports) worker_redirect_output(c);
        uint64_t committed = atomic_load(&h->course.committed);
        /* The previous reporter may have died before it called back for the latest step. */
        if (worker_reports(c) && committed > atomic_load(&h->course.base) &&
            c->reported < (int64_t)committed && !atomic_load(&h->course.ending) &&
            atomic_load(&h->course.opened) == committed)
            return returns(c, run);
        if (atomic_load(&h->course.ending) || atomic_load(&worker_self(c)->leave))
            return fails(c, status);
        if (worker_reports(c)) checkpointer_answer(run->checkpointer, run);
        if (worker_opens(c) && !open_next(c, run)) return fails(c, status);
        if (is_open(c) && takes_part(c) &&
            (worker_rank(c) >= 0 || atomic_load(&h->course.opened) != c->step)) {
            c->step = atomic_load(&h->course.opened);
            worker_log_step_begins(c);
            run_step(c, run);
            worker_log_step_ends(c);
            if (atomic_load(&h->course.ending)) return fails(c, status);
            if (atomic_load(&h->course.committed) >= c->step && worker_rank(c) >= 0)
                return returns(c, run);
            continue;
        }
        if (worker_evaluation_waits(c)) {
            worker_evaluation_help(c, run);
            continue;
        }
        worker_note_wait(&c->context[0], waits_for(c), 0);
        if (spend_is_recorded())
            spend_whom(atomic_load(&h->workers.reporter) * c->threads, -1);
        crew_wait(h, something_to_do, c, &c->context[0].shared->heartbeat);
        spend(SPENT_OPEN);
    }
}

bool worker_reports_step(const struct worker *c, const tri_run *run) {
    return c->reported && c->reported == run->done;
}

/* ---- checkpoints, evaluations ---- */

void worker_begin_at(struct worker *c, int64_t step) {
    struct crew_head *h = c->head;
    atomic_store(&h->course.base, (uint64_t)step); /* first: see crew_begun */
    atomic_store(&h->course.committed, (uint64_t)step);
    atomic_store(&h->course.opened, (uint64_t)step);
    double *value = worker_region(c, REGION_RESULTS, step % 2);
    for (int i = 0; i < c->run->executable->n_outputs; i++) value[i] = NAN;
    h->course.values[step % 2].loss = NAN;
    h->course.values[step % 2].skips = 0;
    atomic_store(&h->course.values[step % 2].step, (uint64_t)step); /* take_values waits for it */
    c->reported = step;
}

int64_t worker_base(const struct worker *c) { return (int64_t)atomic_load(&c->head->course.base); }

void worker_note_unread(struct worker *c) {
    int no = CREW_STOP_NO;
    if (atomic_compare_exchange_strong(&c->head->asked.stop, &no, CREW_STOP_UNREAD))
        crew_notify(c->head);
}

bool worker_asked_to_end(const struct worker *c) { return atomic_load(&c->head->asked.stop); }

/* There are two states, written in turn: a death leaves the previous one. */
void worker_set_policy(struct worker *c, const struct policy_state *is) {
    struct crew_head *h = c->head;
    uint32_t n = atomic_load(&h->course.n_policy_states) + 1;
    h->course.policy_state[n % 2] = *is;
    atomic_store(&h->course.n_policy_states, n);
}

uint32_t worker_save_asked(const struct worker *c) {
    uint32_t asked = atomic_load(&c->head->asked.saves);
    return asked == atomic_load(&c->head->told.save_answered) ? 0 : asked;
}

void worker_save_answer(struct worker *c, uint32_t asked, const char *error, int64_t step) {
    struct crew_head *h = c->head;
    base_format(h->told.save_error, sizeof h->told.save_error, "%s", error ? error : "");
    atomic_store(&h->told.saved, (uint64_t)step);
    atomic_store(&h->told.save_answered, asked);
    crew_notify(h);
}

void worker_save_failed(struct worker *c, const char *text) {
    struct crew_head *h = c->head;
    base_format(h->told.save_failure, sizeof h->told.save_failure, "%s", text);
    atomic_fetch_add(&h->told.save_failures, 1);
}

/* ---- the end ---- */

static bool over_or_mine(void *arg) {
    const struct worker *c = arg;
    return atomic_load(&c->head->course.closed) || worker_reports(c) ||
           atomic_load(&worker_self(c)->leave);
}

/* The loop may end before all steps are done. If a reporter that died has opened a step, it is
 * finished first, so that the store is as a step leaves it. */
static void end_by_loop(struct worker *c, tri_run *run) {
    while (is_open(c) && !atomic_load(&c->head->course.ending)) {
        c->step = atomic_load(&c->head->course.opened);
        run_step(c, run);
    }
    end_run(c, CREW_FINISHED);
}

bool worker_finish(struct worker *c, tri_run *run) {
    struct crew_head *h = c->head;
    spend(SPENT_START);
    if (!worker_reports(c)) crew_wait(h, over_or_mine, c, &c->context[0].shared->heartbeat);
    worker_log_changes(c);
    if (atomic_load(&h->course.closed) || !worker_reports(c)) return false;
    end_by_loop(c, run);
    if (!c->reports) worker_redirect_output(c);
    /* It may have joined after the last step, or while others computed it. */
    if (run->done < (int64_t)atomic_load(&h->course.committed)) {
        take_values(c, run);
        if (crew_begun(h)) take_scalars(c, run); /* they are saved */
    }
    take_policy_state(c, run);
    worker_at(c, CREW_AT_SAVE, -1);
    return true;
}

void worker_leave(struct worker *c, int code) {
    worker_settle_group(c);
    worker_log_leave(c);
    if (worker_reports(c) && !atomic_load(&c->head->course.closed)) {
        atomic_store(&c->head->told.code, code);
        atomic_store(&c->head->course.closed, 1);
        crew_notify(c->head);
    }
    atomic_store(&worker_self(c)->state, CREW_LEFT);
    worker_at(c, CREW_AT_LEAVE, -1);
    crew_notify(c->head);
}
