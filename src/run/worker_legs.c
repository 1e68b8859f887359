/* SPDX-License-Identifier: Apache-2.0
 * A worker's legs of a pipeline (plan/pipeline.h). Worker r serves rank r modulo the number of
 * ranks. What it takes of other ranks, and computes again, depends on how long the operators of a
 * leg have taken at most. */
#include <string.h>

#include "run/worker_inside.h"

#define UNKNOWN 1000000000 /* nanoseconds: patience with a leg that has not run before */
#define LEAST 5000000      /* the least patience */

bool worker_has_legs(const struct worker_stage *s) {
    return s->k == 1 && s->c->run->machine->pipeline.ranks;
}

/* How long a leg may take before its worker counts as late. */
static int64_t patience(const struct worker *c, int leg) {
    const struct tree *t = &c->run->machine->tree[1];
    int64_t all = 0;
    for (size_t i = t->items[0][leg]; i < t->items[0][leg + 1]; i++) {
        int64_t item = atomic_load_explicit(&c->slowest[c->current->first_name[2] + (int)i],
                                            memory_order_relaxed);
        if (!item) return UNKNOWN;
        all += item;
    }
    return 2 * all + LEAST;
}

/* The thread's number among those that claim legs, and how many there are. */
static int number_of(const struct worker_stage *s, int *all) {
    const struct worker *c = s->c;
    int each = s->alone ? 1 : c->threads, local = (int)(s->context - c->context);
    *all = worker_size(c) * each;
    return worker_rank(c) * each + local;
}

/* Whether a worker that serves the rank is at work. */
static bool is_served(const struct worker_stage *s, int rank) {
    const struct worker *c = s->c;
    const struct crew_head *h = c->head;
    int each = s->alone ? 1 : c->threads;
    for (int i = 0; i < h->places; i++) {
        int own = atomic_load(&h->worker[i].rank);
        if (own < 0 || atomic_load(&h->worker[i].state) != CREW_READY) continue;
        for (int t = 0; t < each; t++)
            if (pipeline_serves(&c->run->machine->pipeline, own * each + t, worker_size(c) * each,
                                rank))
                return true;
    }
    return false;
}

/* Whether this thread may take a turn of another rank: its workers are dead, or have been busy with
 * something else for longer than the turn takes. */
static bool takes(void *stage, int rank, const struct turn *t) {
    struct worker_stage *s = stage;
    const struct turn *seen = &s->seen[rank].turn;
    int64_t now = base_now();
    if (!is_served(s, rank)) return true;
    if (!s->seen[rank].since || seen->leg != t->leg || seen->lane != t->lane) {
        s->seen[rank].turn = *t;
        s->seen[rank].since = now;
    }
    int64_t longest = 0;
    const struct pipeline *all = &s->c->run->machine->pipeline;
    for (int leg = 0; leg < s->c->run->machine->compilation.legs.n; leg++)
        if (legs_at(&s->c->run->machine->compilation.legs, leg).stage % all->ranks == rank &&
            patience(s->c, leg) > longest)
            longest = patience(s->c, leg);
    return now - s->seen[rank].since > longest;
}

static bool steals(const struct worker *c) {
    const char *how = c->run->options.steal;
    return !how || strcmp(how, "never");
}

static struct pipeline_claimer claimer(struct worker_stage *s) {
    struct worker *c = s->c;
    struct pipeline_claimer one = {
        .who = {(uint32_t)c->step, s->context->number, (int)(s->context - c->context)},
        .takes = steals(c) ? takes : NULL, .user = s};
    one.number = number_of(s, &one.all);
    return one;
}

static bool is_busy(struct worker_stage *s) {
    return s->busy && s->busy == 1 + machine_legs_over(s->c->run->machine, (uint32_t)s->c->step);
}

int worker_claim_leg(struct worker_stage *s, int *leg) {
    const struct pipeline_claimer one = claimer(s);
    return is_busy(s) ? PIPELINE_WAITS : machine_claim_leg(s->c->run->machine, &one, leg);
}

bool worker_leg_is_ready(struct worker_stage *s) {
    const struct pipeline_claimer one = claimer(s);
    return !is_busy(s) && machine_leg_is_ready(s->c->run->machine, &one);
}

/* Whether a thread computes it again already. */
static bool is_repeated(const struct worker *c, int again) {
    for (int i = 0; i < c->head->places * c->threads; i++)
        if (atomic_load(&c->head->thread[i].again) == again) return true;
    return false;
}

int worker_slow_leg(const struct worker_stage *s, int *leg) {
    const struct worker *c = s->c;
    struct tree *t = &c->run->machine->tree[1];
    int64_t now = base_now();
    if (!steals(c)) return -1;
    for (int k = 0; k < t->buckets.legs; k++)
        for (int lane = 0, owner; lane < t->shape.lanes; lane++) {
            if (!board_in_flight(tree_board(t, k), (uint32_t)c->step, s->context->number, lane,
                                 &owner))
                continue;
            int64_t began = atomic_load(&c->head->thread[owner].lane_began);
            if (!began || now - began < patience(c, k) ||
                is_repeated(c, 1 + k * t->shape.lanes + lane))
                continue;
            *leg = k;
            return lane;
        }
    return -1;
}
