/* SPDX-License-Identifier: Apache-2.0
 * Training as a user composes it: updates, groups, schedules, initial values. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>


#include "run/run.h"
#include "unit/line.h"
#include "unit/scratch.h"

/* ---- the loop ---- */

/* The gradient of the mean divides by the batch that runs, not by the one that the network was
 * built for. */
static void batch_of_the_options(void **state) {
    (void)state;
    float w[2];
    for (int i = 0; i < 2; i++) {
        tri_run *run = open_line((tri_options){.batch = 32, .steps = 1, .no_shuffle = true},
                                 i ? 32 : 8);
        assert_true(tri_step(run));
        w[i] = weight(run, 0);
        assert_int_equal(tri_close(run), TRI_OK);
    }
    assert_true(w[0] == w[1]);

    tri_graph *g = line_with_loss(8);
    tri_minimize(tri_find(g, "loss"), (tri_optimizer){0});
    assert_null(tri_open(g, &(tri_options){.batch = 32}));
    assert_non_null(strstr(tri_message(), "for a batch of 8"));
}

/* A checkpoint has place for 64 scalars; without one there may be more. */
static void many_scalars(void **state) {
    (void)state;
    char long_name[200];
    memset(long_name, 'n', sizeof long_name);
    long_name[sizeof long_name - 1] = 0;
    for (int i = 0; i < 4; i++) {
        tri_graph *g = line_with_loss(8);
        char name[16];
        for (int k = 0; k < 80 && i < 2; k++) {
            snprintf(name, sizeof name, "s%d", k);
            tri_metric(tri_scalar(g, name), name);
        }
        tri_metric(tri_scalar(g, i < 2 ? "s" : long_name), "s");
        tri_run *run = tri_open(g, &(tri_options){.steps = 1, .source = numbers(70), .quiet = true,
                                                  .ckpt = i % 2 ? directory : NULL});
        if ((run == NULL) != (i % 2 == 1)) fail_msg("case %d: %s", i, tri_message());
        if (run) assert_int_equal(tri_close(run), TRI_OK);
        else assert_message(i < 2 ? "scalars; a checkpoint (--ckpt) can have 64"
                                  : "has 199 bytes; in a checkpoint (--ckpt) it can have 127");
    }
}

/* The rate of the update counts, unless the options have one; two rates are a mistake. */
static void rate_of_an_update(void **state) {
    (void)state;
    const struct {
        tri_optimizer update;
        double option, rate;
    } rows[] = {{{.lr = 0.5}, 0, 0.5}, {{.lr = 0.5}, 0.25, 0.25}, {{.name = "adamw"}, 0, 0.001},
                {{.lr = 0.5, .schedule = "constant:warmup=2"}, 0, 0.25}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        tri_graph *g = line_with_loss(8);
        tri_minimize(tri_find(g, "loss"), rows[i].update);
        tri_metric(tri_scalar(g, "lr"), "rate");
        tri_options o = {.steps = 4, .optimizer.lr = rows[i].option, .source = numbers(70)};
        tri_run *run = tri_open(g, &o);
        assert_non_null(run);
        assert_true(tri_step(run));
        assert_float_equal(tri_value(run, "rate"), rows[i].rate, 1e-7);
        assert_int_equal(tri_close(run), TRI_OK);
    }
    tri_graph *g = line_with_loss(8);
    for (int i = 1; i < 3; i++) tri_minimize(tri_find(g, "loss"), (tri_optimizer){.lr = i});
    assert_int_equal(tri_graph_status(g), TRI_USAGE);
    tri_graph_free(g);
}

static void steps_and_epochs(void **state) {
    (void)state;
    tri_run *run = open_line((tri_options){.epochs = 2}, 16); /* 70 samples: 4 steps per epoch */
    int64_t n = 0;
    while (tri_step(run)) {
        n++;
        assert_int_equal(tri_step_number(run), n);
        assert_int_equal(tri_epoch(run), n > 4);
    }
    assert_int_equal(n, 8);
    assert_int_equal(tri_step_total(run), 8);
    assert_false(tri_step(run));
    assert_int_equal(tri_close(run), TRI_OK);
}

