/* SPDX-License-Identifier: Apache-2.0
 * Schedules of pipelines: every leg once, in an order that can run; the waiting time and the number
 * of lanes that are kept are what theory says. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan/pipeline.h"

#define MOST_LANES 32

static struct pipeline_wish wish(enum pipeline_kind p, int chunks, int lanes, int workers) {
    return (struct pipeline_wish){p, chunks, lanes, workers};
}

static const double equal[LEGS_MOST + 1] = {
#define FOUR 1, 1, 1, 1
#define SIXTEEN FOUR, FOUR, FOUR, FOUR
    SIXTEEN, SIXTEEN, SIXTEEN, SIXTEEN, SIXTEEN, SIXTEEN,
    SIXTEEN, SIXTEEN, SIXTEEN, SIXTEEN, SIXTEEN, SIXTEEN};

/* Makes a schedule and simulates it; the simulation refuses turns that wait for each other, and
 * legs that are there twice or not at all. */
struct made {
    struct legs legs;
    struct pipeline s;
    struct pipeline_times t;
};

static struct made make(const struct pipeline_wish *w, int stages) {
    struct made m = {.legs = legs_of(stages, pipeline_splits_weights(w->kind))};
    assert_int_equal(pipeline_make(w, &m.legs, &m.s), TRI_OK);
    assert_int_equal(pipeline_simulate(&m.s, &m.legs, equal, &m.t), TRI_OK);
    return m;
}

static void forget(struct made *m) {
    pipeline_free(&m->s);
    pipeline_times_free(&m->t);
}

/* Whether the track's turns name each of its legs once per lane, and no other. */
static bool is_complete(const struct made *m, int track) {
    static int seen[LEGS_MOST][MOST_LANES];
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < m->s.per_track; i++) {
        const struct turn *t = pipeline_turn(&m->s, track, i);
        if (legs_at(&m->legs, t->leg).stage % m->s.tracks != track) return false;
        seen[t->leg][t->lane]++;
    }
    for (int leg = 0; leg < m->legs.n; leg++)
        for (int lane = 0; lane < m->s.lanes; lane++)
            if (seen[leg][lane] != (legs_at(&m->legs, leg).stage % m->s.tracks == track))
                return false;
    return true;
}

/* The most lanes whose forward leg of the stage has begun and whose backward leg is not over. */
static int stash(const struct made *m, int stage) {
    struct leg_set readers = {0};
    leg_set_add(&readers, legs_number(&m->legs, (struct leg){stage, m->legs.weights
                                                                        ? LEG_WEIGHTS
                                                                        : LEG_BACKWARD}));
    return pipeline_kept(&m->s, &m->t, legs_number(&m->legs, (struct leg){stage, LEG_FORWARD}),
                         &readers);
}

static int least(int a, int b) { return a < b ? a : b; }

static void test_theory(void **state) {
    static const int tracks[] = {2, 3, 4, 8};
    (void)state;
    for (size_t r = 0; r < COUNT(tracks); r++)
        for (int v = 1, p = tracks[r]; v <= MOST_LANES; v++)
            for (enum pipeline_kind k = 0; k <= PIPELINE_ZERO_BUBBLE; k++)
                for (int chunks = 2; chunks <= (k == PIPELINE_INTERLEAVED ? 4 : 2); chunks++) {
                    bool inter = k == PIPELINE_INTERLEAVED, zero = k == PIPELINE_ZERO_BUBBLE;
                    const struct pipeline_wish w = wish(k, inter ? chunks : 0, v, 1);
                    int stages = inter ? p * chunks : p, found;
                    bool legal = inter ? v % p == 0 : !zero || v >= p;
                    assert_int_equal(pipeline_tracks(&w, stages, &found) == TRI_OK, legal);
                    if (!legal) continue;
                    struct made m = make(&w, stages);
                    assert_int_equal(m.s.tracks, p);
                    for (int track = 0; track < p; track++) assert_true(is_complete(&m, track));
                    double all = inter ? chunks * v : zero ? 3 * v : v;
                    double idle = (p - 1) / (all + p - 1);
                    if (fabs(pipeline_idle(&m.s, &m.t) - idle) > 1e-9)
                        fail_msg("%s, %d tracks, %d lanes: idle %g, expected %g", pipeline_name(k),
                                 p, v, pipeline_idle(&m.s, &m.t), idle);
                    for (int stage = 0; stage < p && !inter; stage++) {
                        int kept = k == PIPELINE_GPIPE ? v : zero ? least(v, p)
                                                                  : least(v, p - stage);
                        if (zero) assert_true(stash(&m, stage) <= kept);
                        else assert_int_equal(stash(&m, stage), kept);
                    }
                    forget(&m);
                }
}

/* With several workers per track, as many lanes are computed side by side. */
static void test_side_by_side(void **state) {
    (void)state;
    for (int workers = 1; workers <= 8; workers++)
        for (int v = 1; v <= 16; v++) {
            const struct pipeline_wish w = wish(PIPELINE_1F1B, 0, v, workers);
            struct made m = make(&w, 2);
            assert_true(m.s.side_by_side <= (workers > 2 ? workers / 2 : 1));
            for (int track = 0; track < 2; track++) assert_true(is_complete(&m, track));
            if (workers == 4 && v == 16) {
                assert_int_equal(m.s.side_by_side, 2);
                assert_true(fabs(m.t.makespan - 2 * (8 + 1)) < 1e-9);
                assert_int_equal(stash(&m, 0), 4);
            }
            forget(&m);
        }
}

/* The checker finds a turn that comes before what it needs, and one that is there twice. */
static void test_checker(void **state) {
    (void)state;
    const struct pipeline_wish w = wish(PIPELINE_1F1B, 0, 4, 1);
    struct made m = make(&w, 2);
    struct pipeline_times t;
    struct turn *turn = m.s.turn, first = turn[0];
    for (int i = 0; i + 1 < m.s.per_track; i++) turn[i] = turn[i + 1];
    turn[m.s.per_track - 1] = first;
    assert_int_equal(pipeline_simulate(&m.s, &m.legs, equal, &t), TRI_USAGE);
    for (int i = m.s.per_track - 1; i; i--) turn[i] = turn[i - 1];
    turn[0] = first;
    assert_int_equal(pipeline_simulate(&m.s, &m.legs, equal, &t), TRI_OK);
    pipeline_times_free(&t);
    turn[1] = turn[0];
    assert_int_equal(pipeline_simulate(&m.s, &m.legs, equal, &t), TRI_USAGE);
    forget(&m);
}

static void test_refusals(void **state) {
    static const struct {
        enum pipeline_kind p;
        int chunks, stages, lanes;
        const char *says;
    } cases[] = {
        {PIPELINE_1F1B, 2, 4, 4, "--chunks 2 is for --pipeline interleaved, not 1f1b"},
        {PIPELINE_INTERLEAVED, 2, 3, 4, "--stages 4 works"},
        {PIPELINE_INTERLEAVED, 1, 4, 4, "at least 2 stages per track"},
        {PIPELINE_INTERLEAVED, 2, 8, 6, "--lanes 8 works"},
        {PIPELINE_ZERO_BUBBLE, 0, 4, 3, "--lanes 4 works"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct pipeline_wish w = wish(cases[i].p, cases[i].chunks, cases[i].lanes, 1);
        int tracks;
        assert_int_equal(pipeline_tracks(&w, cases[i].stages, &tracks), TRI_USAGE);
        if (!strstr(tri_message(), cases[i].says)) fail_msg("%s", tri_message());
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_theory),
        cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_checker),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
