/* SPDX-License-Identifier: Apache-2.0
 * What the user asks of a mesh: reading meshes, strategies, tuples and layouts; what each operator
 * is asked in the end. */
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

/* ---- meshes ---- */

static void test_parse(void **state) {
    (void)state;
    static const char *const right[] = {"model=4", "model=4,rows=2", "4", "a=2,b=2,c=2,d=2,e=2",
                                        "0=2,1=3", "model=1", "x=1024"};
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"model=0", "from 1 to 1024 seats, not 0"},
        {"model=-1", "from 1 to 1024 seats, not -1"},
        {"-1", "from 1 to 1024 seats, not -1"},
        {"model=1025", "from 1 to 1024 seats, not 1025"},
        {"model=99999999999999999999", "from 1 to 1024 seats"},
        {"a=64,b=64", "has 4096 seats; there can be up to 1024"},
        {"model", "\"model\" is not a number of seats"},
        {"model=", "\"\" is not a number of seats"},
        {"", "\"\" is not a number of seats"},
        {"model=2,,rows=2", "an axis is missing after a comma; a mesh is written as"},
        {"model=2,", "an axis is missing after a comma"},
        {"4,", "the axis of 4 seats has no name"},
        {",model=2", "an axis is missing before a comma"},
        {"model=2,2", "the axis of 2 seats has no name"},
        {"2,model=2", "the axis of 2 seats has no name"},
        {"=2", "an axis is named \"\""},
        {"a b=2", "an axis is named \"a b\""},
        {"a\033[31m=2", "letters, digits, - and _"},
        {"a\177=2", "letters, digits, - and _"},
        {"a\302\233=2", "letters, digits, - and _"},
        {"abcdefghijklmnop=2", "up to 15 letters"},
        {"model=2,model=3", "two axes are named \"model\""},
        {"a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1", "up to 8 axes"},
    };
    struct mesh m;
    for (size_t i = 0; i < COUNT(right); i++) {
        assert_int_equal(mesh_parse(right[i], &m), TRI_OK);
        assert_string_equal(mesh_text(&m), right[i]);
    }
    assert_int_equal(mesh_parse("model=4,rows=2", &m), TRI_OK);
    assert_int_equal(mesh_seats(&m), 8);
    assert_int_equal(mesh_axis(&m, "rows"), 1);
    assert_int_equal(mesh_axis(&m, "cols"), -1);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        if (mesh_parse(wrong[i].text, &m) != TRI_USAGE) fail_msg("%s is taken", wrong[i].text);
        assert_message(wrong[i].part);
        assert_int_equal(m.n, 0);
    }
}

static void test_queries(void **state) {
    (void)state;
    int64_t size = 0;
    struct net n = network();
    assert_int_equal(tri_mesh_axes(n.g), 0);
    assert_null(tri_mesh_axis(n.g, 0, NULL));
    tri_mesh(n.g, "model=4,rows=2");
    tri_mesh(n.g, "model=4,rows=2");
    assert_int_equal(tri_mesh_axes(n.g), 2);
    assert_string_equal(tri_mesh_axis(n.g, 1, &size), "rows");
    assert_int_equal(size, 2);
    assert_string_equal(tri_mesh_axis(n.g, 0, NULL), "model");
    assert_null(tri_mesh_axis(n.g, 2, NULL));
    assert_null(tri_mesh_axis(n.g, -1, NULL));
    assert_int_equal(tri_mesh_axes(NULL), 0);
    tri_graph_free(n.g);
    n = network();
    tri_mesh(n.g, "4");
    assert_int_equal(tri_mesh_axes(n.g), 1);
    assert_string_equal(tri_mesh_axis(n.g, 0, &size), "");
    assert_int_equal(size, 4);
    tri_mesh(NULL, "2");
    tri_strategy(NULL, "*", "out=model");
    assert_null(tri_shard(NULL, "(1)"));
    assert_null(tri_layout(NULL, "-"));
    tri_graph_free(n.g);
}

