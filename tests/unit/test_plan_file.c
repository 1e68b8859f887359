/* SPDX-License-Identifier: Apache-2.0
 * Plan files: read, printed and hashed; taken as options; checked against networks and their own
 * strategies. */
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
#include "plan/passes.h"
#include "plan/plan_file.h"
#include "scratch.h"

static struct plan_file parsed(const char *text) {
    struct plan_file p;
    if (plan_parse("p", text, strlen(text), &p)) fail_msg("%s", tri_message());
    return p;
}

static void write_plan(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* ---- the text ---- */

static void test_round_trip(void **state) {
    static const char text[] = "# a comment\n[placement]\n threads\t 2\n[grain]\n"
                               "maybe strategy *.a b c out=m # the last word is asked\r\n"
                               "lanes 2\nlayout w m,-\nbatch  8\n";
    static const char right[] = "[grain]\nbatch 8\nlanes 2\nmaybe strategy *.a b c out=m\n"
                                "layout w m,-\nhash ";
    struct plan_file p = parsed(text), again;
    struct text once = {0}, twice = {0};
    (void)state;
    assert_true(plan_is_edited(&p, PLAN_GRAIN)); /* it has no hash */
    plan_print(&p, &once);
    assert_non_null(strstr(once.data, right));
    assert_non_null(strstr(once.data, "[placement]\nthreads 2\nhash "));
    again = parsed(once.data);
    assert_false(plan_is_edited(&again, PLAN_GRAIN));
    assert_false(plan_is_edited(&again, PLAN_PLACEMENT));
    plan_print(&again, &twice);
    assert_string_equal(once.data, twice.data);
    text_free(&once);
    text_free(&twice);
    plan_free(&p);
    plan_free(&again);
}

/* The order of strategies counts; that of other lines, blanks and comments do not. */
static void test_hash(void **state) {
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"[grain]\nbatch 8\nlanes 2\n", "[grain]\nlanes  2 # two\n\nbatch 8", true},
        {"[grain]\nbatch 8\n", "[grain]\nbatch 8\n[placement]\nthreads 2\n", true},
        {"[grain]\nbatch 8\n", "[grain]\nbatch 16\n", false},
        {"[grain]\nstrategy a out=m\nlayout b m\n", "[grain]\nlayout b m\nstrategy a out=m\n",
         false},
        {"[grain]\nstrategy a out=m\n", "[grain]\nmaybe strategy a out=m\n", false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct plan_file a = parsed(cases[i].a), b = parsed(cases[i].b);
        char x[PLAN_DIGITS], y[PLAN_DIGITS];
        plan_hash(&a, PLAN_GRAIN, x);
        plan_hash(&b, PLAN_GRAIN, y);
        if (!strcmp(x, y) != cases[i].same) fail_msg("case %zu: %s %s", i, x, y);
        plan_free(&a);
        plan_free(&b);
    }
}