static void failed_sample_ends_the_run(void **state) {
    (void)state;
    int64_t bad = 20;
    tri_options o = {.no_shuffle = true, .quiet = true};
    o.source = tri_data_new("numbers", 70, fields, 2, fill, &bad, false);
    tri_run *run = tri_open(line_with_loss(16), &o);
    assert_true(tri_step(run));
    assert_false(tri_step(run));
    assert_int_equal(tri_run_status(run), TRI_FAILED);
    assert_non_null(strstr(tri_message(), "20"));
    assert_int_equal(tri_close(run), TRI_FAILED);
}

static void sequential_data(void **state) {
    (void)state;
    for (int shuffled = 0; shuffled < 2; shuffled++) {
        tri_options o = {.no_shuffle = !shuffled, .epochs = 3};
        o.source = tri_data_new("stream", 70, fields, 2, fill, NULL, true);
        tri_run *run = tri_open(line_with_loss(10), &o);
        if (shuffled) {
            assert_null(run);
            assert_non_null(strstr(tri_message(), "cannot be shuffled"));
            continue;
        }
        int n = 0;
        while (tri_step(run)) n++;
        assert_int_equal(n, 21);
        assert_int_equal(tri_close(run), TRI_OK);
    }
}

/* ---- composing a step ---- */

/* Values are exchanged: each update sees the values before the step. */
static void updates_see_the_past(void **state) {
    (void)state;
    tri_graph *g = tri_graph_new(1);
    tri_tensor *a = tri_param(g, "a", TRI_SHAPE(3), (tri_init){.a = 1});
    tri_tensor *b = tri_param(g, "b", TRI_SHAPE(3), (tri_init){.a = 2});
    tri_assign(a, b);
    tri_assign(b, a);
    tri_run *run = tri_open(g, &(tri_options){.steps = 3});
    float av[3], bv[3];
    while (tri_step(run)) continue;
    assert_int_equal(tri_read(run, "a", av, sizeof av), TRI_OK);
    assert_int_equal(tri_read(run, "b", bv, sizeof bv), TRI_OK);
    assert_true(av[2] == 2 && bv[0] == 1);
    assert_int_equal(tri_close(run), TRI_OK);
}

/* Conditions see the values before the step: the flag is cleared in the step that it permits. */
static void conditions_see_the_past(void **state) {
    (void)state;
    tri_graph *g = line_with_loss(8);
    tri_tensor *flag = tri_state(g, "flag", TRI_BOOL, TRI_SCALAR, (tri_init){TRI_CONSTANT, 1, 0});
    tri_tensor *count = tri_state(g, "count", TRI_F32, TRI_SCALAR, (tri_init){0});
    tri_assign(flag, tri_not(flag));
    tri_assign_if(count, tri_add_number(count, 1), flag);
    tri_run *run = tri_open(g, &(tri_options){.steps = 1, .source = numbers(70)});
    assert_non_null(run);
    float n = 0;
    while (tri_step(run)) assert_int_equal(tri_read(run, "count", &n, sizeof n), TRI_OK);
    assert_true(n == 1);
    assert_int_equal(tri_close(run), TRI_OK);
}

/* The line has the hashes of tri_hash, and is whole or empty. */
static void a_result_line(void **state) {
    (void)state;
    char weights[65], hash[65], line[512], wanted[512];
    tri_run *run = tri_open(line_with_loss(8), &(tri_options){.steps = 2, .source = numbers(70)});
    assert_non_null(run);
    while (tri_step(run)) continue;
    tri_hash(run, weights, hash);
    assert_int_equal(tri_result_line(run, line, sizeof line), TRI_OK);
    int n = snprintf(wanted, sizeof wanted, "done steps=2 loss=%.9g weights=sha256:%s "
                     "state=sha256:%s seconds=", tri_value(run, "loss"), weights, hash);
    assert_memory_equal(line, wanted, (size_t)n);
    assert_int_equal(tri_result_line(run, line, (size_t)n), TRI_USAGE);
    assert_string_equal(line, "");
    assert_non_null(strstr(tri_message(), "the buffer has"));
    assert_int_equal(tri_result_line(NULL, line, sizeof line), TRI_FAILED);
    assert_int_equal(tri_close(run), TRI_OK);
}

/* In the second step it takes logarithms of negative numbers. */
static tri_graph *line_with_log(void) {
    tri_graph *g = tri_graph_new(10);
    tri_tensor *y, *p = line(g, &y);
    tri_tensor *sign = tri_sub(tri_constant(g, 1.5, TRI_F32), tri_scalar(g, "step"));
    tri_push(g, "head");
    tri_tensor *far = tri_add_number(tri_abs(tri_sub(p, y)), 0.1);
    tri_loss(tri_mean(tri_log(tri_mul(sign, far)), TRI_ALL));
    tri_pop(g);
    return g;
}

