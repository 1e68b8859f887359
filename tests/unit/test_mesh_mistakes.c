/* SPDX-License-Identifier: Apache-2.0
 * The message for every mistake in meshes, strategies, tuples, layouts and their options. */
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
#include "scratch.h"

#define HERE (n->line = __LINE__)

static void ask_out(struct net *n) { HERE, tri_strategy(n->g, "first", "out=model"); }
static void no_axis(struct net *n) { HERE, tri_strategy(n->g, "first", "out=modle"); }
static void no_factor(struct net *n) { HERE, tri_strategy(n->g, "first", "ot=model"); }
static void no_scope(struct net *n) { HERE, tri_strategy(n->g, "frist", "out=model"); }
static void no_piece(struct net *n) { HERE, tri_strategy(n->g, "f*.matmlu", "out=model"); }
static void no_pattern(struct net *n) { HERE, tri_strategy(n->g, "x*.matmul", "out=model"); }
static void two_on_one(struct net *n) { HERE, tri_strategy(n->g, "first", "out=model,in=model"); }
static void no_equals(struct net *n) { HERE, tri_strategy(n->g, "first", "out"); }
static void no_blocks(struct net *n) { HERE, tri_strategy(n->g, "first", "out/0=model"); }
static void odd_blocks(struct net *n) { HERE, tri_strategy(n->g, "first", "out/3=model"); }
static void small_blocks(struct net *n) { HERE, tri_strategy(n->g, "first", "out/2=wide"); }
static void short_extent(struct net *n) { HERE, tri_strategy(n->g, "first", "out=wide"); }
static void two_axes(struct net *n) { HERE, tri_strategy(n->g, "second", "in=model,in=wide"); }
static void fixed(struct net *n) { HERE, tri_strategy(n->g, "pad", "features=model"); }
static void unused_axis(struct net *n) { tri_strategy(n->g, "first", "out=model"); }
static void two_layouts(struct net *n) {
    tri_layout(n->w, "model,-");
    HERE, tri_layout(n->w, "-,model");
}
static void short_layout(struct net *n) { HERE, tri_layout(n->w, "model"); }
static void one_axis_twice(struct net *n) { HERE, tri_layout(n->w, "model,model"); }
static void layout_axis(struct net *n) { HERE, tri_layout(n->w, "model,wid"); }
static void layout_extent(struct net *n) { HERE, tri_layout(n->w, "-,wide"); }
static void zero(struct net *n) { HERE, tri_shard(n->h, "(0,1),(1,1)"); }
static void negative(struct net *n) { HERE, tri_shard(n->h, "(-1,1),(1,1)"); }
static void more_numbers(struct net *n) { HERE, tri_shard(n->h, "(1,1,1),(1,1)"); }
static void few_tuples(struct net *n) { HERE, tri_shard(n->h, "(1,1)"); }
static void many_tuples(struct net *n) { HERE, tri_shard(n->h, "(1,1),(1,1),(1,1)"); }
static void many_outputs(struct net *n) { HERE, tri_shard(n->h, "(1,1),(1,1)->(1,1),(1,1)"); }
static void beyond(struct net *n) { HERE, tri_shard(n->h, "(8,1),(1,4)"); }
static void contradiction(struct net *n) { HERE, tri_shard(n->h, "(1,2),(1,1)"); }
static void too_many_parts(struct net *n) { HERE, tri_shard(n->h, "(1,1),(1,8)"); }
static void other_tuples(struct net *n) {
    tri_shard(n->h, "(2,1),(1,1)");
    HERE, tri_shard(n->h, "(1,1),(1,2)");
}
static void two_orders(struct net *n) {
    tri_shard(n->h, "(2,3),(3,1)");
    HERE, tri_shard(n->y, "(3,2),(2,1)");
}
static void wrong_output(struct net *n) { HERE, tri_shard(n->h, "(2,1),(1,1)->(4,1)"); }
static void output_and_layout(struct net *n) {
    tri_shard(n->h, "(2,1),(1,1)->(2,1)");
    HERE, tri_layout(n->h, "-,0");
}
static void text(struct net *n) { HERE, tri_shard(n->h, "(1;1),(1,1)"); }
static void unclosed(struct net *n) { HERE, tri_shard(n->h, "((1,1),(1,1)"); }
static void after_all(struct net *n) { HERE, tri_shard(n->h, "(1,1),(1,1) x"); }
static void no_parentheses(struct net *n) { HERE, tri_shard(n->h, "1,1"); }
static void huge(struct net *n) { HERE, tri_shard(n->h, "(99999999999999999999,1),(1,1)"); }
static void sum_output(struct net *n) { HERE, tri_shard(n->h, "(1,4),(4,1)->(2,1)"); }
static void of_source(struct net *n) { HERE, tri_shard(n->w, "(1,1)"); }
static void unsuited(struct net *n) { HERE, tri_shard(n->h, "(1,3),(3,1)"); }
static void nothing(struct net *n) { (void)n; }