static void test_refusals(void **state) {
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "p is no plan: it has no part [grain]"},
        {"[placement]\nthreads 1\n", "p is no plan: it has no part [grain]"},
        {"batch 8\n", "p:1: \"batch\" stands before the first part; a plan begins with [grain]"},
        {"[grian]\n", "p:1: there is no part [grian]; do you mean [grain]?"},
        {"[grain]\n[grain]\n", "p:2: the part [grain] begins a second time"},
        {"[grain]\n\nbatsh 8\n", "p:3: unknown word \"batsh\" in [grain]; do you mean batch?"},
        {"[grain]\nqwertyuiop 8\n", "p:2: unknown word \"qwertyuiop\" in [grain]; a line begins "
                                    "with one of: model, graph, batch"},
        {"[grain]\nthreads 1\n", "p:2: threads belongs to [placement], not to [grain]"},
        {"[grain]\nbatch 8\nbatch 8\n", "p:3: batch is given twice: line 2 has it too"},
        {"[grain]\nbatch 0\n", "p:2: batch \"0\": expected a whole number of at least 1"},
        {"[grain]\nbatch -1\n", "p:2: batch \"-1\": expected"},
        {"[grain]\nbatch 99999999999999999999\n", "p:2: batch 99999999999999999999: there can be"},
        {"[grain]\nbatch 2147483648\n", "p:2: batch 2147483648: there can be 1 to 2147483647"},
        {"[grain]\nbatch -99999999999999999999\n", "p:2: batch -99999999999999999999: there can"},
        {"[grain]\nlanes 9\nbatch 8\n", "p:2: 9 lanes for a batch of 8: there can be 1 to 8"},
        {"[grain]\nlanes 99999999999999\n", "p:2: lanes 99999999999999: there can be 1 to "},
        {"[grain]\n[placement]\nworkers 129\n", "p:3: workers 129: there can be 1 to 128"},
        {"[grain]\n[placement]\nthreads 1025\n", "p:3: threads 1025: there can be 1 to 1024"},
        {"[grain]\nmesh model=0\n", "p:2: mesh \"model=0\": an axis has from 1 to 1024 seats"},
        {"[grain]\nbatch\n", "p:2: batch \"\": expected"},
        {"[grain]\nmesh\n", "p:2: mesh lacks its value"},
        {"[grain]\nunset folow\n", "p:2: unset \"folow\": it can be one of: follow batch whole"},
        {"[grain]\nstrategy a\n", "p:2: strategy lacks a word: strategy PATTERN FACTORS"},
        {"[grain]\nlayout-of a m\n", "p:2: layout-of lacks a word: layout-of NODE OUTPUT LAYOUT"},
        {"[grain]\nmaybe shard a (1)\n", "p:2: maybe stands before strategy or layout, not before "
                                         "shard"},
        {"[grain]\nhash 1\n", "p:2: hash \"1\": expected 16 hexadecimal digits"},
        {"[grain]\nhash 0123456789abcdeg\n", "p:2: hash \"0123456789abcdeg\": expected 16"},
        {"[grain]\nhash 0123456789abcdef\nhash 0123456789abcdef\n", "p:3: [grain] has two hashes"},
        {"[grain]\nbatch \001\n", "p:2: this is no line of a plan"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct plan_file p;
        assert_int_equal(plan_parse("p", cases[i].text, strlen(cases[i].text), &p), TRI_USAGE);
        if (strncmp(tri_message(), cases[i].message, strlen(cases[i].message)))
            fail_msg("case %zu: %s", i, tri_message());
    }
}

static void test_zero_byte(void **state) {
    static const char text[] = "[grain]\nbatch 8\0 9\n";
    struct plan_file p;
    (void)state;
    assert_int_equal(plan_parse("p", text, sizeof text - 1, &p), TRI_USAGE);
    assert_int_equal(strncmp(tri_message(), "p:2: this is no line of a plan", 30), 0);
}

/* ---- options ---- */

static void test_take(void **state) {
    struct plan_file p = parsed("[grain]\nbatch 8\nlanes 2\nmesh model=2\nunset whole\namp O1\n"
                                "[placement]\nthreads 3\nrecompute a.*\n");
    tri_options o = {.threads = 5};
    (void)state;
    assert_int_equal(plan_take(&p, &o), TRI_OK);
    assert_int_equal(o.batch, 8);
    assert_int_equal(o.lanes, 2);
    assert_string_equal(o.mesh, "model=2");
    assert_string_equal(o.unset, "whole");
    assert_string_equal(o.amp, "O1");
    assert_null(o.conv);
    assert_int_equal(o.threads, 5); /* options win */
    assert_string_equal(o.recompute, "a.*");
    assert_int_equal(plan_take(&p, &o), TRI_OK); /* a second time changes nothing */
    o.amp = "O2";
    assert_int_equal(plan_take(&p, &o), TRI_USAGE);
    assert_string_equal(tri_message(), "p:6: amp O1, but --amp O2: a plan decides the bits of a "
                                       "run; change the one or the other");
    o = (tri_options){.lanes = 4};
    assert_int_equal(plan_take(&p, &o), TRI_USAGE);
    assert_non_null(strstr(tri_message(), "p:3: lanes 2, but --lanes 4"));
    plan_free(&p);
}