/* Mesh, settings and forward nodes are part of the text, and of a network for another batch. */
static void test_text(void **state) {
    (void)state;
    struct net n = network();
    tri_mesh(n.g, "model=2,rows=2");
    tri_strategy(n.g, "first", "out=model, rows=rows");
    assert_ptr_equal(tri_shard(n.y, "(1,2),(2,2)->(1,1)"), n.y);
    assert_ptr_equal(tri_layout(n.w, "-,model"), n.w);
    tri_push(n.g, "third");
    tri_strategy(n.g, NULL, "batch=-");
    tri_pop(n.g);
    n.h->node->of = "second.matmul";
    char *once = tri_graph_print(n.g);
    assert_non_null(once);
    static const char *const parts[] = {
        "graph {batch=8, mesh=\"model=2,rows=2\"}\n",
        "strategy \"first\" \"out=model, rows=rows\"\n",
        "shard \"second.matmul\" \"(1,2),(2,2)->(1,1)\"\n",
        "layout \"first.param\" 0 \"-,model\"\n",
        "strategy \"third\" \"batch=-\"\n", "@ \"first.matmul\" of \"second.matmul\"\n"};
    for (size_t i = 0; i < COUNT(parts); i++)
        if (!strstr(once, parts[i])) fail_msg("%s lacks %s", once, parts[i]);
    tri_graph *again = tri_graph_parse(once, strlen(once), "net.tri");
    if (tri_graph_status(again)) fail_msg("%s", tri_message());
    char *twice = tri_graph_print(again);
    assert_string_equal(once, twice);
    assert_string_equal(again->setting[0].file, "net.tri");
    tri_graph_free(again);
    free(twice);
    free(once);
    tri_graph_free(n.g);
}

static void test_text_mistakes(void **state) {
    (void)state;
#define X "graph {batch=4}\n%x = input() {name=\"x\", type=f32, shape=[4,3]}\n"
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"graph {batch=4, mesh=\"model=0\"}", "net.tri:1: mesh \"model=0\""},
        {"graph {batch=4, mesh=2}", "net.tri:1: expected a mesh between double quotes"},
        {X "%y = relu(%x) @ \"y\" off \"x\"",
         "net.tri:3: expected of, stage or leg, found \"off\""},
        {X "%y = relu(%x) of y", "net.tri:3: expected a forward node's name"},
        {X "strategy \"y\"", "net.tri:3: expected what is asked for"},
        {X "layout \"y\" 16 \"-\"", "net.tri:3: an operator has no result 16"},
        {X "layout \"y\" \"-\"", "net.tri:3: expected a whole number"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        tri_graph *g = tri_graph_parse(rows[i].text, strlen(rows[i].text), "net.tri");
        if (tri_graph_status(g) != TRI_USAGE) fail_msg("this is taken: %s", rows[i].text);
        assert_message(rows[i].part);
        tri_graph_free(g);
    }
}

/* ---- asks ---- */

static void test_patterns(void **state) {
    (void)state;
    struct strategies s;
    struct net n = network();
    tri_strategy(n.g, "*", "out=model,rows=data");
    tri_strategy(n.g, "second", "in=model,out=data");
    tri_strategy(n.g, "relu", "batch=-");
    made(n.g, &(tri_options){.mesh = "data=2,model=2"}, &s);
    assert_string_equal(asked(&s, n.h), "rows out");
    assert_string_equal(asked(&s, n.y), "out in"); /* the later one, for both factors */
    assert_string_equal(asked(&s, n.a), "- -");
    assert_string_equal(asked(&s, n.g->loss), ". .");
    assert_int_equal(s.unset, UNSET_FOLLOW);
    strategies_free(&s);
    tri_graph_free(n.g);
}

/* A factor may lie on two axes, and in blocks. A withdrawn factor leaves its axis whole; others
 * stay. */
static void test_parts(void **state) {
    (void)state;
    struct strategies s;
    struct net n = network();
    tri_strategy(n.g, "first", "out=model,out=rows");
    tri_strategy(n.g, "second.matmul", "out/5=model,rows=rows");
    tri_strategy(n.g, "second", "out=-");
    tri_strategy(n.g, "relu", "features/2=model");
    made(n.g, &(tri_options){.mesh = "model=2,rows=2", .unset = "whole"}, &s);
    assert_string_equal(asked(&s, n.h), "out out");
    assert_string_equal(asked(&s, n.y), "- rows");
    assert_string_equal(asked(&s, n.a), "features/2 .");
    assert_int_equal(s.unset, UNSET_WHOLE);
    strategies_free(&s);
    tri_graph_free(n.g);
}

/* A file comes after the network's own strategies; nodes are found by name in other graphs; those
 * of the backward pass are not asked. */
static void test_file(void **state) {
    (void)state;
    struct strategies s;
    int dim[MESH_MOST_AXES];
    struct net n = network(), other = network();
    FILE *f = fopen(at("split"), "w");
    assert_non_null(f);
    fputs("# a comment\nmesh model=2\r\n\n first  in=model # and another\n"
          "maybe nothing.* out=model\nmaybe layout nothing model\nlayout *.v (model,-)\n", f);
    fclose(f);
    tri_strategy(n.g, "first", "out=model");
    tri_tensor *grad;
    tri_grad(n.g->loss, &n.w, 1, &grad);
    tri_push(n.g, "first");
    tri_tensor *updated = tri_sub(n.w, grad); /* as an optimizer would, but in the scope */
    tri_pop(n.g);
    tri_assign(n.w, updated);
    tri_strategy(n.g, "*", "batch=model");
    made(n.g, &(tri_options){.strategy = at("split")}, &s);
    assert_string_equal(mesh_text(&s.mesh), "model=2");
    assert_string_equal(asked(&s, n.h), "in");
    assert_string_equal(asked(&s, other.h), "in");
    assert_string_equal(asked(&s, grad), ".");
    assert_string_equal(asked(&s, updated), ".");
    assert_true(strategies_layout(&s, n.v, dim));
    assert_int_equal(dim[0], 0);
    assert_int_equal(dim[1], -1);
    assert_true(strategies_layout(&s, other.v, dim));
    assert_false(strategies_layout(&s, n.w, dim));
    strategies_free(&s);
    tri_graph_free(n.g);
    tri_graph_free(other.g);
}

