/* SPDX-License-Identifier: Apache-2.0
 * Evaluation beside training: it shares the parameters and, where it can, the memory. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <trireme.h>

#include "base/base.h"
#include "exec/budget.h"
#include "exec/run.h"

#define SIDE 8
#define PLACES (3 * SIDE * SIDE)

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)epoch, (void)seed;
    for (int i = 0; i < PLACES; i++) ((float *)out[0])[i] = (float)((index * 31 + i * 17) % 23) - 11;
    *(float *)out[1] = (float)(index % 5);
    return 0;
}

static tri_data *pictures(int64_t n) {
    static const tri_field fields[] = {{"x", TRI_F32, {3, {3, SIDE, SIDE}}}, {"y", TRI_F32, {1, {1}}}};
    return tri_data_new("pictures", n, fields, 2, fill, NULL, false);
}

/* Norms behind a convolution, with so many groups of statistics each. Outputs in between keep an
 * evaluation from taking a norm into the convolution: with two there are none. */
static tri_graph *net(int64_t batch, int64_t groups, int norms) {
    tri_graph *g = tri_graph_new(batch);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(batch, 3, SIDE, SIDE));
    tri_tensor *y = tri_input(g, "y", TRI_F32, TRI_SHAPE(batch, 1));
    tri_tensor *h = tri_conv(x, "conv", 6, 3, .pad = 1);
    if (norms == 1) tri_output(h, "conv");
    for (int i = 0; i < norms; i++) h = tri_bn(h, i ? "bn2" : "bn", .groups = groups);
    h = tri_relu(h);
    tri_output(h, "relu");
    h = tri_dense(tri_global_avg_pool(h), "fc", 1);
    tri_loss(tri_mse(h, y));
    return g;
}

static tri_run *train(tri_graph *g, tri_options o) {
    o.source = pictures(600);
    o.quiet = true;
    tri_run *run = tri_open(g, &o);
    if (!run) fail_msg("%s", tri_message());
    for (int i = 0; i < 3; i++) assert_true(tri_step(run));
    return run;
}

static double evaluate(tri_run *run, int64_t samples) {
    tri_data *data = pictures(samples);
    if (tri_evaluate(run, data)) fail_msg("%s", tri_message());
    tri_data_free(data);
    double loss = tri_result(run, "loss");
    assert_true(isfinite(loss));
    return loss;
}

static void read_maps(const tri_run *run, float maps[2][16 * 6 * SIDE * SIDE]) {
    assert_int_equal(tri_read(run, "conv", maps[0], sizeof maps[0]), TRI_OK);
    assert_int_equal(tri_read(run, "relu", maps[1], sizeof maps[1]), TRI_OK);
}

/* What a step gave is there until the next, whatever memory an evaluation takes. */
static void a_steps_outputs_stay(void **state) {
    (void)state;
    for (int64_t lanes = 1; lanes <= 2; lanes++) {
        tri_run *run = train(net(16, 1, 1), (tri_options){.lanes = lanes, .steps = 5,
                                                          .optimizer.loss_scale = "dynamic"});
        double loss = tri_value(run, "loss"), scale = tri_value(run, "loss_scale");
        static float before[2][16 * 6 * SIDE * SIDE], after[2][COUNT(before[0])];
        read_maps(run, before);
        for (int64_t n = 16; n <= 37; n += 21) {
            evaluate(run, n);
            assert_true(tri_value(run, "loss") == loss);
            assert_true(tri_value(run, "loss_scale") == scale);
            read_maps(run, after);
            assert_memory_equal(before, after, sizeof before);
        }
        assert_true(tri_step(run));
        assert_false(tri_value(run, "loss") == loss);
        assert_int_equal(tri_close(run), TRI_OK);
    }
}

/* Fewer than there are lanes, or than a group of statistics takes; also all of them. */
static void any_number_of_samples(void **state) {
    (void)state;
    static const int64_t samples[] = {69, 3, 16, 71, 1};
    tri_run *run = train(net(16, 1, 1), (tri_options){.lanes = 8, .steps = 5});
    tri_run *grouped = train(net(16, 2, 1), (tri_options){.lanes = 1, .steps = 5});
    for (size_t i = 0; i < COUNT(samples); i++) {
        evaluate(run, samples[i]);
        evaluate(grouped, samples[i]);
    }
    assert_int_equal(tri_close(run), TRI_OK);
    assert_int_equal(tri_close(grouped), TRI_OK);
}

/* Only the first of two norms is taken into the convolution. */
static void two_norms(void **state) {
    (void)state;
    double loss[2];
    for (int folded = 0; folded < 2; folded++) {
        tri_run *run = train(net(16, 1, 2), (tri_options){.lanes = 1, .steps = 5,
                                                          .passes = folded ? NULL : "-fold-norm"});
        loss[folded] = evaluate(run, 40);
        assert_int_equal(tri_close(run), TRI_OK);
    }
    assert_true(fabs(loss[0] - loss[1]) < 1e-5 * loss[0]);
}

/* The caller's texts may go after tri_open. */
static void texts_are_kept(void **state) {
    (void)state;
    char conv[] = "direct", recompute[] = "bn", type[] = "bf16", passes[] = "-cse";
    tri_run *run = train(net(16, 1, 1), (tri_options){.lanes = 1, .steps = 5, .conv = conv,
                                                      .recompute = recompute, .amp_type = type,
                                                      .passes = passes});
    memset(conv, '?', sizeof conv - 1);
    memset(recompute, '?', sizeof recompute - 1);
    memset(type, '?', sizeof type - 1);
    memset(passes, '?', sizeof passes - 1);
    evaluate(run, 20);
    assert_int_equal(tri_close(run), TRI_OK);
}