static void bad_loss_ends_the_run(void **state) {
    (void)state;
    for (int lanes = 1; lanes <= 2; lanes++) {
        char weights[2][65], hash[2][65];
        tri_options o = {.steps = 3, .lanes = lanes, .source = numbers(70)};
        tri_run *run = tri_open(line_with_log(), &o);
        assert_non_null(run);
        assert_true(tri_step(run));
        tri_hash(run, weights[0], hash[0]);
        assert_false(tri_step(run));
        assert_int_equal(tri_step_number(run), 1);
        tri_hash(run, weights[1], hash[1]);
        assert_string_equal(weights[0], weights[1]);
        assert_string_equal(hash[0], hash[1]);
        char line[512];
        assert_int_equal(tri_result_line(run, line, sizeof line), TRI_FAILED);
        assert_string_equal(line, "");
        assert_int_equal(tri_run_status(run), TRI_FAILED);
        assert_non_null(strstr(tri_message(), "step 2: "));
        assert_non_null(strstr(tri_message(), "the loss is nan; the first nan is a result of "));
        assert_non_null(strstr(tri_message(), "head.log"));
        assert_int_equal(tri_close(run), TRI_FAILED);
        o.on_nan = "warn";
        o.source = numbers(70);
        run = tri_open(line_with_log(), &o);
        while (tri_step(run)) {}
        assert_int_equal(tri_step_number(run), 3);
        assert_int_equal(tri_close(run), TRI_OK);
    }
    assert_null(tri_open(line_with_log(), &(tri_options){.on_nan = "halt"}));
    assert_non_null(strstr(tri_message(), "it can be stop or warn"));
}

/* A loss scale that overflows at step 2: that step changes only the scale, which is halved. */
static void overflow_is_skipped(void **state) {
    (void)state;
    tri_graph *g = tri_graph_new(10);
    tri_tensor *y, *p = line(g, &y), *params[2], *grads[2];
    tri_tensor *scale = tri_state(g, "loss_scale", TRI_F32, TRI_SCALAR, (tri_init){.a = 1024});
    tri_tensor *blow = tri_scalar(g, "blow");
    for (int i = 0; i < 2; i++) params[i] = tri_param_at(g, i);
    tri_tensor *loss = tri_mse(p, y);
    tri_grad(tri_mul(tri_mul(loss, scale), blow), params, 2, grads);
    tri_tensor *fine = tri_all_finite(grads, 2);
    for (int i = 0; i < 2; i++) grads[i] = tri_div(grads[i], scale);
    tri_tensor *norm = tri_clip_by_norm(grads, 2, 0.5);
    tri_update(params, grads, 2, (tri_optimizer){.name = "adam"}, fine);
    tri_assign(scale, tri_where(fine, scale, tri_scale(scale, 0.5)));
    tri_metric(norm, "norm");
    tri_output(fine, "fine");
    tri_loss(loss);
    tri_options o = {.steps = 4, .lanes = 2, .source = numbers(70)};
    tri_run *run = tri_open(g, &o);
    assert_non_null(run);
    for (int i = 1; i <= 4; i++) {
        float before = weight(run, 0), updates, after_scale;
        tri_set_scalar(run, "blow", i == 2 ? INFINITY : 1);
        assert_true(tri_step(run));
        assert_true((weight(run, 0) == before) == (i == 2));
        assert_true(tri_value(run, "fine") == (i != 2));
        assert_int_equal(tri_read(run, "loss_scale", &after_scale, 4), TRI_OK);
        assert_true(after_scale == (i < 2 ? 1024 : 512));
        assert_int_equal(tri_read(run, "optimizer.updates", &updates, 4), TRI_OK);
        assert_true(updates == (float)(i < 2 ? i : i - 1));
        if (i != 2) assert_true(tri_value(run, "norm") > 0);
    }
    assert_int_equal(tri_close(run), TRI_OK);
}