static const struct mistake {
    void (*make)(struct net *n);
    tri_options o;
    const char *parts[4];
} mistakes[] = {
    {no_axis, {.mesh = "model=2"}, {"no axis \"modle\"", "do you mean model?", "mesh model=2"}},
    {no_factor, {.mesh = "model=2"}, {"no operator that \"first\" matches has a factor ot",
                                      "rows", "do you mean out?"}},
    {no_scope, {.mesh = "model=2"}, {"matches \"frist\"; do you mean \"first\"?"}},
    {no_piece, {.mesh = "model=2"}, {"matches \"f*.matmlu\"; do you mean \"f*.matmul\"?"}},
    {no_pattern, {.mesh = "model=2"}, {"no scope or operator matches \"x*.matmul\""}},
    {ask_out, {.mesh = "2"}, {"no axis \"model\": use --mesh model=2 (tri_mesh)"}},
    {two_on_one, {.mesh = "model=2"}, {"first.matmul (matmul f32[8,6], f32[6,4])",
                                       "both its factors out and in lie on the axis model"}},
    {no_equals, {.mesh = "model=2"}, {"\"out\" must be a factor and an axis: out=model"}},
    {no_blocks, {.mesh = "model=2"}, {"out/0: expected a number of blocks"}},
    {odd_blocks, {.mesh = "model=2"}, {"out has 4 places, which 3 blocks do not divide"}},
    {small_blocks, {.mesh = "wide=3"}, {"out has 4 places, which in 2 blocks cannot be split over "
                                        "3 seats", "in (6)"}},
    {short_extent, {.mesh = "wide=5"}, {"first.matmul (matmul f32[8,6], f32[6,4])",
                                        "out has 4 places", "5 seats", "rows (8), in (6)"}},
    {two_axes, {.mesh = "model=2,wide=4"}, {"in has 4 places", "8 seats", "out (10)"}},
    {fixed, {.mesh = "model=2"}, {"pad (pad f32[8,10])", "features cannot be split",
                                  "batch (8)"}},
    {unused_axis, {.mesh = "model=2,rows=2"}, {"nothing uses the axis rows of the mesh "
                                               "model=2,rows=2"}},
    {nothing, {.mesh = "4"}, {"nothing uses the axis 0", "for the tuples of tri_shard"}},
    {two_layouts, {.mesh = "model=2"}, {"first.param", "has another layout too", "model,-"}},
    {short_layout, {.mesh = "model=2"}, {"f32[6,4] needs an axis or - for each of its 2 "
                                         "dimensions, not 1"}},
    {one_axis_twice, {.mesh = "model=2"}, {"the axis model splits two dimensions"}},
    {layout_axis, {.mesh = "model=2,wide=2"}, {"no axis \"wid\"; do you mean wide?"}},
    {layout_extent, {.mesh = "wide=5"}, {"dimension 1 of its result f32[6,4] is shorter"}},
    {zero, {.mesh = "4"}, {"the number 0; a dimension has at least 1 part"}},
    {negative, {.mesh = "4"}, {"the number -1; a dimension has at least 1 part"}},
    {more_numbers, {.mesh = "4"}, {"first.matmul", "input 0 has 2 dimensions, so its "
                                     "tuple needs 2 numbers, not 3"}},
    {few_tuples, {.mesh = "4"}, {"it has 2 inputs, so it needs 2 tuples, not 1"}},
    {many_tuples, {.mesh = "4"}, {"it has 2 inputs, so it needs 2 tuples, not 3"}},
    {many_outputs, {.mesh = "4"}, {"it has 1 output, but there are 2 tuples after ->"}},
    {beyond, {.mesh = "16"}, {"first.matmul", "32 parts, but the mesh has 16 seats", "16 would"}},
    {contradiction, {.mesh = "4"}, {"dimension 0 of input 1 is divided by 1",
                                      "divides its factor in by 2"}},
    {too_many_parts, {.mesh = "8"}, {"8 parts of dimension 1 of input 1", "1 to 4"}},
    {other_tuples, {.mesh = "4"}, {"first.matmul", "has other tuples too", "(2,1),(1,1)"}},
    {two_orders, {.mesh = "6"}, {"first.matmul (matmul f32[8,6], f32[6,4])", "\"(2,3),(3,1)\"",
                                 "second.matmul", "2 parts, the other with 3"}},
    {wrong_output, {.mesh = "4"}, {"4 parts of dimension 0 of output 0; its inputs allow "
                                     "1 (whole) or 2"}},
    {output_and_layout, {.mesh = "2"}, {"has another layout too", "(2,1),(1,1)->(2,1)"}},
    {text, {.mesh = "4"}, {"expected , or ) at \";1),(1,1)\""}},
    {unclosed, {.mesh = "4"}, {"expected ) at \"\""}},
    {after_all, {.mesh = "4"}, {"expected a comma, -> or the end at \"x\""}},
    {no_parentheses, {.mesh = "4"}, {"expected ( at \"1,1\""}},
    {huge, {.mesh = "4"}, {"not so large at \"99999999999999999999"}},
    {sum_output, {.mesh = "4"}, {"its inputs allow 1 (whole) or 4 (with the parts of the sum)"}},
    {of_source, {.mesh = "4"}, {"made by no operator", "tri_layout"}},
    {unsuited, {.mesh = "a=2,b=3"}, {"begin with 3 parts", "the mesh is a=2,b=3"}},
    {ask_out, {.mesh = "model=0"}, {"--mesh (tri_options.mesh)", "model=0"}},
    {ask_out, {.mesh = "model=2", .parallel = "data"}, {"--parallel data", "--parallel semi"}},
    {ask_out, {.mesh = "model=2", .parallel = "auto"}, {"auto", "is for a run that trains"}},
    {ask_out, {.mesh = "model=2", .parallel = "tensor"},
     {"\"tensor\"; it can be data, semi or auto"}},
    {ask_out, {.parallel = "semi"}, {"--parallel semi", "needs a mesh: --mesh model=2"}},
    {ask_out, {.unset = "whole"}, {"--unset", "needs a mesh"}},
    {ask_out, {.strategy = "channels"}, {"--strategy", "needs a mesh"}},
    {ask_out, {.mesh = "model=2", .unset = "none"}, {"\"none\"; it can be follow, batch or whole"}},
    {ask_out, {.mesh = "model=2", .strategy = "channels,"}, {"\"channels,\" has an empty name; "
                                                            "commas separate names"}},
    {ask_out, {.mesh = "model=2", .strategy = "channels,,x"}, {"\"channels,,x\" has an empty"}},
    {ask_out, {.mesh = "model=2", .strategy = "megatorn"}, {"megatorn: No such file",
                                                            "do you mean megatron?"}},
};

