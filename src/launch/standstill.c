/* SPDX-License-Identifier: Apache-2.0
 * Workers that all wait for each other. Each has a heartbeat, so none is stalled; but the run is.
 * The agent logs what every thread waits for and who owns that, then kills and replaces all
 * workers. What they held is freed as after any death. */
#include <stdio.h>

#include "launch/agent_inside.h"

/* ---- what a thread waits for ---- */

/* ", claimed by worker 3", or ", claimed by nobody". */
static void add_owner(const struct agent *a, const struct claim *c, struct text *out) {
    if (c->state == CLAIM_TAKEN)
        text_add(out, ", claimed by worker %d", c->owner / a->head->size.threads);
    else
        text_add(out, ", claimed by nobody");
}

/* The first lane that somebody has claimed; if there is none, the first that is not over. */
static void add_lane(const struct agent *a, int phase, struct text *out) {
    const struct crew_head *h = a->head;
    const struct crew_layout *l = &h->layout;
    const struct recovery *r = &a->recovery;
    uint64_t step = atomic_load(&h->course.opened);
    int shape = h->course.shape_of[step % 2], found = -1, of = -1;
    struct claim is = {.state = CLAIM_DONE};
    for (int b = 0; b < l->shape[shape].tree[phase].buckets; b++) {
        int leg = recovery_leg(r, shape, phase, b);
        for (int i = 0; leg >= 0 && i < l->shape[shape].lanes && is.state != CLAIM_TAKEN; i++) {
            struct claim c = claim_look(&r->view.board[shape][phase][b].node[i], (uint32_t)step);
            if (c.state != CLAIM_TAKEN && (c.state != CLAIM_FREE || found >= 0)) continue;
            is = c;
            found = i;
            of = leg;
        }
    }
    char name[LEG_TEXT] = "";
    if (found >= 0 && l->legs.stages > 0 && of < l->legs.n) legs_name(&l->legs, of, name);
    if (found < 0) text_add(out, "a sum of the lanes, which are all done");
    else text_add(out, "%s %d%s%s", phase ? "lane" : "counts of lane", found, *name ? " " : "",
                  name);
    if (found >= 0) add_owner(a, &is, out);
}

static void add_task(const struct agent *a, int first, struct text *out) {
    const struct crew_layout *l = &a->head->layout;
    claim_word *word = region_at(l->region, a->recovery.view.base, REGION_TASKS, 0);
    uint32_t step = (uint32_t)atomic_load(&a->head->course.opened);
    int task = first, last = (int)l->region[REGION_TASKS].n - 1;
    while (task < last && claim_look(&word[task], step).state == CLAIM_DONE) task++;
    struct claim c = claim_look(&word[task], step);
    text_add(out, "task %d of the update", task);
    add_owner(a, &c, out);
}

static void add_captain(const struct group *g, struct text *out) {
    int captain = atomic_load(&g->shared->captain) - 1;
    text_add(out, "an order of group %d, ", g->number);
    if (captain < 0) text_add(out, "which has no captain");
    else text_add(out, "whose captain is worker %d", captain);
}

static void add_busy(const struct group *g, int place, struct text *out) {
    int busy = 0;
    while (busy < g->places && (busy == place ||
                                atomic_load(&g->place[busy].busy) != g->number + 1))
        busy++;
    if (busy < g->places)
        text_add(out, "worker %d, which is busy with an order of group %d", busy, g->number);
    else
        text_add(out, "workers that may come to group %d", g->number);
}

/* Of the words of an order's executors, the one that is least. */
static void add_member(const struct group *g, int threads, struct text *out) {
    const struct crew_group *s = g->shared;
    _Atomic uint64_t *word = group_words(g->shared);
    int least = 0;
    for (int i = 1; i < s->executors; i++)
        if (atomic_load(&word[i]) < atomic_load(&word[least])) least = i;
    text_add(out, "word %d of group %d, which worker %d writes", least, g->number,
             atomic_load(&s->role[least / threads]));
}

