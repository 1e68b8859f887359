/* SPDX-License-Identifier: Apache-2.0
 * Building graphs: messages for mistakes, names, settings. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <trireme.h>

#include "run/run.h"

/* ---- mistakes ---- */

struct net {
    tri_graph *g;
    tri_tensor *x;     /* f32[16,3] */
    tri_tensor *image; /* f32[16,3,8,8] */
    tri_graph *other;
    tri_tensor *stranger; /* f32[16,3] of the other graph */
    int line;             /* the source line of the mistake */
};

#define HERE (n->line = __LINE__)
#define PARAM(name, ...) tri_param(n->g, name, TRI_SHAPE(__VA_ARGS__), (tri_init){0})

static void wrong_matmul(struct net *n) { HERE, tri_matmul(n->x, PARAM("w", 4, 5)); }
static void wrong_transposed(struct net *n) { HERE, tri_matmul(n->x, PARAM("w", 4, 3)); }
static void wrong_vector(struct net *n) { HERE, tri_matmul(n->x, PARAM("w", 3)); }
static void wrong_channels(struct net *n) { HERE, tri_conv2d(n->image, PARAM("w", 4, 2, 3, 3)); }
static void wrong_groups(struct net *n) { HERE, tri_conv(n->image, "c", 4, 3, .groups = 2); }
static void wrong_window(struct net *n) { HERE, tri_max_pool(n->image, .size = 9); }
static void wrong_broadcast(struct net *n) { HERE, tri_add(n->x, PARAM("w", 4)); }
static void wrong_type(struct net *n) { HERE, tri_add(n->x, tri_cast(n->x, TRI_BF16)); }
static void wrong_axis(struct net *n) { HERE, tri_softmax(n->x, 2); }
static void wrong_sum(struct net *n) { HERE, tri_sum(n->x, TRI_SHAPE(-3)); }
static void wrong_dim(struct net *n) { HERE, tri_relu(n->x), tri_dim(n->x, 2); }
static void wrong_reshape(struct net *n) { HERE, tri_reshape(n->x, TRI_SHAPE(5, 10)); }
static void wrong_open(struct net *n) { HERE, tri_reshape(n->x, TRI_SHAPE(-1, -1)); }
static void wrong_flatten(struct net *n) { HERE, tri_flatten(n->x, 2); }
static void wrong_slice(struct net *n) { HERE, tri_slice(n->x, 1, 2, 4); }
static void wrong_loss(struct net *n) { HERE, tri_loss(tri_relu(n->x)); }
static void wrong_metric(struct net *n) { HERE, tri_metric(n->x, "m"); }
static void loss_broadcasts(struct net *n) {
    tri_tensor *prediction = PARAM("prediction", 16, 1, 1), *label = PARAM("label", 16, 1);
    HERE, tri_loss(tri_mse(prediction, label));
}
static void wrong_labels(struct net *n) {
    tri_tensor *y = tri_input(n->g, "y", TRI_I64, TRI_SHAPE(16, 1));
    HERE, tri_cross_entropy(n->x, y);
}
static void two_losses(struct net *n) {
    tri_loss(tri_mean(n->x, TRI_ALL));
    HERE, tri_loss(tri_mean(n->image, TRI_ALL));
}
static void two_inputs(struct net *n) { HERE, tri_input(n->g, "x", TRI_F32, TRI_SHAPE(16)); }
static void two_params(struct net *n) { HERE, PARAM("w", 1), PARAM("w", 2); }
static void two_outputs(struct net *n) {
    tri_output(n->x, "o");
    HERE, tri_output(n->image, "o");
}
static void wrong_batch(struct net *n) { HERE, tri_input(n->g, "z", TRI_F32, TRI_SHAPE(8, 3)); }
static void no_name(struct net *n) { HERE, tri_input(n->g, NULL, TRI_F32, TRI_SHAPE(16)); }
static void wrong_attribute(struct net *n) {
    HERE, tri_apply(n->g, "softmax", &n->x, 1, (const tri_attr[]){{.name = "axes", .i = 1}}, 1);
}
static void no_attribute(struct net *n) { HERE, tri_apply(n->g, "softmax", &n->x, 1, NULL, 0); }
static void no_operator(struct net *n) { HERE, tri_apply(n->g, "softmaxx", &n->x, 1, NULL, 0); }
static void few_inputs(struct net *n) { HERE, tri_apply(n->g, "add", &n->x, 1, NULL, 0); }
static void no_type(struct net *n) { HERE, tri_cast(n->x, (tri_type)44); }
static void no_rank(struct net *n) { HERE, tri_reshape(n->x, ((tri_shape){20, {48}})); }
static void no_data(struct net *n) { HERE, tri_array(n->g, TRI_F32, TRI_SHAPE(2), NULL); }
static void strangers(struct net *n) { HERE, tri_add(n->x, n->stranger); }
static void nulls(struct net *n) { HERE, tri_add(n->x, NULL); }
static void null_loss(struct net *n) { HERE, tri_mse(n->x, NULL); }
static void stray_pop(struct net *n) { HERE, tri_relu(n->x), tri_pop(n->g), tri_pop(n->g); }
static void wrong_assign(struct net *n) { HERE, tri_assign(PARAM("s", 2), n->x); }
static void assign_input(struct net *n) { HERE, tri_assign(n->x, n->x); }
static void assign_stranger(struct net *n) { HERE, tri_assign(PARAM("s", 16, 3), n->stranger); }
static void wrong_condition(struct net *n) {
    tri_tensor *s = PARAM("s", 16, 3);
    HERE, tri_assign_if(s, n->x, tri_mean(n->x, TRI_ALL));
}
static void wrong_grad(struct net *n) { HERE, tri_grad(n->x, &n->x, 1, &n->image); }
static void grad_of_stranger(struct net *n) {
    HERE, tri_grad(tri_mean(n->x, TRI_ALL), &n->stranger, 1, &n->image);
}
static void wrong_init(struct net *n) {
    tri_init init = {0};
    memset(&init.kind, 77, sizeof init.kind);
    HERE, tri_param(n->g, "w", TRI_SHAPE(2), init);
}
static tri_tensor *bytes(struct net *n) { return tri_input(n->g, "b", TRI_U8, TRI_SHAPE(16)); }
static void scaled_bytes(struct net *n) { tri_tensor *b = bytes(n); HERE, tri_scale(b, 1 / 255.); }
static void half_of_i32(struct net *n) { HERE, tri_constant(n->g, 0.5, TRI_I32); }
static void large_i32(struct net *n) { HERE, tri_constant(n->g, 0x1p31, TRI_I32); }
static void large_i64(struct net *n) { HERE, tri_constant(n->g, 0x1p63, TRI_I64); }
static void nan_of_i64(struct net *n) { HERE, tri_constant(n->g, NAN, TRI_I64); }
static void bool_of_two(struct net *n) { HERE, tri_constant(n->g, 2, TRI_BOOL); }
static void compared_bytes(struct net *n) {
    tri_tensor *b = bytes(n);
    HERE, tri_less(tri_constant(n->g, 256, TRI_F32), b);
}
static void padded_bytes(struct net *n) {
    tri_tensor *b = bytes(n);
    HERE, tri_pad(b, TRI_SHAPE(1), TRI_SHAPE(0), -1);
}
static void clipped_bytes(struct net *n) { tri_tensor *b = bytes(n); HERE, tri_clip(b, 0, 0.5); }
static void state_of_thirds(struct net *n) {
    HERE, tri_state(n->g, "s", TRI_I64, TRI_SCALAR, (tri_init){.a = 1 / 3.});
}
static void drawn_state(struct net *n) {
    HERE, tri_state(n->g, "s", TRI_I32, TRI_SHAPE(2), (tri_init){TRI_UNIFORM, 0, 9});
}
static void wrong_dropout(struct net *n) { HERE, tri_dropout(n->x, 1); }
static void wrong_concat(struct net *n) {
    tri_tensor *parts[] = {n->x, PARAM("w", 15, 3)};
    HERE, tri_concat(parts, 2, 1);
}
static void wrong_split(struct net *n) {
    tri_tensor *parts[2];
    HERE, tri_split(n->x, 2, 1, parts);
}