/* ---- networks ---- */

static struct net with_strategy(void) {
    struct net n = network();
    tri_mesh(n.g, "model=2");
    tri_strategy(n.g, "first", "out=model");
    tri_layout(n.v, "model, -");
    return n;
}

/* What a network asks for by itself is in its plan, and read from there it means the same. */
static void test_network(void **state) {
    struct net n = with_strategy(), m = network();
    struct plan_file p, again;
    struct text text = {0}, second = {0};
    tri_options o = {.plan = at("plan")};
    struct strategies s;
    (void)state;
    assert_int_equal(plan_make(n.g, &(tri_options){0}, &p), TRI_OK);
    plan_print(&p, &text);
    assert_non_null(strstr(text.data, "\nmesh model=2\nunset follow\n"));
    assert_non_null(strstr(text.data, "\nstrategy first out=model\nlayout-of second.param 0 "
                                      "model,-\n"));
    assert_int_equal(plan_check_network(&p, n.g), TRI_OK);
    write_plan(at("plan"), text.data);
    made(n.g, &o, &s);
    assert_string_equal(asked(&s, n.h), "out");
    strategies_free(&s);
    assert_int_equal(plan_make(n.g, &o, &again), TRI_OK);
    plan_print(&again, &second);
    assert_string_equal(text.data, second.data);
    assert_int_equal(plan_check_network(&p, m.g), TRI_OK); /* only divided otherwise */
    tri_freeze(m.g, "first.w");
    assert_int_equal(plan_check_network(&p, m.g), TRI_USAGE);
    assert_non_null(strstr(tri_message(), ", but the network is graph "));
    text_free(&text);
    text_free(&second);
    plan_free(&p);
    plan_free(&again);
    tri_graph_free(n.g);
    tri_graph_free(m.g);
}

static void test_strategies(void **state) {
    static const struct {
        const char *plan, *message; /* null: accepted */
    } cases[] = {
        {"[grain]\nmesh model=2\nstrategy first out=model\nlayout-of second.param 0 model,-\n",
         NULL},
        {"[grain]\nmesh model=2\nstrategy first out=model\nstrategy second out=model\n"
         "layout-of second.param 0 model,-\n", NULL},
        {"[grain]\nmesh model=2\nstrategy first in=model\nlayout-of second.param 0 model,-\n",
         "strategy first in=model, but "},
        {"[grain]\nmesh model=2\nstrategy first out=model\n", "lacks its line \"layout-of"},
        {"[grain]\nmesh model=2\nlayout-of second.param 0 model,-\nstrategy first out=model\n",
         "or has it in another order"},
        {"[grain]\nmesh model=4\nstrategy first out=model\nlayout-of second.param 0 model,-\n",
         "they must agree"},
        {"[grain]\nmesh none\n", "they must agree"},
        {"[grain]\nmesh model=2\nstrategy first out=model\nlayout-of second.param x model,-\n"
         "layout-of second.param 0 model,-\n", "no number of an output"},
        {"[grain]\nmesh model=2\nstrategy first out=model\nlayout-of second.param 0 model,-\n"
         "strategy frist out=model\n", "plan:5: strategy \"frist\" \"out=model\""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net n = with_strategy();
        write_plan(at("plan"), cases[i].plan);
        const tri_options o = {.plan = at("plan")};
        tri_status status = strategies_check(n.g, &o);
        if (cases[i].message ? !status || !strstr(tri_message(), cases[i].message) : status)
            fail_msg("case %zu: %d %s", i, (int)status, tri_message());
        tri_graph_free(n.g);
    }
}

/* The plan wins over the network's own wish. */
static void test_recompute(void **state) {
    struct net n = network();
    struct plan_file p = parsed("[grain]\n[placement]\nrecompute second\n"), none, now;
    tri_options o = {.recompute = "second"};
    (void)state;
    tri_recompute(n.g, "first");
    none = parsed("[grain]\n");
    plan_replace_recompute(&none, n.g);
    assert_int_equal(plan_make(n.g, &(tri_options){0}, &now), TRI_OK);
    assert_string_equal(plan_find(&now, PLAN_RECOMPUTE)->value, "first");
    plan_free(&now);
    o.recompute = "none";
    assert_int_equal(plan_make(n.g, &o, &now), TRI_OK);
    assert_string_equal(plan_find(&now, PLAN_RECOMPUTE)->value, "none");
    plan_free(&now);
    o.recompute = "second";
    plan_replace_recompute(&p, n.g);
    assert_int_equal(plan_make(n.g, &o, &now), TRI_OK);
    assert_string_equal(plan_find(&now, PLAN_RECOMPUTE)->value, "second");
    plan_free(&now);
    plan_free(&none);
    plan_free(&p);
    tri_graph_free(n.g);
}

/* ---- programs ---- */

static char *program(const tri_options *o) {
    struct net n = with_strategy();
    char *text = passes_program(n.g, o, NULL);
    if (!text) fail_msg("%s", tri_message());
    tri_graph_free(n.g);
    return text;
}

/* Only what changes bits changes the text of the programs. */
static void test_program(void **state) {
    static const struct {
        tri_options o;
        bool same;
    } cases[] = {
        {{.threads = 3}, true},        {{.recompute = "first"}, true},
        {{.amp_type = "f16"}, true},   {{.lanes = 2}, false},
        {{.amp = "O1"}, false},        {{.unset = "whole"}, false},
        {{.passes = "-fuse"}, true},
    };
    char *usual = program(&(tri_options){0});
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *other = program(&cases[i].o);
        if (!strcmp(usual, other) != cases[i].same) fail_msg("case %zu", i);
        free(other);
    }
    free(usual);
}

