/* SPDX-License-Identifier: Apache-2.0
 * Around training: evaluation, forward runs, files of weights, refused options. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>


#include "io/safetensors.h"
#include "run/run.h"
#include "unit/line.h"

/* ---- evaluation, forward, files ---- */

/* 70 samples in batches of 16: the last 6 count as much as the others. */
static void every_sample_counts_once(void **state) {
    (void)state;
    tri_run *run = open_line((tri_options){.steps = 1}, 16);
    tri_data *data = numbers(70);
    float w[2] = {0.5f, -1}, b = 2;
    double sum = 0;
    assert_int_equal(tri_write(run, "fc.weight", w, sizeof w), TRI_OK);
    assert_int_equal(tri_write(run, "fc.bias", &b, sizeof b), TRI_OK);
    for (int i = 0; i < 70; i++) {
        double p = 0.5 * (i % 7 - 3) - i % 5 + 2;
        sum += (p - i % 11) * (p - i % 11);
    }
    for (int twice = 0; twice < 2; twice++) {
        assert_int_equal(tri_evaluate(run, data), TRI_OK);
        assert_true(fabs(tri_result(run, "loss") - sum / 70) < 1e-5 * sum / 70);
    }
    assert_true(isnan(tri_result(run, "nothing")));
    tri_data_free(data);
    assert_int_equal(tri_close(run), TRI_OK);
}

static void forward_only(void **state) {
    (void)state;
    tri_graph *g = tri_graph_new(2);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(2, 2));
    tri_output(tri_dropout(tri_dense(x, "fc", 1), 0.9), "y");
    tri_run *run = tri_open(g, &(tri_options){.forward = true});
    float w[2] = {2, 3}, b = 1, in[4] = {1, 0, 0, 1}, out[2];
    assert_int_equal(tri_write(run, "fc.weight", w, sizeof w), TRI_OK);
    assert_int_equal(tri_write(run, "fc.bias", &b, sizeof b), TRI_OK);
    assert_int_equal(tri_read(run, "y", out, sizeof out), TRI_USAGE); /* not run yet */
    assert_int_equal(tri_feed(run, "x", in, sizeof in), TRI_OK);
    assert_int_equal(tri_feed(run, "x", in, 3), TRI_USAGE);
    assert_int_equal(tri_feed(run, "z", in, sizeof in), TRI_USAGE);
    assert_int_equal(tri_forward(run), TRI_OK);
    assert_int_equal(tri_read(run, "y", out, sizeof out), TRI_OK);
    assert_true(out[0] == 3 && out[1] == 4); /* nothing is dropped in evaluation */
    assert_int_equal(tri_feed(run, NULL, in, sizeof in), TRI_USAGE);
    assert_int_equal(tri_feed(run, "x", NULL, sizeof in), TRI_USAGE);
    assert_int_equal(tri_read(run, NULL, out, sizeof out), TRI_USAGE);
    assert_int_equal(tri_write(run, NULL, w, sizeof w), TRI_USAGE);
    assert_true(isnan(tri_value(run, NULL)));
    assert_false(tri_step(run)); /* a mistake, which is reported */
    assert_int_equal(tri_close(run), TRI_USAGE);
}

/* Otherwise it would train on the fed data. */
static void forward_does_not_train(void **state) {
    (void)state;
    tri_run *run = open_line((tri_options){.steps = 1}, 8);
    float before = weight(run, 0);
    assert_int_equal(tri_forward(run), TRI_USAGE);
    assert_true(weight(run, 0) == before);
    assert_int_equal(tri_close(run), TRI_OK);
}

static void files(void **state) {
    (void)state;
    char dir[] = "/tmp/trireme-test-XXXXXX", path[64], a[2][65], s[2][65];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/w.safetensors", dir);
    tri_run *run = open_line((tri_options){.steps = 5, .save = path}, 10);
    while (tri_step(run)) continue;
    tri_hash(run, a[0], s[0]);
    assert_int_equal(tri_close(run), TRI_OK);
    run = open_line((tri_options){.steps = 5, .load = path, .seed = 3}, 10);
    tri_hash(run, a[1], s[1]);
    assert_string_equal(a[0], a[1]);
    assert_int_equal(tri_close(run), TRI_OK);

    tri_graph *g = tri_graph_new(2);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(2, 3));
    tri_output(tri_dense(tri_dense(x, "fc", 1), "head", 4), "y");
    tri_options o = {.forward = true, .load = path};
    assert_null(tri_open(g, &o));
    assert_non_null(strstr(tri_message(), "missing: head.weight f32[4,1]"));
    assert_non_null(strstr(tri_message(), "fc.weight is f32[1,2], the network has f32[1,3]"));
    unlink(path);
    rmdir(dir);
}

/* A network with a norm and a head, opened with the weights of a file. */
static tri_run *open_normed(const char *path, bool partial, int64_t classes) {
    tri_graph *g = tri_graph_new(2);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(2, 3));
    tri_output(tri_dense(tri_ln(tri_dense(x, "fc", 3), "norm"), "head", classes), "y");
    return tri_open(g, &(tri_options){.forward = true, .load = path, .partial = partial});
}

