/* SPDX-License-Identifier: Apache-2.0
 * Evaluation beside training: it shares the parameters and, where possible, the memory. */
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
#include "data/data.h"
#include "data/pictures.h"
#include "machine/budget.h"
#include "run/open.h"
#include "run/policy.h"
#include "run/run.h"

#define SIDE 8
#define PLACES (3 * SIDE * SIDE)

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)epoch, (void)seed;
    for (int i = 0; i < PLACES; i++)
        ((float *)out[0])[i] = (float)((index * 31 + i * 17) % 23) - 11;
    *(float *)out[1] = (float)(index % 5);
    return 0;
}

static tri_data *pictures(int64_t n) {
    static const tri_field fields[] = {{"x", TRI_F32, {3, {3, SIDE, SIDE}}},
                                       {"y", TRI_F32, {1, {1}}}};
    return tri_data_new("pictures", n, fields, 2, fill, NULL, false);
}

/* Norms after a convolution, each with so many groups of statistics. Outputs between them keep an
 * evaluation from folding a norm into the convolution: with two outputs none is folded. */
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

/* The results of a step stay valid until the next one, whatever memory an evaluation takes. */
static void outputs_of_a_step_stay(void **state) {
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

/* Fewer samples than lanes, or than a group of statistics has; also all of them. */
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

/* Only the first of two norms is folded into the convolution. */
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

/* The caller may free its strings after tri_open. */
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

/* Training needs little memory, because it takes a lane at a time; an evaluation takes the whole
 * batch at once, and reports if that is too much. */
static void memory_is_planned(void **state) {
    (void)state;
    const size_t program = 64 << 20, spare = 64 << 10;
    tri_options o = {.lanes = 64, .threads = 1, .steps = 5};
    tri_run *planned = run_plan(net(512, 1, 1), &o, NULL);
    assert_non_null(planned);
    o.memory_limit =
        (int64_t)(budget_of(planned->machine, &planned->store).total + program + spare);
    run_free(planned);
    tri_run *run = train(net(512, 1, 1), o);
    tri_data *data = pictures(512);
    assert_int_equal(tri_evaluate(run, data), TRI_USAGE);
    assert_non_null(strstr(tri_message(), "an evaluation, 512 samples at a time: does not fit: "));
    assert_non_null(strstr(tri_message(), "--memory-limit: the program itself: 64"));
    tri_data_free(data);
    evaluate(run, 8); /* a smaller batch works */
    assert_true(tri_step(run));
    assert_int_equal(tri_close(run), TRI_OK);
}

/* ---- while training ---- */

/* Only the first evaluation can be better by that much. */
static tri_options in_vain(int64_t samples) {
    return (tri_options){.lanes = 2,
                         .steps = 40,
                         .quiet = true,
                         .source = pictures(64),
                         .eval_every = 3,
                         .eval_source = pictures(samples),
                         .early_stop = 2,
                         .early_stop_change = 1e9};
}

static void an_own_loop_stops_early(void **state) {
    (void)state;
    tri_options o = in_vain(21);
    tri_run *run = tri_open(net(16, 1, 1), &o);
    assert_non_null(run);
    while (tri_step(run))
        assert_int_equal(isfinite(tri_result(run, "loss")), tri_step_number(run) >= 3);
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
    assert_int_equal(
        tri_train(net(16, 1, 1), &o,
                  TRI_CALLBACKS({.step = count_step, .every = 2, .user = &c},
                                {.epoch = count_epoch, .user = &c}, {.step = stop_at_seven})),
        TRI_OK);
    assert_int_equal(c.steps, 3);
    assert_int_equal(c.epochs, 1);
    assert_int_equal(c.order, 2); /* an epoch has four steps: after the second call */
}

/* The output of monitors and of the loop goes to stderr. */
static void quiet_monitors(void **state) {
    (void)state;
    FILE *said = tmpfile();
    int kept = dup(STDERR_FILENO);
    assert_true(said && kept >= 0);
    for (int quiet = 0; quiet < 2; quiet++) {
        tri_options o = {.steps = 4, .quiet = quiet, .source = pictures(64)};
        dup2(fileno(said), STDERR_FILENO);
        tri_status status =
            tri_train(net(16, 1, 1), &o, TRI_CALLBACKS(tri_loss_monitor(1), tri_time_monitor(2)));
        dup2(kept, STDERR_FILENO);
        assert_int_equal(status, TRI_OK);
        assert_int_equal(lseek(fileno(said), 0, SEEK_END) > 0, !quiet);
        assert_int_equal(ftruncate(fileno(said), 0), 0);
    }
    close(kept);
    fclose(said);
}

static void settings_in_a_list(void **state) {
    (void)state;
    char folder[] = "/tmp/trireme-test-XXXXXX", command[64];
    assert_non_null(mkdtemp(folder));
    tri_options o = in_vain(16);
    tri_data *other = o.eval_source;
    o.eval_source = NULL;
    o.early_stop = 3; /* the options take precedence */
    o.out = folder;
    assert_int_equal(
        tri_train(
            net(16, 1, 1), &o,
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

static void refused_policies(void **state) {
    (void)state;
    const tri_options wrong[] = {
        {.best = "loss"},
        {.eval_source = pictures(16), .best = "relu"},
        {.eval_source = pictures(16), .forward = true},
        {.early_stop = -1},
        {.eval_source = tri_data_new("once", 16, (const tri_field[]){{"x", TRI_F32, {1, {1}}}}, 1,
                                     fill, NULL, true)}};
    const char *const message[] = {"which need data: --eval-data", "evaluations have: loss",
                                   "in a forward run", "must be at least 0",
                                   "in its own order"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        tri_options o = wrong[i];
        o.source = pictures(64);
        assert_null(tri_open(net(16, 1, 1), &o));
        if (!strstr(tri_message(), message[i])) fail_msg("%s", tri_message());
    }
}

/* ---- labels out of range ---- */

static int labelled(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)epoch, (void)seed;
    for (int i = 0; i < 4; i++) ((float *)out[0])[i] = (float)(index % 7);
    for (int i = 0; i < 2; i++) ((int64_t *)out[1])[i] = index == 37 && i ? 5 : index % 3;
    return 0;
}

static tri_status file_of(void *user, int64_t index, struct data_file *out) {
    (void)user;
    text_add(&out->name, "labels/%lld.png", (long long)index);
    return TRI_OK;
}

static tri_data *labels(bool files) {
    static const tri_field fields[] = {{"x", TRI_F32, {2, {2, 2}}}, {"y", TRI_I64, {1, {2}}}};
    tri_data *d = tri_data_new("labels", 48, fields, 2, labelled, NULL, false);
    if (files) d->about.file = file_of;
    return d;
}

/* below: the data's labels are checked as they are read; otherwise the loss checks them. */
static tri_graph *two_labels(int64_t batch, int64_t below) {
    tri_graph *g = tri_graph_new(batch);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(batch, 2, 2));
    tri_tensor *y = tri_input(g, "y", TRI_I64, TRI_SHAPE(batch, 2), .below = below);
    tri_tensor *logits = tri_reshape(tri_dense(x, "fc", 3), TRI_SHAPE(-1, 3));
    tri_loss(tri_cross_entropy(logits, tri_flatten(y, 0)));
    return g;
}

static void labels_are_found(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        const char *name =
            i & 2 ? "sample 37 of data labels (labels/37.png)" : "sample 37 of data labels";
        tri_options o = {.source = labels(i & 2), .lanes = i & 1 ? 3 : 1, .steps = 3, .quiet = true,
                         .device = i & 4 ? "ref" : NULL};
        tri_run *run = tri_open(two_labels(16, 0), &o);
        if (!run) fail_msg("%s", tri_message());
        while (tri_step(run)) continue;
        assert_int_equal(tri_run_status(run), TRI_FAILED);
        const char *told = strstr(tri_message(), "label 5 is not below 3, ");
        if (!told || strcmp(strchr(told, ',') + 2, name)) fail_msg("%s", tri_message());
        tri_data *data = labels(i & 2);
        assert_int_equal(tri_evaluate(run, data), TRI_FAILED);
        told = strstr(tri_message(), "label 5 is not below 3, ");
        if (!told || strcmp(strchr(told, ',') + 2, name)) fail_msg("%s", tri_message());
        tri_data_free(data);
        tri_close(run);
    }
    tri_options o = {.source = labels(true), .steps = 3, .quiet = true};
    tri_run *run = tri_open(two_labels(16, 3), &o);
    while (tri_step(run)) continue;
    if (!strstr(tri_message(),
                "sample 37: \"y\" is 5, but the network takes 0 to 2 (labels/37.png)"))
        fail_msg("%s", tri_message());
    tri_close(run);
}

/* ---- networks with their own gradients ---- */

static tri_tensor *mean_error(tri_tensor *prediction, tri_tensor *y) {
    return tri_mean(tri_abs(tri_sub(prediction, y)), TRI_ALL);
}

/* Declares results before its gradients, after them, and as functions of them. penalty: the loss is
 * one of these. */
static tri_graph *own_step(int64_t batch, bool penalty) {
    tri_graph *g = tri_graph_new(batch);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(batch, 3, SIDE, SIDE));
    tri_tensor *y = tri_input(g, "y", TRI_F32, TRI_SHAPE(batch, 1));
    tri_tensor *prediction = tri_dense(tri_flatten(x, 1), "fc", 1), *grads[2];
    tri_tensor *loss = tri_mse(prediction, y), *params[] = {tri_param_at(g, 0), tri_param_at(g, 1)};
    tri_metric(mean_error(prediction, y), "before");
    tri_grad(loss, params, 2, grads);
    tri_tensor *norm = tri_global_norm(grads, 2);
    tri_loss(penalty ? tri_add(loss, norm) : loss);
    tri_update(params, grads, 2, (tri_optimizer){.lr = 1e-4}, NULL);
    tri_metric(norm, "norm");
    tri_metric(mean_error(tri_scale(prediction, 1), y), "after");
    return g;
}