/* Two printed networks: the first line that counts and differs, with operator and scope. */
static void texts_differ(void **state) {
    (void)state;
#define HEAD "graph {batch=4}\n%0 = input() {name=\"x\"} : f32[4] @ \"x\"\n"
#define RELU "%1 = relu(%0) : f32[4] @ \"a.b.relu\""
#define TANH "%1 = tanh(%0) : f32[4] @ \"a.b.tanh\""
#define LOSS "loss \"loss\" %1\n"
    static const char base[] = HEAD RELU "\n" LOSS;
    static const struct {
        const char *is, *how; /* null: they do not differ */
    } cases[] = {
        {base, NULL},
        {HEAD RELU "\nrate 0.1 \"cosine\"\nstrategy \"a\" \"out=model\"\nrecompute \"a\"\n" LOSS
         "stage \"a\" 1\n", NULL},
        {HEAD TANH "\n" LOSS,
         "operator a.b.tanh (tanh) in scope a.b: it was: " RELU "; it is: " TANH},
        {HEAD RELU "\nloss \"loss\" %0\n", "it was: loss \"loss\" %1; it is: loss \"loss\" %0"},
        {HEAD RELU "\nfreeze \"a\"\n" LOSS, "it was: loss \"loss\" %1; it is: freeze \"a\""},
        {HEAD, "operator a.b.relu (relu) in scope a.b: it was: " RELU "; it is: nothing"},
        {"graph {batch=4, lanes=2}\n%0 = scalar() : f32[4] @ \"x\"",
         "operator x (scalar) in no scope: it was: %0 = input() {name=\"x\"} : f32[4] @ \"x\"; it "
         "is: %0 = scalar() : f32[4] @ \"x\""}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct text how = {0};
        assert_int_equal(graph_texts_differ(base, cases[i].is, &how), cases[i].how != NULL);
        if (cases[i].how) assert_string_equal(how.data, cases[i].how);
        text_free(&how);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_hash),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_zero_byte),
        cmocka_unit_test(test_take),       cmocka_unit_test(test_network),
        cmocka_unit_test(test_strategies), cmocka_unit_test(test_recompute),
        cmocka_unit_test(test_program),
        cmocka_unit_test(texts_differ),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