static void groups(void **state) {
    (void)state;
    float w[4][2];
    for (int kind = 0; kind < 4; kind++) {
        tri_graph *g = line_with_loss(70);
        if (kind == 1) tri_freeze(g, "*.weight");
        if (kind == 2) tri_group_lr(g, "fc.w*", 0.5);
        if (kind == 3) tri_group_decay(g, "fc.weight", 0.1);
        tri_options o = {.steps = 1, .source = numbers(70), .optimizer = {.lr = 0.01}};
        tri_run *run = tri_open(g, &o);
        float begin_w = weight(run, 0);
        assert_true(tri_step(run));
        w[kind][0] = weight(run, 0) - begin_w;
        w[kind][1] = begin_w;
        assert_int_equal(tri_close(run), TRI_OK);
    }
    assert_true(w[0][0] != 0);
    assert_true(w[1][0] == 0);
    assert_true(fabsf(w[2][0] - w[0][0] / 2) < 1e-6f);
    assert_true(fabsf(w[3][0] - (w[0][0] - 0.01f * 0.1f * w[0][1])) < 1e-6f);
}

/* The change of fc.weight (2) and fc.bias in the first step; *length: the norm of the weight
 * before. */
static void first_step(tri_optimizer o, const char *without_decay, double added[3],
                       double *length) {
    tri_graph *g = line_with_loss(70);
    if (without_decay) tri_group_decay(g, without_decay, 0);
    tri_run *run = tri_open(g, &(tri_options){.steps = 1, .source = numbers(70), .optimizer = o});
    assert_non_null(run);
    float before[3], after[3];
    for (int i = 0; i < 2; i++) {
        float *to = i ? after : before;
        if (i) assert_true(tri_step(run));
        assert_int_equal(tri_read(run, "fc.weight", to, 2 * sizeof *to), TRI_OK);
        assert_int_equal(tri_read(run, "fc.bias", to + 2, sizeof *to), TRI_OK);
    }
    for (int i = 0; i < 3; i++) added[i] = (double)after[i] - (double)before[i];
    *length = hypot((double)before[0], (double)before[1]);
    assert_int_equal(tri_close(run), TRI_OK);
}

/* With lars a weight moves by trust x rate x its norm, with lamb by rate x its norm; but not where
 * the decay is disabled by name, nor biases. */
static void layerwise_rates(void **state) {
    (void)state;
    double plain[3], scaled[3], excluded[3], length;
    const tri_optimizer lars = {.name = "lars", .lr = 0.5, .trust = 0.02};
    first_step((tri_optimizer){.name = "momentum", .lr = 0.5}, NULL, plain, &length);
    first_step(lars, NULL, scaled, &length);
    assert_true(fabs(hypot(scaled[0], scaled[1]) - 0.5 * 0.02 * length) < 1e-6);
    assert_true(fabs(scaled[0] * plain[1] - scaled[1] * plain[0]) < 1e-5);
    assert_true(scaled[2] == plain[2]);
    first_step(lars, "fc.w*", excluded, &length);
    assert_memory_equal(excluded, plain, sizeof plain);

    const tri_optimizer lamb = {.name = "lamb", .lr = 0.125, .weight_decay = 0.1};
    first_step((tri_optimizer){.name = "adam", .lr = 0.125, .eps = 1e-6}, NULL, plain, &length);
    first_step(lamb, NULL, scaled, &length);
    assert_true(fabs(hypot(scaled[0], scaled[1]) - 0.125 * length) < 1e-6);
    assert_true(scaled[2] == plain[2]);
    first_step(lamb, "fc.w*", excluded, &length);
    assert_memory_equal(excluded, plain, sizeof plain);

    tri_optimizer all = lars;
    all.decay_all = true;
    first_step(all, NULL, scaled, &length);
    assert_true(scaled[2] != plain[2]);
}

static void patterns_must_match(void **state) {
    (void)state;
    tri_graph *g = line_with_loss(10);
    tri_freeze(g, "fc.weigth");
    tri_options o = {.steps = 1, .source = numbers(70)};
    assert_null(tri_open(g, &o));
    assert_non_null(strstr(tri_message(), "do you mean \"fc.weight\""));
}

static void nothing_to_learn(void **state) {
    (void)state;
    tri_graph *g = tri_graph_new(10);
    tri_tensor *y, *p = line(g, &y);
    tri_loss(tri_add(tri_mse(tri_stop_gradient(p), y), tri_mean(y, TRI_ALL)));
    assert_null(tri_open(g, &(tri_options){.steps = 1, .source = numbers(70)}));
    assert_non_null(strstr(tri_message(), "depends on no trainable parameter"));
}