/* As a program builds it, and after reading it back from its text. */
static tri_graph *own_step_read(int64_t batch, bool penalty) {
    tri_graph *g = own_step(batch, penalty);
    char *text = tri_graph_print(g);
    tri_graph_free(g);
    assert_non_null(text);
    g = tri_graph_parse(text, strlen(text), "text");
    free(text);
    return g;
}

static void results_after_gradients(void **state) {
    (void)state;
    for (int lanes = 1; lanes <= 2; lanes++) {
        tri_run *run = train(lanes == 1 ? own_step(16, false) : own_step_read(16, false),
                             (tri_options){.lanes = lanes, .steps = 5});
        assert_true(isfinite(tri_value(run, "norm")));
        evaluate(run, 40);
        assert_true(isfinite(tri_result(run, "before")));
        assert_true(tri_result(run, "before") == tri_result(run, "after"));
        assert_true(isnan(tri_result(run, "norm")));
        assert_int_equal(tri_close(run), TRI_OK);
    }
}

/* Evaluations, progress lines and a forward run have the same results. */
static void results_are_the_same_everywhere(void **state) {
    (void)state;
    tri_options o = in_vain(16);
    o.optimizer.loss_scale = "dynamic"; /* its results depend on gradients too */
    o.best = "after";
    for (int own = 0; own < 2; own++) {
        if (own) o = in_vain(16), o.best = "after";
        tri_graph *g = own ? own_step(16, false) : net(16, 1, 1);
        if (!own) tri_metric(tri_find(g, "loss"), "after");
        tri_run *run = tri_open(g, &o);
        if (!run) fail_msg("%s", tri_message());
        while (tri_step(run)) continue;
        struct text line = {0};
        policy_describe(run->policy, 9, &line);
        assert_null(strstr(line.data, "nan"));
        assert_non_null(strstr(line.data, "after"));
        assert_null(strstr(line.data, own ? "norm" : "loss_scale"));
        text_free(&line);
        assert_int_equal(tri_step_number(run), 9);
        assert_int_equal(tri_close(run), TRI_OK);
    }
    tri_options forward = {.forward = true, .quiet = true};
    tri_run *run = tri_open(own_step(16, false), &forward);
    assert_int_equal(run_output_count(run), 3);
    assert_int_equal(tri_close(run), TRI_OK);
}