static void add_cause(const struct agent *a, int place, const struct crew_thread *t,
                      struct text *out) {
    struct crew_head *h = a->head;
    const uint64_t waits_for = atomic_load(&t->waits_for);
    const int what = (int)(waits_for >> 32), part = (int)(uint32_t)waits_for;
    bool in_group = part >= 0 && part < h->layout.region[REGION_GROUPS].n;
    bool in_lanes = what >= CREW_FOR_LANES && what <= CREW_FOR_LEGS;
    bool is_task = part >= 0 && part < h->layout.region[REGION_TASKS].n;
    struct group g = in_group ? crew_group(h, a->recovery.view.base, part) : (struct group){0};
    if (atomic_load(&t->at) != CREW_AT_WAIT) text_add(out, "other threads of its worker");
    else if (in_lanes && part >= 0 && part < 2) add_lane(a, part, out);
    else if (what == CREW_FOR_TASKS && is_task) add_task(a, part, out);
    else if (what == CREW_FOR_ORDER && in_group) add_captain(&g, out);
    else if (what == CREW_FOR_QUIET && in_group) add_busy(&g, place, out);
    else if (what == CREW_FOR_MEMBERS && in_group) add_member(&g, h->size.threads, out);
    else text_add(out, "the end of the step");
}

static void log_waits(struct agent *a) {
    const struct crew_head *h = a->head;
    for (int i = 0; a->recovery.view.base && i < h->size.place_threads; i++) {
        int place = i / h->size.threads;
        struct text what = {0};
        if (!a->process[place].pid || (i % h->size.threads && !atomic_load(&h->thread[i].held)))
            continue;
        add_cause(a, place, &h->thread[i], &what);
        log_event(&a->log, LOG_ERROR, "waits", "worker=%d thread=%d rank=%d text=%s", place,
                  i % h->size.threads, atomic_load(&h->worker[place].rank),
                  what.data ? what.data : "");
        text_free(&what);
    }
    recovery_log(&a->recovery, &a->log);
}

/* ---- detection ---- */

/* Grows with all work that is done for a step. */
static uint64_t work_done(const struct agent *a) {
    const struct crew_head *h = a->head;
    uint64_t sum = atomic_load(&h->course.committed) + atomic_load(&h->workers.epoch);
    for (int i = 0; i < h->size.place_threads; i++) {
        const struct crew_thread *thread = &h->thread[i];
        for (enum spent k = SPENT_COMPUTE; k <= SPENT_READ; k++)
            sum += (uint64_t)atomic_load(&thread->spending.time[k]);
    }
    return sum;
}

/* Whether all threads wait, though a step is open or could be opened. *passed: the least time that
 * counts for any of them, because one may be waiting for a processor. */
static bool all_wait(const struct agent *a, double *passed) {
    const struct crew_head *h = a->head;
    bool any_worker = false;
    bool open = !atomic_load(&h->asked.paused) ||
                atomic_load(&h->course.opened) > atomic_load(&h->course.committed);
    if (!open || !crew_begun(h) || atomic_load(&h->course.ending)) return false;
    for (int i = 0; i < h->size.places; i++)
        for (int t = 0; a->process[i].pid && t < h->size.threads; t++) {
            const struct seen *s = &a->process[i].seen[t];
            int at = atomic_load(&h->thread[i * h->size.threads + t].at);
            if (a->process[i].dead) continue;
            if (at != CREW_AT_WAIT && at != CREW_AT_REST) return false;
            if (atomic_load(&h->thread[i * h->size.threads + t].waits_for) >> 32 == CREW_FOR_HOSTS)
                return false; /* leases end that */
            if (s->state && s->passed < *passed) *passed = s->passed;
            any_worker = true;
        }
    return any_worker;
}

static void stand_still(struct agent *a) {
    uint64_t step = atomic_load(&a->head->course.opened);
    bool again = a->stood == step;
    char text[160];
    base_format(text, sizeof text, "all workers have waited for each other in step %llu for %g s%s",
                (unsigned long long)step, a->launch->stall_timeout, again ? ", again" : "");
    log_event(&a->log, LOG_WARNING, "stall", "cost=%g text=%s", a->launch->stall_timeout, text);
    agent_fault(a, "stall", -1, text, a->launch->stall_timeout);
    agent_event(a, "stall", -1, -1, text);
    log_waits(a);
    if (a->launch->no_kill) {
        agent_print(a, "%s; none is killed (--no-kill)", text);
    } else if (again) {
        agent_fail(a, text);
    } else {
        a->stood = step;
        agent_print(a, "%s; all are killed and replaced", text);
        for (int i = 0; i < a->head->size.places; i++) {
            a->process[i].freed = a->process[i].pid && !a->process[i].dead;
            if (a->process[i].freed) agent_kill(a, i);
        }
    }
}

void agent_check_standstill(struct agent *a, double passed) {
    uint64_t done = work_done(a);
    if (!all_wait(a, &passed) || done != a->done_seen) {
        a->done_seen = done;
        a->idle = 0;
        return;
    }
    a->idle += passed;
    if (a->idle <= a->launch->stall_timeout || a->stopped) return;
    a->idle = 0;
    stand_still(a);
}