static void names_are_unique(void **state) {
    (void)state;
    tri_graph *g = line_with_loss(10);
    tri_output(tri_find(g, "y"), "fc.bias");
    assert_int_equal(tri_graph_status(g), TRI_USAGE);
    assert_non_null(strstr(tri_message(), "fc.bias"));
    tri_graph_free(g);
}

/* A graph with its own batch keeps it if the options have none. */
static void batch_is_the_graphs(void **state) {
    (void)state;
    tri_options o = tri_options_default();
    o.source = numbers(70);
    tri_run *run = tri_open(line_with_loss(14), &o);
    assert_int_equal(run_batch(run), 14);
    assert_int_equal(tri_step_total(run), 5);
    assert_int_equal(tri_close(run), TRI_OK);
    tri_graph *g = tri_graph_new(0);
    assert_int_equal(tri_batch(g), 64);
    tri_graph_free(g);
}

/* The rate of an update survives printing and reading. */
static void rate_in_text(void **state) {
    (void)state;
    tri_graph *g = tri_graph_new(10);
    tri_tensor *y, *p = line(g, &y);
    tri_loss(tri_mse(p, y));
    tri_minimize(tri_find(g, "loss"), (tri_optimizer){.lr = 0.25, .schedule = "cosine:warmup=2"});
    char *text = tri_graph_print(g), *again;
    assert_non_null(text);
    tri_graph *h = tri_graph_parse(text, strlen(text), "text");
    again = tri_graph_print(h);
    assert_string_equal(text, again);
    tri_options o = {.steps = 4, .source = numbers(70)};
    tri_run *run = tri_open(h, &o);
    assert_true(tri_step(run));
    assert_true(run_lr(run) == 0.125);
    assert_int_equal(tri_close(run), TRI_OK);
    tri_graph_free(g);
    free(text);
    free(again);
}

/* A parameter used twice under two names is one: trained, counted and saved once. */
static void ties(void **state) {
    (void)state;
    tri_graph *g = tri_graph_new(10);
    tri_tensor *y, *p = line(g, &y), *w = tri_find(g, "fc.weight");
    tri_tie(w, "decoder.weight");
    tri_loss(tri_add(tri_mse(p, y), tri_mean(tri_mul(w, w), TRI_ALL)));
    tri_options o = {.steps = 1, .source = numbers(70)};
    tri_run *run = tri_open(g, &o);
    float a[2] = {3, 4}, b[2];
    assert_int_equal(tri_write(run, "decoder.weight", a, sizeof a), TRI_OK);
    assert_int_equal(tri_read(run, "fc.weight", b, sizeof b), TRI_OK);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(run_parameter_elements(run), 3);
    assert_int_equal(tri_close(run), TRI_OK);
}

/* ---- schedules and initial values ---- */

static void schedules(void **state) {
    (void)state;
    const struct {
        const char *text;
        int64_t step;
        double factor;
    } rows[] = {{NULL, 7, 1},
                {"constant:warmup=4", 1, 0.25},
                {"constant:warmup=4", 4, 1},
                {"constant:warmup=4", 5, 1},
                {"step:every=3,factor=0.5", 3, 1},
                {"step:every=3,factor=0.5", 4, 0.5},
                {"step:every=3,factor=0.5", 10, 0.125},
                {"poly:power=2", 1, 1},
                {"poly:power=2", 6, 0.25},
                {"poly:power=1,end=0.1", 6, 0.55},
                {"cosine", 1, 1},
                {"cosine", 6, 0.5},
                {"cosine:end=0.2", 6, 0.6},
                {"cosine:warmup=2", 3, 1}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct schedule s;
        assert_int_equal(schedule_parse(rows[i].text, &s), TRI_OK);
        double rate = schedule_rate(&s, 0.4, rows[i].step, 10);
        if (fabs(rate - 0.4 * rows[i].factor) > 1e-12)
            fail_msg("%s, step %d: %g", rows[i].text, (int)rows[i].step, rate);
    }
    const char *const bad[] = {"cos", "step", "step:every=0", "poly:pow=1", "cosine:end=-1",
                               "constant:warmup=x", "constant:warmup=1.5", "cosine,end=1"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct schedule s;
        assert_int_equal(schedule_parse(bad[i], &s), TRI_USAGE);
        assert_non_null(strstr(tri_message(), bad[i]));
    }
}