static void results_that_evaluation_lacks(void **state) {
    (void)state;
    static const struct {
        bool penalty, stops;
        const char *best, *told;
    } rows[] = {
        {false, false, "norm",
         "--best norm: this output depends on gradients (tri_grad), which evaluations do "
         "not compute; evaluations have: loss, before, after"},
        {true, true, NULL, "--best loss: this output depends on gradients"},
        {true, false, NULL, NULL}, /* nothing is compared */
        {true, true, "before", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        tri_options o = in_vain(16);
        o.best = rows[i].best;
        o.early_stop = rows[i].stops ? 2 : 0;
        o.lanes = 1;
        tri_run *run = tri_open(own_step(16, rows[i].penalty), &o);
        if (rows[i].told && (run || !strstr(tri_message(), rows[i].told)))
            fail_msg("%s", tri_message());
        if (rows[i].told) continue;
        if (!run) fail_msg("%s", tri_message());
        while (tri_step(run)) continue;
        assert_int_equal(tri_step_number(run), rows[i].stops ? 9 : 40);
        assert_true(isfinite(tri_result(run, "after")) && isnan(tri_result(run, "loss")));
        assert_int_equal(tri_close(run), TRI_OK);
    }
}

static void no_result_without_gradients(void **state) {
    (void)state;
    tri_graph *g = tri_graph_new(1);
    tri_tensor *w = tri_param(g, "w", TRI_SHAPE(3), (tri_init){.a = 1}), *dw;
    tri_grad(tri_sum(tri_mul(w, w), TRI_ALL), &w, 1, &dw);
    tri_output(dw, "dw");
    tri_options o = {.forward = true};
    assert_null(tri_open(g, &o));
    assert_non_null(strstr(tri_message(), "every result of the network depends on gradients"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_after_gradients),
        cmocka_unit_test(results_are_the_same_everywhere),
        cmocka_unit_test(results_that_evaluation_lacks),
        cmocka_unit_test(no_result_without_gradients),
        cmocka_unit_test(outputs_of_a_step_stay),
        cmocka_unit_test(any_number_of_samples),
        cmocka_unit_test(two_norms),
        cmocka_unit_test(texts_are_kept),
        cmocka_unit_test(memory_is_planned),
        cmocka_unit_test(an_own_loop_stops_early),
        cmocka_unit_test(callbacks_are_a_list),
        cmocka_unit_test(labels_are_found),
        cmocka_unit_test(quiet_monitors),
        cmocka_unit_test(settings_in_a_list),
        cmocka_unit_test(refused_policies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