/* A lane at a time, training needs little; an evaluation has the whole batch at once, and says so if that
 * is too much. */
static void memory_is_asked_for(void **state) {
    (void)state;
    const size_t program = 64 << 20, spare = 64 << 10;
    tri_options o = {.lanes = 64, .threads = 1, .steps = 5};
    tri_run *planned = run_plan(net(512, 1, 1), &o);
    assert_non_null(planned);
    o.memory_limit = (int64_t)(budget_of(planned->machine, &planned->store).total + program + spare);
    run_free(planned);
    tri_run *run = train(net(512, 1, 1), o);
    tri_data *data = pictures(512);
    assert_int_equal(tri_evaluate(run, data), TRI_USAGE);
    assert_non_null(strstr(tri_message(), "an evaluation beside it"));
    assert_non_null(strstr(tri_message(), "--memory-limit"));
    tri_data_free(data);
    evaluate(run, 8); /* less at once does */
    assert_true(tri_step(run));
    assert_int_equal(tri_close(run), TRI_OK);
}

/* ---- while training ---- */

/* None but the first evaluation can be better by so much. */
static tri_options in_vain(int64_t samples) {
    return (tri_options){.lanes = 2, .steps = 40, .quiet = true, .source = pictures(64), .eval_every = 3,
                         .eval_source = pictures(samples), .early_stop = 2, .early_stop_change = 1e9};
}

static void an_own_loop_stops_early(void **state) {
    (void)state;
    tri_options o = in_vain(21);
    tri_run *run = tri_open(net(16, 1, 1), &o);
    assert_non_null(run);
    while (tri_step(run)) assert_int_equal(isfinite(tri_result(run, "loss")), tri_step_number(run) >= 3);
    assert_int_equal(tri_step_number(run), 9);
    assert_int_equal(tri_close(run), TRI_OK);
}

struct calls {
    int steps, epochs, order;
};

static int count_step(tri_run *run, void *user) {
    struct calls *c = user;
    c->steps++;
    assert_int_equal(tri_step_number(run) % 2, 0);
    return 0;
}

static int count_epoch(tri_run *run, void *user) {
    struct calls *c = user;
    (void)run;
    c->order = c->epochs++ ? c->order : c->steps;
    return 0;
}

static int stop_at_seven(tri_run *run, void *user) {
    (void)user;
    return tri_step_number(run) == 7;
}

static void callbacks_are_a_list(void **state) {
    (void)state;
    struct calls c = {0};
    tri_options o = in_vain(16);
    o.early_stop = 0;
    assert_int_equal(tri_train(net(16, 1, 1), &o,
                               TRI_CALLBACKS({.step = count_step, .every = 2, .user = &c},
                                             {.epoch = count_epoch, .user = &c}, {.step = stop_at_seven})), TRI_OK);
    assert_int_equal(c.steps, 3);
    assert_int_equal(c.epochs, 1);
    assert_int_equal(c.order, 2); /* an epoch has four steps: behind the second call */
}

static void settings_in_a_list(void **state) {
    (void)state;
    char folder[] = "/tmp/trireme-test-XXXXXX", command[64];
    assert_non_null(mkdtemp(folder));
    tri_options o = in_vain(16);
    tri_data *other = o.eval_source;
    o.eval_source = NULL;
    o.early_stop = 3; /* what the options say counts */
    o.out = folder;
    assert_int_equal(tri_train(net(16, 1, 1), &o,
                               TRI_CALLBACKS(tri_evaluator(.source = other, .every = 1, .early_stop = 1),
                                             tri_saver(.directory = folder, .prefix = "mine", .every = 5, .keep = 1))),
                     TRI_OK);
    for (int step = 5; step <= 12; step++) {
        char path[64];
        snprintf(path, sizeof path, "%s/mine/step-%09d/state.json", folder, step);
        assert_int_equal(!access(path, F_OK), step == 12);
    }
    o = in_vain(16);
    tri_data_free(o.eval_source);
    o.eval_source = NULL;
    assert_int_equal(tri_train(net(16, 1, 1), &o, TRI_CALLBACKS(tri_saver(.every = 1))), TRI_USAGE);
    assert_non_null(strstr(tri_message(), "tri_saver lacks its directory"));
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void what_cannot_be_judged(void **state) {
    (void)state;
    const tri_options wrong[] = {{.best = "loss"}, {.eval_source = pictures(16), .best = "relu"},
                                 {.eval_source = pictures(16), .forward = true}, {.early_stop = -1},
                                 {.eval_source = tri_data_new("once", 16, (const tri_field[]){{"x", TRI_F32, {1, {1}}}},
                                                              1, fill, NULL, true)}};
    const char *const message[] = {"name their data with --eval-data", "an evaluation has: loss", "this one is forward",
                                   "must be at least 0", "in an order of its own"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        tri_options o = wrong[i];
        o.source = pictures(64);
        assert_null(tri_open(net(16, 1, 1), &o));
        if (!strstr(tri_message(), message[i])) fail_msg("%s", tri_message());
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_steps_outputs_stay),
        cmocka_unit_test(any_number_of_samples),
        cmocka_unit_test(two_norms),
        cmocka_unit_test(texts_are_kept),
        cmocka_unit_test(memory_is_asked_for),
        cmocka_unit_test(an_own_loop_stops_early),
        cmocka_unit_test(callbacks_are_a_list),
        cmocka_unit_test(settings_in_a_list),
        cmocka_unit_test(what_cannot_be_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