/* Whether the message names the line where the mistake is, if there is one. */
static void assert_line(const struct net *n) {
    char place[256];
    snprintf(place, sizeof place, "test_mesh_mistakes.c:%d: ", n->line);
    if (!strstr(tri_message(), place))
        fail_msg("\"%s\" does not name %s", tri_message(), place);
}

static void test_mistakes(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        const struct mistake *m = &mistakes[i];
        struct strategies s;
        struct net n = network();
        tri_pad(n.y, TRI_SHAPE(0, 0), TRI_SHAPE(0, 1), 0);
        m->make(&n);
        double begin = base_seconds();
        if (strategies_make(n.g, &m->o, &s) != TRI_USAGE) fail_msg("mistake %zu is taken", i);
        assert_true(base_seconds() - begin < 1);
        if (m->make != ask_out && m->make != unused_axis && m->make != nothing) assert_line(&n);
        for (int k = 0; k < 4 && m->parts[k]; k++) assert_message(m->parts[k]);
        tri_graph_free(n.g);
    }
}

/* What the builders refuse at once. */
static void test_builders(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct net one = network(), *n = &one;
        static const char *const parts[] = {"tri_mesh: mesh \"model=-2\"", "a null pointer",
                                            "an earlier call says \"model=2\"", "no scope is open",
                                            "tri_strategy: its text", "tri_shard: its text"};
        if (i == 2) tri_mesh(n->g, "model=2");
        if (i == 0) HERE, tri_mesh(n->g, "model=-2");
        if (i == 1) HERE, tri_mesh(n->g, NULL);
        if (i == 2) HERE, tri_mesh(n->g, "model=4");
        if (i == 3) HERE, tri_strategy(n->g, NULL, "out=model");
        if (i == 4) HERE, tri_strategy(n->g, "*", NULL);
        if (i == 5) HERE, tri_shard(n->h, NULL);
        assert_int_equal(tri_graph_status(n->g), TRI_USAGE);
        assert_message(parts[i]);
        assert_line(n);
        tri_graph_free(n->g);
    }
}