static void check_init(tri_init init, double mean, double deviation, double bound) {
    enum { OUT = 200, IN = 50, N = OUT * IN * 9 };
    static float w[N];
    tri_spec spec = {TRI_F32, TRI_SHAPE(OUT, IN, 3, 3)};
    init_draw(&init, 5, "w", &spec, 0, (int64_t)COUNT(w), w);
    double sum = 0, squares = 0, most = 0;
    for (int i = 0; i < N; i++) {
        sum += (double)w[i];
        squares += ((double)w[i] - mean) * ((double)w[i] - mean);
        most = fmax(most, fabs((double)w[i] - mean));
    }
    assert_true(fabs(sum / N - mean) < 5 * deviation / sqrt(N) + 1e-9);
    assert_true(fabs(sqrt(squares / N) - deviation) < 0.01 * deviation + 1e-9);
    assert_true(most <= bound * (1 + 1e-6));
    assert_true(most >= 0.95 * (bound < 4 * deviation ? bound : 3 * deviation));
}

static void initial_values(void **state) {
    (void)state;
    double in = 50 * 9, out = 200 * 9, u = sqrt(3);
    check_init((tri_init){.kind = TRI_CONSTANT, .a = 0.5}, 0.5, 0, 0);
    check_init((tri_init){.kind = TRI_UNIFORM, .a = -1, .b = 3}, 1, 2 / u, 2);
    check_init((tri_init){.kind = TRI_NORMAL, .a = 2, .b = 0.1}, 2, 0.1, 1);
    check_init((tri_init){.kind = TRI_TRUNCATED_NORMAL, .a = 0, .b = 1}, 0, 0.8796, 2);
    check_init((tri_init){.kind = TRI_XAVIER_UNIFORM}, 0, sqrt(2 / (in + out)),
               u * sqrt(2 / (in + out)));
    check_init((tri_init){.kind = TRI_XAVIER_NORMAL, .a = 2}, 0, 2 * sqrt(2 / (in + out)), 1);
    check_init((tri_init){.kind = TRI_HE_UNIFORM}, 0, sqrt(2 / in), u * sqrt(2 / in));
    check_init((tri_init){.kind = TRI_HE_NORMAL}, 0, sqrt(2 / in), 1);
    check_init((tri_init){.kind = TRI_HE_NORMAL_OUT}, 0, sqrt(2 / out), 1);
}

static void order_of_construction_does_not_matter(void **state) {
    (void)state;
    float a[2][4];
    for (int i = 0; i < 2; i++) {
        tri_graph *g = tri_graph_new(1);
        tri_init init = {.kind = TRI_NORMAL, .b = 1};
        if (i) tri_output(tri_param(g, "other", TRI_SHAPE(4), init), "o");
        tri_output(tri_param(g, "w", TRI_SHAPE(4), (tri_init){.kind = TRI_NORMAL, .b = 1}), "y");
        tri_run *run = tri_open(g, &(tri_options){.forward = true, .seed = 9});
        assert_int_equal(tri_read(run, "w", a[i], sizeof a[i]), TRI_OK);
        assert_int_equal(tri_close(run), TRI_OK);
    }
    assert_memory_equal(a[0], a[1], sizeof a[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_and_epochs),
        cmocka_unit_test(batch_of_the_options),
        cmocka_unit_test(many_scalars),
        cmocka_unit_test(rate_of_an_update),
        cmocka_unit_test(failed_sample_ends_the_run),
        cmocka_unit_test(sequential_data),
        cmocka_unit_test(updates_see_the_past),
        cmocka_unit_test(conditions_see_the_past),
        cmocka_unit_test(a_result_line),
        cmocka_unit_test(bad_loss_ends_the_run),
        cmocka_unit_test(overflow_is_skipped),
        cmocka_unit_test(groups),
        cmocka_unit_test(layerwise_rates),
        cmocka_unit_test(ties),
        cmocka_unit_test(patterns_must_match),
        cmocka_unit_test(nothing_to_learn),
        cmocka_unit_test(names_are_unique),
        cmocka_unit_test(batch_is_the_graphs),
        cmocka_unit_test(rate_in_text),
        cmocka_unit_test(schedules),
        cmocka_unit_test(initial_values),
        cmocka_unit_test(order_of_construction_does_not_matter),
    };
    return cmocka_run_group_tests_name("train", tests, make_directory, remove_directory);
}