static void test_layouts(void **state) {
    (void)state;
    struct strategies s;
    int dim[MESH_MOST_AXES];
    struct net n = network();
    tri_mesh(n.g, "model=2,rows=4");
    tri_layout(tri_layout(n.h, "rows,model"), "(rows , model)");
    made(n.g, &(tri_options){0}, &s);
    assert_true(strategies_layout(&s, n.h, dim));
    assert_true(dim[0] == 1 && dim[1] == 0);
    assert_string_equal(asked(&s, n.h), ". .");
    strategies_free(&s);
    tri_graph_free(n.g);
}

/* Without a mesh nothing is asked, and with --parallel data none is implied. */
static void test_no_mesh(void **state) {
    (void)state;
    struct strategies s;
    struct net n = network();
    tri_strategy(n.g, "first", "out=model");
    tri_shard(n.y, "(1,2),(2,1)");
    made(n.g, &(tri_options){.parallel = "data"}, &s);
    assert_int_equal(s.mesh.n, 0);
    strategies_free(&s);
    made(n.g, &(tri_options){.parallel = "semi", .mesh = "model=2"}, &s);
    assert_string_equal(asked(&s, n.h), "out");
    assert_string_equal(asked(&s, n.y), "in");
    strategies_free(&s);
    tri_graph_free(n.g);
}

/* ---- tuples ---- */

/* On four seats rows, then columns: one axis. */
static void test_tuples(void **state) {
    (void)state;
    struct strategies s;
    struct net n = network();
    tri_mesh(n.g, "4");
    tri_shard(n.h, "(4,1),(1,1)");
    tri_shard(n.y, "((1,1),(1,4))");
    made(n.g, &(tri_options){0}, &s);
    assert_string_equal(mesh_text(&s.mesh), "0=4");
    assert_string_equal(asked(&s, n.h), "rows");
    assert_string_equal(asked(&s, n.y), "out");
    assert_string_equal(asked(&s, n.a), ".");
    strategies_free(&s);
    tri_graph_free(n.g);
}

/* Axes are refined by all tuples; left-over seats repeat at the right. */
static void test_refinement(void **state) {
    (void)state;
    struct strategies s;
    int dim[MESH_MOST_AXES];
    struct net n = network();
    tri_mesh(n.g, "8");
    tri_shard(n.h, "(2,2),(2,1)->(4,1)"); /* rows, in; the result takes both */
    tri_shard(n.a, "(4,1)");
    made(n.g, &(tri_options){0}, &s);
    assert_string_equal(mesh_text(&s.mesh), "0=2,1=2,2=2");
    assert_string_equal(asked(&s, n.h), "rows in -");
    assert_string_equal(asked(&s, n.a), "batch batch -");
    assert_true(strategies_layout(&s, n.h, dim));
    assert_true(dim[0] == 0 && dim[1] == 0 && dim[2] == -1);
    strategies_free(&s);
    tri_graph_free(n.g);
}

static void test_1024(void **state) {
    (void)state;
    struct strategies s;
    for (int i = 0; i < 2; i++) {
        tri_graph *g = tri_graph_new(2);
        tri_tensor *a = tri_input(g, "a", TRI_F32, TRI_SHAPE(2, 4, 8, 16));
        tri_tensor *b = tri_input(g, "b", TRI_F32, TRI_SHAPE(2, 4, 16, 32));
        tri_tensor *y = tri_matmul(a, b);
        tri_shard(y, i ? "(2,4,8,1),(2,4,1,16)" : "(2,4,8,16),(2,4,16,1)");
        tri_output(y, "y");
        made(g, &(tri_options){.mesh = "1024"}, &s);
        assert_string_equal(mesh_text(&s.mesh), "0=2,1=4,2=8,3=16");
        const char *asks = asked(&s, y);
        assert_string_equal(asks + strlen(asks) - (i ? 8 : 7), i ? "rows out" : "rows in");
        strategies_free(&s);
        tri_graph_free(g);
    }
}

