/* SPDX-License-Identifier: Apache-2.0
 * Which stage operators are in, and the message for every mistake in stages and their options. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <trireme.h>

#include "mesh_net.h"
#include "plan/stages.h"
#include "run/run.h"
#include "scratch.h"

#define HERE (n->line = __LINE__)

/* ---- which stage ---- */

static int stage_of(const tri_tensor *t) { return t->node->stage; }

/* What nobody asks for is where its latest input is. */
static void test_asked(void **state) {
    (void)state;
    struct net n = network();
    int stages;
    tri_stage(n.g, "first", 0);
    tri_stage(n.g, "sec*", 1);
    assert_int_equal(stages_assign(n.g, &(tri_options){0}, NULL, &stages), TRI_OK);
    assert_int_equal(stages, 2);
    assert_int_equal(stage_of(n.h), 0);
    assert_int_equal(stage_of(n.a), 0);
    assert_int_equal(stage_of(n.y), 1);
    assert_int_equal(stage_of(n.g->loss), 1);
    tri_graph_free(n.g);
}

/* The last setting counts, also for an operator of a scope. */
static void test_last(void **state) {
    (void)state;
    struct net n = network();
    int stages;
    tri_stage(n.g, "*", 1);
    tri_stage(n.g, "first.matmul", 0);
    tri_stage(n.g, "relu", 0);
    assert_int_equal(stages_assign(n.g, &(tri_options){0}, NULL, &stages), TRI_OK);
    assert_int_equal(stages, 2);
    assert_int_equal(stage_of(n.a), 0);
    assert_int_equal(stage_of(n.y), 1);
    tri_graph_free(n.g);
}

/* --stages wins over the network; 1: none. Balanced stages are in the order of the nodes. */
static void test_balanced(void **state) {
    (void)state;
    for (int64_t wanted = 1; wanted <= 5; wanted++) {
        struct net n = network();
        int stages, last = 0;
        tri_stage(n.g, "second", 1);
        assert_int_equal(stages_assign(n.g, &(tri_options){.stages = wanted}, NULL, &stages),
                         TRI_OK);
        assert_int_equal(stages, wanted == 1 ? 0 : wanted);
        for (size_t i = 0; stages && i < n.g->n_nodes; i++) {
            if (!node_runs(n.g->node[i])) continue;
            assert_in_range(n.g->node[i]->stage, last, last + 1);
            last = n.g->node[i]->stage;
        }
        assert_int_equal(last, stages ? stages - 1 : 0);
        tri_graph_free(n.g);
    }
}

/* The first operator is a reshape, the second has most of the work. */
static void test_work(void **state) {
    (void)state;
    tri_graph *g = tri_graph_new(8);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(8, 2, 50)), *flat = tri_flatten(x, 1);
    tri_tensor *h = tri_dense(flat, "a", 400), *y = tri_dense(tri_relu(h), "b", 2);
    int stages;
    tri_loss(tri_mean(tri_mul(y, y), TRI_ALL));
    assert_int_equal(stages_assign(g, &(tri_options){.stages = 2}, NULL, &stages), TRI_OK);
    assert_int_equal(stage_of(flat), 0);
    for (size_t i = 0; i < g->n_nodes; i++)
        if (!strcmp(g->node[i]->name, "a.matmul")) assert_int_equal(g->node[i]->stage, 0);
    assert_int_equal(stage_of(h), 1);
    assert_int_equal(stage_of(g->loss), 1);
    assert_int_equal(stages_assign(g, &(tri_options){.stages = 8}, NULL, &stages), TRI_USAGE);
    assert_message("the network has only 7 operators that compute");
    tri_graph_free(g);
}

/* By times that are given instead, stages begin after the operator that takes most, or with it; and
 * --cuts puts them there. */
static void test_cuts(void **state) {
    static const struct {
        const char *slow, *cut;
    } cases[] = {{"a.matmul", "a.add"}, {"b.matmul", "b.matmul"}};
    (void)state;
    for (size_t c = 0; c < COUNT(cases); c++) {
        tri_graph *g = tri_graph_new(8);
        tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(8, 20));
        tri_tensor *y = tri_dense(tri_relu(tri_dense(x, "a", 20)), "b", 20);
        double work[64] = {0};
        struct text cuts = {0};
        int stages;
        tri_loss(tri_mean(tri_mul(y, y), TRI_ALL));
        assert_in_range(g->n_nodes, 1, COUNT(work));
        for (size_t i = 0; i < g->n_nodes; i++)
            if (node_runs(g->node[i])) work[i] = strcmp(g->node[i]->name, cases[c].slow) ? 0.1 : 9;
        assert_int_equal(stages_cut(g, work, 2, &cuts), TRI_OK);
        assert_string_equal(cuts.data, cases[c].cut);
        const tri_options o = {.stages = 2, .cuts = cuts.data};
        assert_int_equal(stages_assign(g, &o, NULL, &stages), TRI_OK);
        int stage = 0;
        for (size_t i = 0; i < g->n_nodes; i++) {
            if (!strcmp(g->node[i]->name, cases[c].cut)) stage = 1;
            if (node_runs(g->node[i])) assert_int_equal(g->node[i]->stage, stage);
        }
        text_free(&cuts);
        tri_graph_free(g);
    }
}

/* One track is no pipeline: a run that asks for one prints a line. */
static void test_one_track(void **state) {
    (void)state;
    for (int chunks = 2; chunks <= 4; chunks += 2) {
        tri_run *run = tri_open(network().g, &(tri_options){.stages = 4, .lanes = 4, .quiet = true,
                                                            .pipeline = "interleaved",
                                                            .chunks = chunks});
        if (!run) fail_msg("%s", tri_message());
        assert_int_equal(run->machine->compilation.note != NULL, chunks == 4);
        assert_int_equal(tri_close(run), TRI_OK);
    }
}