/* Each is reported in one line that begins with the place and contains these parts. */
static const struct mistake {
    void (*make)(struct net *n);
    const char *parts[4];
} mistakes[] = {
    {wrong_matmul, {"layer1.matmul", "matmul f32[16,3], f32[4,5]", "3 and 4", "must be equal"}},
    {wrong_transposed, {"layer1.matmul", "f32[4,3]", ".trans_b = true?"}},
    {wrong_vector, {"layer1.matmul", "f32[3]", "at least 2 dimensions", "tri_reshape"}},
    {wrong_channels, {"layer1.conv2d", "f32[16,3,8,8], f32[4,2,3,3]", "must be [4,3,...]"}},
    {wrong_groups, {"layer1.c.conv2d", "groups is 2", "must divide", "3 input"}},
    {wrong_window, {"layer1.max_pool", "9x9", "8x8"}},
    {wrong_broadcast, {"layer1.add", "add f32[16,3], f32[4]", "equal or 1"}},
    {wrong_type, {"layer1.add", "f32[16,3], bf16[16,3]", "tri_cast"}},
    {wrong_axis, {"layer1.softmax", "softmax f32[16,3]", "axis is 2", "2 dimensions"}},
    {wrong_sum, {"in layer1: x has 2 dimensions"}},
    {wrong_dim, {"in layer1: x has 2 dimensions", "no dimension 2"}},
    {wrong_reshape, {"layer1.reshape", "48 elements", "50"}},
    {wrong_open, {"in layer1", "tri_reshape", "both -1"}},
    {wrong_flatten, {"in layer1", "tri_flatten", "x has 2 dimensions"}},
    {wrong_slice, {"layer1.slice", "[2, 4)", "dimension 1", "3 places"}},
    {wrong_loss, {"the loss must be one", "layer1.relu is f32[16,3]", "tri_mean"}},
    {wrong_metric, {"a metric must be one", "x is f32[16,3]", "tri_mean"}},
    {loss_broadcasts, {"tri_mse", "f32[16,1,1]", "f32[16,1]", "never broadcasts"}},
    {wrong_labels, {"layer1.cross_entropy", "f32[16,3], i64[16,1]", "without their last"}},
    {two_losses, {"the loss is declared twice", "add"}},
    {two_inputs, {"two inputs named \"x\""}},
    {two_params, {"named \"layer1.w\"", "of its own", "tri_push"}},
    {two_outputs, {"two outputs named \"o\""}},
    {wrong_batch, {"layer1.input", "\"z\"", "dimension 0 must be the batch, 16"}},
    {no_name, {"name is missing"}},
    {wrong_attribute, {"softmax has no attribute axes", "it has: axis:int"}},
    {no_attribute, {"softmax", "axis must be given"}},
    {no_operator, {"no operator softmaxx"}},
    {few_inputs, {"add takes 2 inputs, not 1"}},
    {no_type, {"cast", "44", "not a type"}},
    {no_rank, {"reshape", "20", "up to 8"}},
    {no_data, {"tri_array", "null"}},
    {strangers, {"in layer1: operator add", "input 1, stranger", "another graph"}},
    {nulls, {"in layer1: operator add", "input 1 is a null pointer"}},
    {null_loss, {"input 1 is a null pointer"}},
    {stray_pop, {"tri_pop without tri_push"}},
    {wrong_assign, {"tri_assign", "layer1.s is f32[2]", "f32[16,3]"}},
    {assign_input, {"must be a parameter or a state, not x"}},
    {assign_stranger, {"tri_assign", "layer1.s", "another graph"}},
    {wrong_condition, {"tri_assign_if", "bool scalar", "f32[]"}},
    {wrong_grad, {"tri_grad", "x must be one"}},
    {grad_of_stranger, {"tri_grad", "tensor 0", "another graph"}},
    {wrong_init, {"layer1.param", "initialiser"}},
    {scaled_bytes, {"constant", "u8 cannot hold 0.00392156863", "0 to 255", "tri_cast"}},
    {half_of_i32, {"i32 cannot hold 0.5", "-2^31 to 2^31 - 1", "tri_cast"}},
    {large_i32, {"i32 cannot hold 2.14748365e+09"}},
    {large_i64, {"i64 cannot hold 9.22337204e+18"}},
    {nan_of_i64, {"i64 cannot hold nan"}},
    {bool_of_two, {"bool cannot hold 2; it holds 0 and 1"}},
    {compared_bytes, {"u8 cannot hold 256"}},
    {padded_bytes, {"layer1.pad", "u8 cannot hold -1"}},
    {clipped_bytes, {"layer1.clip", "must be floating-point", "tri_cast"}},
    {state_of_thirds, {"layer1.state", "i64 cannot hold 0.333333333"}},
    {drawn_state, {"layer1.state", "i32", "a constant only", "uniform(0,9)"}},
    {wrong_dropout, {"layer1.dropout", "p is 1", "below 1"}},
    {wrong_concat, {"layer1.concat", "f32[16,3], f32[15,3]", "input 1"}},
    {wrong_split, {"layer1.split", "dimension 1", "3 places", "2 equal parts"}},
};