static void test_two_meshes(void **state) {
    (void)state;
    struct net n = network();
    tri_mesh(n.g, "model=4");
    tri_strategy(n.g, "first", "out=model");
    assert_int_equal(strategies_check(n.g, &(tri_options){.mesh = "model=4"}), TRI_OK);
    assert_int_equal(strategies_check(n.g, &(tri_options){.mesh = "model=2"}), TRI_USAGE);
    assert_message("model=2 by --mesh (tri_options.mesh), but model=4 by tri_mesh");
    FILE *f = fopen(at("mesh"), "w");
    fputs("mesh model=8\n", f);
    fclose(f);
    assert_int_equal(strategies_check(n.g, &(tri_options){.strategy = at("mesh")}), TRI_USAGE);
    assert_message("model=4 by tri_mesh, but model=8 by ");
    tri_graph_free(n.g);
}

/* Samples of all lengths have one mesh. */
static void test_shorter(void **state) {
    (void)state;
    struct net n = network(), shorter = network();
    tri_strategy(n.g, "first", "out=model");
    tri_shorter(n.g, 3, shorter.g);
    assert_int_equal(strategies_check(n.g, &(tri_options){.mesh = "model=4"}), TRI_OK);
    tri_mesh(n.g, "model=4");
    assert_int_equal(strategies_check(n.g, &(tri_options){0}), TRI_USAGE);
    assert_message("but none by tri_mesh in a network for shorter samples (tri_shorter)");
    tri_mesh(shorter.g, "model=4");
    assert_int_equal(strategies_check(n.g, &(tri_options){0}), TRI_OK);
    tri_graph_free(n.g);
}

static void test_file_mistakes(void **state) {
    (void)state;
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"first\n", "lines:1: a line must be PATTERN FACTORS"},
        {"\nfirst out=model rows\n", "lines:2: a line must be"},
        {"layout first.w\n", "lines:1: a line must be PATTERN FACTORS, layout NAME LAYOUT"},
        {"first out=modl\n", "lines:1: strategy \"first\" \"out=modl\": "},
        {"frist out=model\n", "lines:1: strategy \"frist\" \"out=model\": no scope or operator"},
        {"layout frist.w model,-\n", "lines:1: layout \"frist.w\" \"model,-\": no tensor"},
        {"layout *labell model\n", "no tensor matches \"*labell\"; do you mean \"*label\"?"},
        {"mesh model=4\n", "lines:1: they must agree"},
        {"mesh model=0\n", "lines:1: mesh \"model=0\""},
        {"mesh model=2\nmesh model=4\n", "lines:2: mesh model=4, but"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct net n = network();
        FILE *f = fopen(at("lines"), "w");
        fputs(rows[i].text, f);
        fclose(f);
        const tri_options o = {.mesh = "model=2", .strategy = at("lines")};
        if (strategies_check(n.g, &o) != TRI_USAGE) fail_msg("%s is taken", rows[i].text);
        assert_message(rows[i].part);
        tri_graph_free(n.g);
    }
}

/* The library reports mistakes when a run is opened, and a batch of the options counts, as do
 * lanes. */
static void test_open(void **state) {
    (void)state;
    struct net n = network();
    tri_strategy(n.g, "first", "rows=model");
    assert_null(tri_open(n.g, &(tri_options){.mesh = "model=4", .batch = 2, .quiet = true}));
    assert_message("rows has 2 places, which cannot be split over 4 seats");
    n = network();
    tri_strategy(n.g, "first", "rows=model");
    assert_null(tri_open(n.g, &(tri_options){.mesh = "model=4", .lanes = 4, .quiet = true}));
    assert_message("rows has 2 places in a lane, which cannot be split over 4 seats");
}