/* ---- mistakes ---- */

static void plain(struct net *n) { (void)n; }
static void two(struct net *n) { tri_stage(n->g, "second", 1); }
static void backwards(struct net *n) {
    tri_stage(n->g, "first", 1);
    tri_stage(n->g, "second", 0);
}
static void gap(struct net *n) { tri_stage(n->g, "second", 2); }
static void late(struct net *n) { tri_stage(n->g, "*", 1); }
static void no_scope(struct net *n) { HERE, tri_stage(n->g, "secnod", 1); }
static void no_pattern(struct net *n) { HERE, tri_stage(n->g, "x*", 1); }
static void a_weight(struct net *n) { HERE, tri_stage(n->g, "first.w", 1); }

static const struct mistake {
    void (*make)(struct net *n);
    tri_options o;
    const char *parts[4];
} mistakes[] = {
    {backwards, {0}, {"stages go backwards: ", "second.matmul (matmul f32[8,4], f32[4,10])",
                      "is to be in stage 0, but it needs relu of stage 1"}},
    {gap, {0}, {"stage 1 has no operator, but there is a stage 2", "without gaps"}},
    {late, {0}, {"stage 0 has no operator, but there is a stage 1"}},
    {no_scope, {0}, {"stage 1: no scope or operator matches \"secnod\"", "mean \"second\"?"}},
    {no_scope, {.stages = 2}, {"stage 1: no scope or operator matches \"secnod\""}},
    {no_scope, {.stages = 1}, {"stage 1: no scope or operator matches \"secnod\""}},
    {no_pattern, {0}, {"stage 1: no scope or operator matches \"x*\""}},
    {a_weight, {0}, {"stage 1: no scope or operator matches \"first.w\""}},
    {plain, {.stages = 6}, {"--stages 6: the network has only 5 operators"}},
    {plain, {.stages = 65}, {"--stages 65: there can be 1 to 64"}},
    {plain, {.stages = -1}, {"--stages -1: there can be 1 to 64"}},
    {plain, {.pipeline = "gpipe"}, {"--pipeline has no effect without stages", "--stages 2"}},
    {plain, {.chunks = 3}, {"--chunks has no effect without stages"}},
    {plain, {.steal = "never"}, {"--steal has no effect without stages"}},
    {two, {.stages = 1, .pipeline = "gpipe"}, {"--pipeline has no effect without stages"}},
    {two, {.pipeline = "1f1"}, {"\"1f1\"; it can be 1f1b, gpipe, interleaved or zero-bubble"}},
    {two, {.steal = "always"}, {"\"always\"; it can be late or never"}},
    {two, {.chunks = 3}, {"--chunks 3 is for --pipeline interleaved, not 1f1b"}},
    {two, {.chunks = 3, .pipeline = "gpipe"}, {"--chunks 3 is for", "not gpipe"}},
    {two, {.chunks = 1, .pipeline = "interleaved"}, {"at least 2 stages per track"}},
    {two, {.chunks = -1, .pipeline = "interleaved"}, {"--chunks -1: there can be 1 to 64"}},
    {two, {.chunks = 1LL << 32}, {"--chunks 4294967296: there can be 1 to 64"}},
    {two, {.chunks = 4, .pipeline = "interleaved"}, {"needs a multiple of 4 stages, not 2",
                                                     "--stages 4 works"}},
    {plain, {.stages = 3, .pipeline = "interleaved"}, {"a multiple of 2 stages, not 3"}},
    {plain, {.stages = 4, .pipeline = "interleaved", .lanes = 3}, {"a multiple of 2 lanes, not 3",
                                                                  "--lanes 4", "1f1b"}},
    {two, {.pipeline = "zero-bubble", .lanes = 1}, {"at least 2 lanes, not 1", "--lanes 2"}},
};

static void test_mistakes(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        const struct mistake *m = &mistakes[i];
        struct net net = network(), *n = &net;
        char place[64];
        tri_options o = m->o;
        o.quiet = true;
        if (!o.lanes) o.lanes = 4;
        m->make(n);
        if (tri_open(n->g, &o)) fail_msg("mistake %zu is taken", i);
        for (int k = 0; k < 4 && m->parts[k]; k++) assert_message(m->parts[k]);
        snprintf(place, sizeof place, "test_stages.c:%d: ", n->line);
        if (n->line) assert_message(place);
    }
}

/* What the builder refuses at once. */
static void test_builder(void **state) {
    (void)state;
    static const char *const parts[] = {"tri_stage: stage -1; from 0 to 63",
                                        "tri_stage: stage 64; from 0 to 63", "no scope is open"};
    for (int i = 0; i < 3; i++) {
        struct net n = network();
        tri_stage(n.g, i < 2 ? "first" : NULL, i == 0 ? -1 : i == 1 ? 64 : 0);
        assert_int_equal(tri_graph_status(n.g), TRI_USAGE);
        assert_message(parts[i]);
        tri_graph_free(n.g);
    }
}

static void test_text(void **state) {
    (void)state;
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"stage \"a\" 64\n", "a stage's number is from 0 to 63"},
        {"stage \"a\" -1\n", "a stage's number is from 0 to 63"},
        {"stage \"a\" 1.5\n", "a stage's number is from 0 to 63"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[128];
        snprintf(text, sizeof text, "graph {batch=1}\n%s", rows[i].text);
        tri_graph *g = tri_graph_parse(text, strlen(text), "text");
        assert_int_equal(tri_graph_status(g), TRI_USAGE);
        assert_message(rows[i].part);
        tri_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asked),    cmocka_unit_test(test_last),
        cmocka_unit_test(test_balanced), cmocka_unit_test(test_work),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_one_track), cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_builder),  cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