static struct net begin(void) {
    struct net n = {.g = tri_graph_new(16), .other = tri_graph_new(16)};
    assert_true(n.g && n.other);
    n.stranger = tri_input(n.other, "stranger", TRI_F32, TRI_SHAPE(16, 3));
    n.x = tri_input(n.g, "x", TRI_F32, TRI_SHAPE(16, 3));
    n.image = tri_input(n.g, "image", TRI_F32, TRI_SHAPE(16, 3, 8, 8));
    tri_push(n.g, "layer%d", 1);
    return n;
}

static void end(struct net *n) {
    tri_graph_free(n->g);
    tri_graph_free(n->other);
}

static void assert_told(const char *part) {
    if (!strstr(tri_message(), part)) fail_msg("\"%s\" lacks \"%s\"", tri_message(), part);
    assert_null(strchr(tri_message(), '\n'));
}

static void test_mistakes(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        struct net n = begin();
        char place[256];
        assert_int_equal(tri_graph_status(n.g), TRI_OK);
        mistakes[i].make(&n);
        assert_int_equal(tri_graph_status(n.g), TRI_USAGE);
        snprintf(place, sizeof place, "%s:%d: ", __FILE__, n.line);
        if (strncmp(tri_message(), place, strlen(place)))
            fail_msg("\"%s\" does not begin with %s", tri_message(), place);
        for (int k = 0; k < 4 && mistakes[i].parts[k]; k++) assert_told(mistakes[i].parts[k]);
        end(&n);
    }
}

