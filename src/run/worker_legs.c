/* SPDX-License-Identifier: Apache-2.0
 * A worker's legs of a pipeline (plan/pipeline.h). The worker of rank r serves track r modulo the
 * number of tracks. What it takes of other tracks, and computes again, depends on how long the
 * operators of a leg have taken at most. */
#include <string.h>

#include "run/worker_inside.h"

#define UNKNOWN 1000000000 /* nanoseconds: patience with a leg that has not run before */
#define LEAST 5000000      /* the least patience */
#define LATER 2000000      /* when a thread that found no slot looks again */

bool worker_has_legs(const struct worker_stage *s) {
    return s->k == 1 && s->c->run->machine->pipeline.tracks;
}

int worker_leg(const struct worker *c, int leg) {
    return legs_number(&c->head->layout.legs, legs_at(&c->run->machine->compilation.legs, leg));
}

static _Atomic int64_t *time_of(const struct worker *c, int leg) {
    return &c->head->course.leg_time[worker_leg(c, leg)];
}

/* How long a leg may take before its worker counts as late. */
static int64_t patience(const struct worker *c, int leg) {
    int64_t takes = atomic_load_explicit(time_of(c, leg), memory_order_relaxed);
    return takes ? 2 * takes + LEAST : UNKNOWN;
}

/* A measurement counts as at most 4 times the average, so that a worker that was stopped for long
 * does not make all wait for it. */
void worker_learn_leg(const struct worker *c, int leg, int64_t took) {
    _Atomic int64_t *time = time_of(c, leg);
    int64_t old = atomic_load_explicit(time, memory_order_relaxed);
    int64_t most = 4 * old, new = old ? old + ((took < most ? took : most) - old) / 4 : took;
    atomic_store_explicit(time, new, memory_order_relaxed);
}

/* The number of a worker's thread among those that claim legs, and how many there are: of each
 * replica one, else each, or if those of a worker compute a leg together, one of each worker.
 * -1: it claims none. */
static int number_of(const struct worker_stage *s, int place, int thread, int *all) {
    const struct crew_head *h = s->c->head;
    int each = s->alone ? 1 : s->c->threads, rank = atomic_load(&h->worker[place].rank);
    bool replicas = s->c->run->machine->members > 1;
    *all = replicas ? group_count(worker_size(s->c), h->layout.seats) : worker_size(s->c) * each;
    if (rank < 0 || thread >= each) return -1;
    return replicas ? crew_group_of(h, place) : rank * each + thread;
}

/* Whether a worker that serves the track is at work. *progress changes with every leg that its
 * threads begin or end. */
static bool is_served(const struct worker_stage *s, int track, uint64_t *progress) {
    const struct worker *c = s->c;
    const struct crew_head *h = c->head;
    bool served = false;
    *progress = 1;
    for (int i = 0; i < h->size.places; i++) {
        if (atomic_load(&h->worker[i].state) != CREW_READY) continue;
        for (int k = 0, all; k < c->threads; k++) {
            const struct crew_thread *t = &h->thread[i * c->threads + k];
            int number = number_of(s, i, k, &all);
            if (number < 0 || !pipeline_serves(&c->run->machine->pipeline, number, all, track))
                continue;
            served = true;
            *progress += (uint64_t)atomic_load(&t->lane_began) + atomic_load(&t->lanes_done) +
                         atomic_load(&t->lanes_lost);
        }
    }
    return served;
}

/* The longest patience with a leg of the track. */
static int64_t longest_of(const struct worker *c, int track) {
    const struct legs *l = &c->run->machine->compilation.legs;
    int64_t longest = 0;
    for (int leg = 0; leg < l->n; leg++) {
        bool of_track = legs_at(l, leg).stage % c->run->machine->pipeline.tracks == track;
        if (of_track && patience(c, leg) > longest) longest = patience(c, leg);
    }
    return longest;
}

/* Whether this thread may take a turn of another track: its workers are dead, or have been busy
 * with something else for longer than the turn takes, or have not begun or ended a leg for so long:
 * if they are stopped, not every turn waits. */
static bool takes(void *stage, int track, const struct turn *t) {
    struct worker_stage *s = stage;
    struct seen_track *seen = &s->seen[track];
    int64_t now = base_now();
    uint64_t progress;
    if (!is_served(s, track, &progress)) return true;
    if (seen->progress != progress) *seen = (struct seen_track){*t, progress, now, now};
    if (seen->turn.leg != t->leg || seen->turn.lane != t->lane) {
        seen->turn = *t;
        seen->since = now;
    }
    int64_t longest = longest_of(s->c, track);
    return now - seen->since > longest || now - seen->quiet > longest;
}

static struct pipeline_claimer claimer(struct worker_stage *s) {
    struct worker *c = s->c;
    struct pipeline_claimer one = {
        .who = {(uint32_t)c->step, s->context->number, (int)(s->context - c->context)},
        .takes = c->run->machine->compilation.steals ? takes : NULL, .user = s};
    one.number = number_of(s, c->place, one.who.local, &one.all);
    return one;
}

static bool is_busy(const struct worker_stage *s, bool again) {
    const struct busy *b = &s->busy[again];
    return b->over && base_now() < b->until &&
           b->over == 1 + machine_legs_over(s->c->run->machine, (uint32_t)s->c->step);
}

void worker_note_busy(struct worker_stage *s, bool again, int over) {
    s->busy[again] = (struct busy){1 + over, base_now() + LATER};
}

bool worker_lacks_slots(const struct worker_stage *s) { return is_busy(s, false); }

int worker_claim_leg(struct worker_stage *s, int *leg) {
    const struct pipeline_claimer one = claimer(s);
    return is_busy(s, false) ? PIPELINE_WAITS : machine_claim_leg(s->c->run->machine, &one, leg);
}

bool worker_leg_is_ready(struct worker_stage *s) {
    if (worker_rank(s->c) < 0) return false;
    const struct pipeline_claimer one = claimer(s);
    return !is_busy(s, false) && machine_leg_is_ready(s->c->run->machine, &one);
}

bool worker_is_repeated(const struct worker *c, int again) {
    for (int i = 0; i < c->head->size.place_threads; i++)
        if (atomic_load(&c->head->thread[i].again) == again) return true;
    return false;
}

int worker_slow_leg(const struct worker_stage *s, int *leg) {
    const struct worker *c = s->c;
    struct tree *t = &c->run->machine->tree[1];
    int64_t now = base_now();
    if (worker_rank(c) < 0 || !c->run->machine->compilation.steals || is_busy(s, true)) return -1;
    for (int k = 0; k < t->buckets.legs; k++)
        for (int lane = 0, owner; lane < t->shape.lanes; lane++) {
            if (!board_in_flight(tree_board(t, k), (uint32_t)c->step, s->context->number, lane,
                                 &owner))
                continue;
            int64_t began = atomic_load(&c->head->thread[owner].lane_began);
            if (!began || now - began < patience(c, k) ||
                worker_is_repeated(c, 1 + k * t->shape.lanes + lane))
                continue;
            *leg = k;
            return lane;
        }
    return -1;
}