/* Names that PyTorch's users and others use; tensors that only one side has; another head. */
static void names_of_others(void **state) {
    (void)state;
    static const float value[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const int64_t counted = 7;
    const struct safetensors_entry theirs[] = {
        {"module.fc.weight", {TRI_F32, TRI_SHAPE(3, 3)}, value},
        {"module.fc.bias", {TRI_F32, TRI_SHAPE(3)}, value},
        {"module.norm.gamma", {TRI_F32, TRI_SHAPE(3)}, value},
        {"module.norm.beta", {TRI_F32, TRI_SHAPE(3)}, value},
        {"module.head.weight", {TRI_F32, TRI_SHAPE(2, 3)}, value},
        {"module.head.bias", {TRI_F32, TRI_SHAPE(2)}, value},
        {"module.norm.num_batches_tracked", {TRI_I64, TRI_SCALAR}, &counted}};
    char dir[] = "/tmp/trireme-test-XXXXXX", path[64];
    float read[9];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/w.safetensors", dir);
    assert_int_equal(safetensors_write(path, theirs, COUNT(theirs), NULL, 0), TRI_OK);
    tri_run *run = open_normed(path, false, 2);
    assert_int_equal(tri_read(run, "norm.bias", read, 12), TRI_OK);
    assert_memory_equal(read, value, 12);
    assert_int_equal(tri_close(run), TRI_OK);
    assert_null(open_normed(path, false, 4));
    assert_non_null(
        strstr(tri_message(), "module.head.weight is f32[2,3], the network has f32[4,3]"));
    assert_non_null(strstr(tri_message(), "--partial takes what fits"));
    run = open_normed(path, true, 4);
    assert_int_equal(tri_read(run, "fc.weight", read, 36), TRI_OK);
    assert_memory_equal(read, value, 36);
    assert_int_equal(tri_close(run), TRI_OK);
    unlink(path);
    rmdir(dir);
}

static void names_are_checked(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        tri_graph *g = line_with_loss(8);
        tri_tensor *x = tri_find(g, "x");
        if (i == 0) tri_output(x, "=3");
        if (i == 1) tri_output(x, NULL);
        if (i == 2) tri_param(g, NULL, TRI_SHAPE(2), (tri_init){0});
        if (i == 3) tri_input(g, NULL, TRI_F32, TRI_SHAPE(8));
        if (i == 4) tri_freeze(g, NULL);
        if (i == 5) tri_scalar(g, "");
        assert_int_equal(tri_graph_status(g), TRI_USAGE);
        assert_non_null(strstr(tri_message(), "name"));
        tri_graph_free(g);
    }
}

static void options_are_checked(void **state) {
    (void)state;
    const struct {
        tri_options o;
        const char *words;
    } rows[] = {
        {{.device = "gpu"}, "no device \"gpu\""},
        {{.steps = 1, .epochs = 2}, "both"},
        {{.batch = -1}, "batch is -1"},
        {{.lanes = 99}, "99 lanes"},
        {{.optimizer = {.name = "sdg"}}, "no optimizer \"sdg\""},
        {{.optimizer = {.lr = -1}}, "learning rate is -1"},
        {{.optimizer = {.schedule = "cos"}}, "schedule \"cos\""},
        {{.optimizer = {.momentum = 0.5}}, "sgd takes no momentum"},
        {{.optimizer = {.name = "nesterov", .eps = 1}},
         "nesterov takes no eps; adam, adamw, lars, lamb do"},
        {{.optimizer = {.name = "lamb", .trust = 0.1}}, "lamb takes no trust; lars do"},
        {{.optimizer = {.name = "lars", .momentum = 1}}, "momentum is 1"},
        {{.save = "/nowhere/x.safetensors"}, "/nowhere/x.safetensors"},
        {{.save = "/"}, "it is a directory"},
        {{.load = "/nowhere/x.safetensors"}, "/nowhere/x.safetensors"},
        {{.data = "idx:/nowhere"}, "/nowhere"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        tri_options o = rows[i].o;
        if (!o.data) o.source = numbers(70);
        assert_null(tri_open(line_with_loss(16), &o));
        if (!strstr(tri_message(), rows[i].words))
            fail_msg("\"%s\" has no \"%s\"", tri_message(), rows[i].words);
    }
}

/* Calls without effect are refused. */
static void nothing_is_ignored(void **state) {
    (void)state;
    tri_run *run = tri_open(line_with_loss(16), &(tri_options){.source = numbers(70), .steps = 1});
    tri_set_scalar(run, "momentun", 0.5);
    assert_int_equal(tri_run_status(run), TRI_USAGE);
    assert_non_null(strstr(tri_message(), "\"momentun\""));
    assert_int_equal(tri_close(run), TRI_USAGE);

    tri_graph *g = line_with_loss(16);
    tri_minimize(tri_find(g, "loss"), (tri_optimizer){.lr = 0.1});
    tri_options o = {.source = numbers(70), .steps = 1, .optimizer = {.name = "adam"}};
    assert_null(tri_open(g, &o));
    assert_non_null(strstr(tri_message(), "updates its parameters itself"));

    g = line_with_loss(16);
    tri_group_lr(g, "*", -1);
    assert_null(tri_open(g, &(tri_options){.source = numbers(70), .steps = 1}));
    assert_non_null(strstr(tri_message(), "-1 for \"*\""));

    g = line_with_loss(16);
    tri_push(g, "block%d", 1);
    assert_null(tri_open(g, &(tri_options){.source = numbers(70), .steps = 1}));
    assert_non_null(strstr(tri_message(), "block1"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_counts_once),
        cmocka_unit_test(forward_only),
        cmocka_unit_test(forward_does_not_train),
        cmocka_unit_test(files),
        cmocka_unit_test(names_of_others),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(nothing_is_ignored),
    };
    return cmocka_run_group_tests_name("forward", tests, NULL, NULL);
}