/* After the first mistake builders return some tensor, and nothing else is reported. */
static void test_first_wins(void **state) {
    (void)state;
    struct net n = begin();
    tri_tensor *bad = tri_matmul(n.x, n.x);
    assert_non_null(bad);
    tri_tensor *h = tri_softmax(tri_add(bad, n.image), 17);
    tri_tensor *values, *indices, *parts[3];
    tri_top_k(h, 100, &values, &indices);
    tri_split(h, 3, 5, parts);
    assert_true(h && values && indices && parts[2]);
    tri_loss(tri_cross_entropy(tri_dense(h, "fc", 3), indices));
    tri_pop(n.g);
    tri_pop(n.g);
    assert_int_equal(tri_graph_status(n.g), TRI_USAGE);
    assert_told("layer1.matmul (matmul f32[16,3], f32[16,3])");
    end(&n);
}

static void test_null_graph(void **state) {
    (void)state;
    tri_tensor *x = tri_input(NULL, "x", TRI_F32, TRI_SHAPE(1));
    assert_null(x);
    assert_null(tri_relu(tri_add(x, x)));
    assert_null(tri_param(NULL, "w", TRI_SHAPE(1), (tri_init){0}));
    tri_loss(x);
    tri_push(NULL, "a");
    tri_pop(NULL);
    tri_freeze(NULL, "*");
    tri_graph_free(NULL);
    assert_int_equal(tri_graph_status(NULL), TRI_FAILED);
    tri_graph *g = tri_graph_new(-1);
    assert_int_equal(tri_graph_status(g), TRI_USAGE);
    assert_told("the batch is -1; it must be at least 1");
    tri_graph_free(g);
}

