/* SPDX-License-Identifier: Apache-2.0
 * Claims the legs of lanes in the order of the schedule. A track's turns are claimed in order, by
 * one or several threads: this bounds how many lanes' results are kept. If a thread dies, its turn
 * is the first that is free again. */
#include "machine/machine.h"

/* The track's first turn that nobody has claimed; null: none is left. */
static const struct turn *next_turn(struct machine *m, const struct pipeline_claimer *c,
                                    int track) {
    const struct pipeline *s = &m->pipeline;
    int *done = &m->view[c->who.local].done[track];
    for (int i = *done; i < s->per_track; i++) {
        const struct turn *t = pipeline_turn(s, track, i);
        struct board *b = tree_board(&m->tree[1], t->leg);
        if (board_is_free(b, c->who.step, t->lane)) return t;
        if (i == *done) *done += board_is_over(b, c->who.step, t->lane);
    }
    return NULL;
}

enum readiness { READY, WAITS, FAILED };

/* A lane fails with the first of its legs that does. Later ones are not waited for: the thread that
 * gives one up wakes nobody. */
static enum readiness look(struct machine *m, uint32_t step, const struct turn *t) {
    const struct legs *legs = &m->compilation.legs;
    int before = pipeline_before(legs, t->leg);
    if (before < 0 || board_is_done(tree_board(&m->tree[1], before), step, t->lane)) return READY;
    for (; before >= 0; before = pipeline_before(legs, before))
        if (board_has_failed(tree_board(&m->tree[1], before), step, t->lane)) return FAILED;
    return WAITS;
}

/* A lane whose earlier leg has failed is over. */
static void give_up(struct machine *m, const struct tree_thread *who, const struct turn *t) {
    struct board *b = tree_board(&m->tree[1], t->leg);
    if (board_claim(b, who->step, who->thread, t->lane))
        board_fail(b, who->step, who->thread, t->lane);
}

/* Whether the turn is planned earlier. The earliest turn that is not over always finds free slots,
 * since the plan kept so many; so threads that prefer it never all wait for slots. */
static bool is_earlier(const struct machine *m, const struct turn *a, const struct turn *b) {
    size_t lanes = (size_t)m->lanes;
    double x = m->times.begin[(size_t)a->leg * lanes + (size_t)a->lane];
    double y = m->times.begin[(size_t)b->leg * lanes + (size_t)b->lane];
    return x != y ? x < y : a->leg > b->leg;
}

/* Of the turns that can run, the earliest. */
static const struct turn *choose(struct machine *m, const struct pipeline_claimer *c, bool own,
                                 bool *left) {
    const struct turn *best = NULL;
    for (int track = 0; track < m->pipeline.tracks; track++) {
        if (pipeline_serves(&m->pipeline, c->number, c->all, track) != own) continue;
        const struct turn *t;
        enum readiness now = WAITS;
        while ((t = next_turn(m, c, track)) && (now = look(m, c->who.step, t)) == FAILED)
            give_up(m, &c->who, t);
        *left |= t != NULL;
        if (!t || now == WAITS) continue;
        if (!own && !(c->takes && c->takes(c->user, track, t))) continue;
        if (!best || is_earlier(m, t, best)) best = t;
    }
    return best;
}

static void begin_view(struct machine *m, const struct pipeline_claimer *c) {
    struct pipeline_view *v = &m->view[c->who.local];
    if (v->step != c->who.step) *v = (struct pipeline_view){.step = c->who.step};
}

/* Of its own tracks, or else of others'. */
static const struct turn *find_turn(struct machine *m, const struct pipeline_claimer *c,
                                    bool *left) {
    bool others = false;
    *left = false;
    const struct turn *t = choose(m, c, true, left);
    if (!t && c->takes) t = choose(m, c, false, &others);
    *left |= others;
    return t;
}

bool machine_leg_is_ready(struct machine *m, const struct pipeline_claimer *c) {
    bool left;
    begin_view(m, c);
    return find_turn(m, c, &left);
}

int machine_claim_leg(struct machine *m, const struct pipeline_claimer *c, int *leg) {
    begin_view(m, c);
    for (bool left;;) {
        const struct turn *t = find_turn(m, c, &left);
        if (!t) return left ? PIPELINE_WAITS : PIPELINE_OVER;
        *leg = t->leg;
        if (board_claim(tree_board(&m->tree[1], t->leg), c->who.step, c->who.thread, t->lane))
            return t->lane;
    }
}

int machine_legs_over(struct machine *m, uint32_t step) {
    int n = 0;
    for (int leg = 0; leg < m->tree[1].buckets.legs; leg++)
        for (int lane = 0; lane < (int)m->lanes; lane++)
            n += board_is_over(tree_board(&m->tree[1], leg), step, lane);
    return n;
}