/* On a mesh with names the tuples use its axes. */
static void test_named_tuples(void **state) {
    (void)state;
    struct strategies s;
    struct net n = network();
    tri_mesh(n.g, "data=2,one=1,model=2");
    tri_shard(n.h, "(2,1),(1,2)");
    tri_shard(n.y, "(4,1),(1,1)");
    made(n.g, &(tri_options){0}, &s);
    assert_string_equal(asked(&s, n.h), "rows - out");
    assert_string_equal(asked(&s, n.y), "rows - rows");
    strategies_free(&s);
    tri_graph_free(n.g);
}

/* Ready strategies fit the networks that they are for. */
static void test_ready(void **state) {
    (void)state;
    static const struct {
        const char *model, *strategy;
        const char *node, *ask;
    } rows[] = {
        {"mlp", "channels", "fc2.matmul", "out"},
        {"resnet18", "channels", "layer2.0.downsample.0.conv2d", "out"},
        {"gpt2-tiny", "megatron", "transformer.h.1.attn.c_attn.matmul", "out/3"},
        {"gpt2-tiny", "megatron", "transformer.h.1.attn.attention", "heads"},
        {"gpt2-tiny", "megatron", "transformer.h.0.mlp.c_proj.matmul", "in"},
        {"gpt2-tiny", "megatron", "transformer.h.0.add", "."},
        {"gpt2-tiny", "megatron-sp", "transformer.h.0.add", "seq"},
        {"gpt2-tiny", "megatron-sp", "transformer.h.0.ln_2.layer_norm", "seq"},
        {"gpt2-tiny", "megatron-sp", "transformer.h.0.mlp.c_fc.add", "."},
        {"gpt2-tiny", "megatron", "matmul", "out"},
        {"gpt2-tiny", "megatron", "transformer.gather", "vocab"},
        {"bert-tiny", "megatron", "bert.encoder.layer.0.attention.self.key.matmul", "out"},
        {"bert-tiny", "megatron", "bert.encoder.layer.1.output.dense.matmul", "in"},
        {"bert-tiny", "megatron", "bert.embeddings.gather_1", "vocab"},
        {"bert-tiny", "megatron-sp", "bert.encoder.layer.0.attention.output.add", "seq"},
        {"bert-tiny", "megatron-sp", "bert.encoder.layer.0.output.dense.add", "seq"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct strategies s;
        tri_graph *g = tri_model_open(rows[i].model, 2);
        const tri_tensor *t = NULL;
        made(g, &(tri_options){.mesh = "model=2", .strategy = rows[i].strategy}, &s);
        for (size_t k = 0; k < g->n_nodes; k++)
            if (!strcmp(g->node[k]->name, rows[i].node)) t = g->node[k]->out;
        if (!t) fail_msg("%s has no node %s", rows[i].model, rows[i].node);
        if (strcmp(asked(&s, t), rows[i].ask))
            fail_msg("%s is asked \"%s\", not \"%s\"", rows[i].node, asked(&s, t), rows[i].ask);
        strategies_free(&s);
        tri_graph_free(g);
    }
}

/* In a run: a result, a parameter, what no lane has; and a run without a mesh. */
static void test_layout_of(void **state) {
    (void)state;
    for (int meshes = 0; meshes < 2; meshes++) {
        tri_graph *g = tri_graph_new(4);
        tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(4, 8));
        tri_tensor *y = tri_dense(x, "first", 6);
        if (meshes) tri_mesh(g, "model=2");
        tri_strategy(g, "first.matmul", "out=model");
        tri_output(y, "y");
        tri_run *run = tri_open(g, &(tri_options){.forward = true});
        if (!run) fail_msg("%s", tri_message());
        static const char *const names[][2] = {{"first.matmul", "(-,model)"},
                                               {"first.weight", "(model,-)"}, {"x", "(-,-)"}};
        for (size_t i = 0; i < COUNT(names); i++) {
            char *layout = tri_layout_of(run, names[i][0]);
            if (meshes) assert_string_equal(layout, names[i][1]);
            else assert_null(layout);
            free(layout);
        }
        assert_null(tri_layout_of(run, "second"));
        assert_message(meshes ? "no tensor \"second\"" : "no mesh");
        assert_null(tri_layout_of(run, NULL));
        assert_null(tri_layout_of(NULL, "x"));
        tri_close(run);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),        cmocka_unit_test(test_queries),
        cmocka_unit_test(test_text),         cmocka_unit_test(test_text_mistakes),
        cmocka_unit_test(test_patterns),     cmocka_unit_test(test_parts),
        cmocka_unit_test(test_file),         cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_no_mesh),      cmocka_unit_test(test_tuples),
        cmocka_unit_test(test_refinement),   cmocka_unit_test(test_1024),
        cmocka_unit_test(test_named_tuples), cmocka_unit_test(test_ready),
        cmocka_unit_test(test_layout_of),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