/* ---- checks when a run is opened ---- */

static tri_graph *regression(void) {
    tri_graph *g = tri_graph_new(4);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(4, 3));
    tri_tensor *y = tri_input(g, "y", TRI_F32, TRI_SHAPE(4, 1));
    tri_loss(tri_mse(tri_dense(x, "fc", 1), y));
    return g;
}

static void refused(tri_graph *g, tri_options o, const char *part) {
    o.quiet = true;
    assert_null(tri_open(g, &o));
    assert_told(part);
    assert_int_equal(base_last(), TRI_USAGE);
}

static void test_open(void **state) {
    (void)state;
    tri_graph *g = tri_graph_new(4);
    tri_output(tri_relu(tri_input(g, "x", TRI_F32, TRI_SHAPE(4, 3))), "y");
    refused(g, (tri_options){0}, "declares no loss (tri_loss)");
    g = tri_graph_new(4);
    tri_dense(tri_input(g, "x", TRI_F32, TRI_SHAPE(4, 3)), "fc", 1);
    refused(g, (tri_options){0}, "no result");
    g = tri_graph_new(4);
    tri_loss(tri_mean(tri_input(g, "x", TRI_F32, TRI_SHAPE(4, 3)), TRI_ALL));
    refused(g, (tri_options){0}, "no parameters");
    g = regression();
    tri_freeze(g, "*");
    refused(g, (tri_options){0}, "all 2 parameters are frozen");
    refused(regression(), (tri_options){.optimizer = {.name = "sgdd"}}, "\"sgdd\"");
    refused(regression(), (tri_options){.optimizer = {.schedule = "cosin"}}, "\"cosin\"");
    refused(regression(), (tri_options){.device = "tpu"}, "\"tpu\"");
    refused(regression(), (tri_options){.lanes = 5}, "5 lanes for a batch of 4");
    refused(regression(), (tri_options){.steps = 1, .epochs = 2}, "give one");
    refused(regression(), (tri_options){.batch = -1}, "batch is -1");
    g = regression();
    tri_add(tri_find(g, "x"), tri_find(g, "fc.bias")), tri_softmax(tri_find(g, "x"), 7);
    refused(g, (tri_options){0}, "axis is 7");
}

/* ---- names ---- */

static tri_tensor *block(tri_tensor *x, bool more) {
    if (more) x = tri_gelu(x);
    tri_push(tri_graph_of(x), "block");
    x = tri_dropout(tri_relu(tri_dropout(x, 0.5)), 0.5);
    tri_pop(tri_graph_of(x));
    return x;
}

/* Names are the keys of random numbers: adding an operator elsewhere, or one of another kind at the
 * same place, changes none. */
static void test_names(void **state) {
    (void)state;
    for (int more = 0; more < 2; more++) {
        tri_graph *g = tri_graph_new(2);
        tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(2, 3));
        if (more) x = tri_dropout(tri_dense(x, "extra", 3), 0.1);
        x = block(x, more);
        assert_string_equal(tri_name_of(x), "block.dropout_1");
        assert_string_equal(tri_name_of(tri_node_in(tri_node_of(x), 0)), "block.relu");
        assert_int_equal(tri_graph_status(g), TRI_OK);
        tri_graph_free(g);
    }
}

static void test_unique(void **state) {
    (void)state;
    tri_graph *g = tri_graph_new(2);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(2, 3));
    for (int i = 0; i < 100; i++) {
        tri_push(g, i % 3 ? "relu_%d" : "relu", i % 5); /* scopes that look like numbered names */
        x = tri_relu(x);
        tri_pop(g);
        x = tri_relu(x);
    }
    assert_int_equal(tri_graph_status(g), TRI_OK);
    for (size_t i = 0; i < g->n_nodes; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(g->node[i]->name, g->node[k]->name);
    graph_verify(g);
    tri_graph_free(g);
}