/* What lies outside of the lanes cannot be split, and must not be ignored. */
static void test_outside(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        tri_graph *g = tri_graph_new(8);
        tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(8, 6));
        tri_tensor *w = tri_param(g, "w", TRI_SHAPE(6, 4), (tri_init){.kind = TRI_HE_NORMAL});
        tri_tensor *part[2], *v = tri_tanh(w);
        tri_split(v, 2, 1, part);
        tri_tensor *y = tri_matmul(x, tri_concat(part, 2, 1));
        tri_loss(tri_mean(tri_mul(y, y), TRI_ALL));
        const int line = __LINE__ + 1;
        if (i == 0) tri_shard(v, "(2,1)");
        if (i == 1) tri_strategy(g, "tanh", "features=0");
        if (i == 2) tri_layout(v, "-,0");
        if (i == 3) tri_layout(part[1], "-,0");
        if (i) tri_shard(y, "(1,2),(2,1)");
        assert_null(tri_open(g, &(tri_options){.mesh = "2", .quiet = true}));
        assert_message("it cannot be split: a mesh splits what depends on");
        assert_message(i < 3 ? "tanh (tanh f32[6,4])" : "split (split f32[6,4])");
        char place[64];
        snprintf(place, sizeof place, "test_mesh_mistakes.c:%d: ", line + i);
        assert_message(place);
    }
}

/* How long the word at the begin of a line is, if it is to be left out. */
static int bare(const char *line, bool maybe) {
    return !maybe && !strncmp(line, "maybe ", 6) ? 6 : 0;
}

/* A part of an image that sees only padding; a softmax of partial sums; a layout of other tensors,
 * and of results that cannot have it. */
static void test_maybe(void **state) {
    (void)state;
    static const struct {
        const char *lines, *refused; /* without `maybe`, and with it if it names no factor */
    } rows[] = {
        {"matmul out=model\nmaybe conv2d width=model\n", "see only padding"},
        {"maybe relu features=model\nmaybe conv2d width=model\n", "see only padding"},
        {"relu features=model\nmaybe layout conv2d -,-,-,model\n", "see only padding"},
        {"relu features=model\nmaybe layout w -,model\n", "for each of its 4 dimensions"},
        {"relu features=model\nmaybe layout w -,-,model,-\n", "is shorter than the axis"},
        {"relu features=model\nmaybe conv2d y=model\n", "its factor y cannot be split"},
        {"maybe * features=model\n", NULL},
        {"maybe matmul in=model\nmaybe softmax features=model\n", NULL},
        {"maybe matmul in=model\nmaybe relu heads=model\n", "has a factor heads"},
        {"maybe matmul in=model\nmaybe relu featurs=model\n", "has a factor featurs"},
    };
    for (size_t i = 0; i < 2 * COUNT(rows); i++) {
        const bool maybe = i % 2 == 0;
        tri_graph *g = tri_graph_new(8);
        tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(8, 4, 3, 3));
        tri_tensor *w = (tri_param)(g, "w", TRI_SHAPE(4, 4, 1, 1), (tri_init){TRI_HE_NORMAL, 0, 0});
        tri_tensor *v = tri_param(g, "v", TRI_SHAPE(7, 8), (tri_init){.kind = TRI_HE_NORMAL});
        tri_tensor *y = tri_matmul(tri_relu(tri_conv2d(x, w, .pad = 2)), v);
        y = tri_softmax(y, 3);
        tri_loss(tri_mean(tri_mul(y, y), TRI_ALL));
        FILE *f = fopen(at("lines"), "w");
        for (const char *p = rows[i / 2].lines; *p; p += strcspn(p, "\n") + 1)
            fprintf(f, "%.*s", (int)strcspn(p, "\n") + 1 - bare(p, maybe), p + bare(p, maybe));
        fclose(f);
        tri_run *run = tri_open(g, &(tri_options){.mesh = "model=4", .strategy = at("lines"),
                                                  .steps = 1, .quiet = true});
        const bool forgiven = maybe && !strstr(rows[i / 2].lines, "featurs");
        if (!run && (forgiven || !rows[i / 2].refused))
            fail_msg("%s: %s", rows[i / 2].lines, tri_message());
        if (run && !forgiven && rows[i / 2].refused) fail_msg("%s is taken", rows[i / 2].lines);
        if (!run) assert_message(rows[i / 2].refused);
        if (run) assert_int_equal(tri_close(run), TRI_OK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistakes),   cmocka_unit_test(test_builders),
        cmocka_unit_test(test_two_meshes), cmocka_unit_test(test_file_mistakes),
        cmocka_unit_test(test_open),       cmocka_unit_test(test_shorter),
        cmocka_unit_test(test_outside),    cmocka_unit_test(test_maybe),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