static void test_find(void **state) {
    (void)state;
    tri_graph *g = regression();
    tri_tensor *w = tri_find(g, "fc.weight");
    assert_int_equal(tri_param_count(g), 2);
    assert_ptr_equal(tri_param_at(g, 0), w);
    assert_null(tri_param_at(g, 2));
    assert_null(tri_find(g, "fc"));
    assert_null(tri_find(g, NULL));
    assert_ptr_equal(tri_find(g, "loss"), g->loss);
    tri_shape s = tri_shape_of(w);
    assert_true(s.rank == 2 && s.dim[0] == 1 && s.dim[1] == 3 && tri_dim(w, -1) == 3);
    assert_ptr_equal(tri_graph_of(w), g);
    tri_graph_free(g);
}

/* ---- settings ---- */

static tri_run *trained(tri_graph *g) {
    tri_options o = {.steps = 1, .optimizer = {.lr = 0.5}, .quiet = true, .device = "ref"};
    tri_run *run = tri_open(g, &o);
    if (!run) fail_msg("%s", tri_message());
    return run;
}

/* One step of SGD from the same start: a frozen parameter stays, half the rate goes half as far. */
static void test_settings(void **state) {
    (void)state;
    float before[3], after[3], slower[3], bias[2];
    for (int i = 0; i < 2; i++) {
        tri_graph *g = regression();
        tri_freeze(g, "*.weight");
        tri_freeze(g, "*.bias");
        tri_group_lr(g, "fc.*", i ? 0.5 : 2);
        tri_group_lr(g, "fc.weight", i ? 0.5 : 1); /* the later one wins */
        g->setting[0].value = 0;                   /* thawed again */
        tri_run *run = trained(g);
        assert_int_equal(tri_read(run, "fc.weight", before, sizeof before), TRI_OK);
        assert_int_equal(tri_read(run, "fc.bias", &bias[0], sizeof *bias), TRI_OK);
        assert_true(tri_step(run));
        assert_int_equal(tri_read(run, "fc.weight", i ? slower : after, sizeof after), TRI_OK);
        assert_int_equal(tri_read(run, "fc.bias", &bias[1], sizeof *bias), TRI_OK);
        assert_true(bias[0] == bias[1]);
        assert_int_equal(tri_close(run), TRI_OK);
    }
    for (int k = 0; k < 3; k++) {
        assert_true(after[k] != before[k]);
        assert_float_equal(after[k] - before[k], 2 * (slower[k] - before[k]), 1e-5);
    }
}

static void test_decay(void **state) {
    (void)state;
    tri_graph *g = regression();
    tri_group_decay(g, "fc.*", 0.25);
    tri_group_decay(g, "*.bias", 0);
    assert_true(param_decay(tri_find(g, "fc.weight")->node, 1) == 0.25);
    assert_true(param_decay(tri_find(g, "fc.bias")->node, 1) == 0);
    tri_graph_free(g);
    g = regression();
    assert_true(param_decay(tri_find(g, "fc.weight")->node, 1) == 1);
    assert_true(param_lr_factor(tri_find(g, "fc.weight")->node) == 1);
    assert_false(param_frozen(tri_find(g, "fc.weight")->node));
    tri_graph_free(g);
}

/* A tied parameter has two names and one value. */
static void test_tie(void **state) {
    (void)state;
    float w[3], again[3];
    tri_graph *g = regression();
    tri_tie(tri_find(g, "fc.weight"), "head.weight");
    assert_ptr_equal(tri_find(g, "head.weight"), tri_find(g, "fc.weight"));
    assert_int_equal(tri_param_count(g), 2);
    tri_run *run = trained(g);
    assert_true(tri_step(run));
    assert_int_equal(tri_read(run, "fc.weight", w, sizeof w), TRI_OK);
    assert_int_equal(tri_read(run, "head.weight", again, sizeof again), TRI_OK);
    assert_memory_equal(w, again, sizeof w);
    assert_int_equal(tri_close(run), TRI_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistakes),   cmocka_unit_test(test_first_wins),
        cmocka_unit_test(test_null_graph), cmocka_unit_test(test_open),
        cmocka_unit_test(test_names),      cmocka_unit_test(test_unique),
        cmocka_unit_test(test_find),       cmocka_unit_test(test_settings),
        cmocka_unit_test(test_decay),      cmocka_unit_test(test_tie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
