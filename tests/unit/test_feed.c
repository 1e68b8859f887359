/* SPDX-License-Identifier: Apache-2.0
 * A program's own loop that feeds each batch (.data = "feed") and sets a learning rate. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sched.h>
#include <string.h>

#include <cmocka.h>

#include <trireme.h>

#include "run/checkpointer.h"
#include "run/run.h"
#include "unit/scratch.h"

#define BATCH 8
#define STEPS 12

struct rows {
    float x[BATCH][2];
    int64_t y[BATCH];
};

static void sample(int64_t index, float x[2], int64_t *y) {
    x[0] = (float)(index % 7) - 3;
    x[1] = (float)(index % 5) - 2;
    *y = x[0] + x[1] > 0;
}

/* The batch of the step after `done` steps. */
static struct rows batch(int64_t done) {
    struct rows r;
    for (int64_t i = 0; i < BATCH; i++) sample(done * BATCH + i, r.x[i], &r.y[i]);
    return r;
}

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)epoch, (void)seed;
    sample(index, out[0], out[1]);
    return 0;
}

static const tri_field fields[] = {{"x", TRI_F32, {1, {2}}}, {"y", TRI_I64, {0, {0}}}};

static tri_data *numbers(void) {
    return tri_data_new("numbers", BATCH * STEPS, fields, 2, fill, NULL, false);
}

static tri_graph *network(void) {
    tri_graph *g = tri_graph_new(BATCH);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(BATCH, 2));
    tri_tensor *y = tri_input(g, "y", TRI_I64, TRI_SHAPE(BATCH), .below = 2);
    tri_loss(tri_cross_entropy(tri_dense(x, "fc", 2), y));
    return g;
}

static tri_graph *with_spare(void) {
    tri_graph *g = network();
    tri_input(g, "spare", TRI_F32, TRI_SHAPE(BATCH, 3));
    return g;
}

static tri_status feed(tri_run *run) {
    struct rows r = batch(tri_step_number(run));
    tri_status status = tri_feed(run, "x", r.x, sizeof r.x);
    return status ? status : tri_feed(run, "y", r.y, sizeof r.y);
}

struct hashes {
    char weights[65], state[65];
};

static struct hashes hash(const tri_run *run) {
    struct hashes h;
    tri_hash(run, h.weights, h.state);
    return h;
}

static void same(struct hashes a, struct hashes b) {
    assert_string_equal(a.weights, b.weights);
    assert_string_equal(a.state, b.state);
}

/* ---- feeding ---- */

/* The same as reading these samples in order from a source, for any number of lanes. */
static void same_as_a_source(void **state) {
    (void)state;
    for (int64_t lanes = 1; lanes <= 4; lanes += 3) {
        tri_options o = {.source = numbers(), .no_shuffle = true, .epochs = 1, .lanes = lanes,
                         .threads = 2};
        tri_run *run = tri_open(network(), &o);
        while (tri_step(run)) {}
        struct hashes want = hash(run);
        assert_int_equal(tri_step_number(run), STEPS);
        assert_int_equal(tri_close(run), TRI_OK);
        o = (tri_options){.data = "feed", .steps = STEPS, .lanes = lanes, .threads = 2};
        run = tri_open(network(), &o);
        assert_non_null(run);
        do assert_int_equal(feed(run), TRI_OK);
        while (tri_step(run));
        same(hash(run), want);
        assert_int_equal(tri_step_number(run), STEPS);
        assert_int_equal(tri_close(run), TRI_OK);
    }
}

static tri_run *open_fed(void) {
    tri_run *run = tri_open(with_spare(), &(tri_options){.data = "feed", .steps = STEPS});
    assert_non_null(run);
    return run;
}

static void each_input_each_step(void **state) {
    (void)state;
    struct rows r = batch(0);
    tri_run *run = open_fed();
    assert_false(tri_step(run));
    assert_int_equal(tri_run_status(run), TRI_USAGE);
    assert_message("step 1: input \"x\" has not been fed");
    assert_int_equal(tri_close(run), TRI_USAGE);

    run = open_fed();
    assert_int_equal(feed(run), TRI_OK);
    assert_true(tri_step(run));
    assert_int_equal(tri_feed(run, "x", r.x, sizeof r.x), TRI_OK);
    assert_false(tri_step(run));
    assert_int_equal(tri_run_status(run), TRI_USAGE);
    assert_message("step 2: input \"y\" has not been fed");
    assert_int_equal(tri_step_number(run), 1);
    assert_int_equal(tri_close(run), TRI_USAGE);
}

static void mistakes(void **state) {
    (void)state;
    struct rows r = batch(0);
    float spare[BATCH][3] = {{0}};
    tri_run *run = open_fed();
    assert_int_equal(tri_feed(run, "z", r.x, sizeof r.x), TRI_USAGE);
    assert_message("no input \"z\"");
    assert_int_equal(tri_feed(run, "spare", spare, sizeof spare), TRI_USAGE);
    assert_message("input \"spare\" is unused");
    assert_int_equal(tri_feed(run, "x", r.x, sizeof r.x - 4), TRI_USAGE);
    assert_message("60");
    assert_int_equal(tri_feed(run, "x", NULL, sizeof r.x), TRI_USAGE);
    assert_int_equal(feed(run), TRI_OK); /* a call that fails has no effect */
    assert_true(tri_step(run));

    r.y[5] = 2;
    assert_int_equal(tri_feed(run, "x", r.x, sizeof r.x), TRI_OK);
    assert_int_equal(tri_feed(run, "y", r.y, sizeof r.y), TRI_OK);
    assert_false(tri_step(run));
    assert_int_equal(tri_run_status(run), TRI_FAILED);
    assert_message("step 2, sample 5: \"y\" is 2, but the network takes 0 to 1");
    assert_int_equal(tri_close(run), TRI_FAILED);
}

/* An input that no result needs is not part of a forward run either. */
static void forward(void **state) {
    (void)state;
    const float x[BATCH][2] = {{0}};
    float spare[BATCH][3] = {{0}};
    tri_run *run = tri_open(with_spare(), &(tri_options){.forward = true});
    assert_non_null(run);
    assert_int_equal(tri_feed(run, "x", x, sizeof x), TRI_OK);
    assert_int_equal(tri_feed(run, "spare", spare, sizeof spare), TRI_USAGE);
    assert_message("input \"spare\" is unused");
    assert_int_equal(tri_close(run), TRI_OK);
}

static void other_data(void **state) {
    (void)state;
    struct rows r = batch(0);
    tri_run *run = tri_open(network(), &(tri_options){.source = numbers(), .steps = 2});
    assert_int_equal(tri_feed(run, "x", r.x, sizeof r.x), TRI_USAGE);
    assert_message("data numbers");
    assert_message("\"feed\"");
    assert_true(tri_step(run));
    assert_int_equal(tri_close(run), TRI_OK);
    assert_null(tri_open(with_spare(), &(tri_options){.source = numbers(), .steps = 2}));
    assert_message("\"spare\"");
    assert_message("unused");
}

static tri_graph *with_shorter(void) {
    tri_graph *g = network();
    tri_shorter(g, 1, network());
    return g;
}

static tri_graph *without_inputs(void) {
    tri_graph *g = tri_graph_new(BATCH);
    tri_tensor *w = tri_param(g, "w", TRI_SHAPE(2), (tri_init){TRI_NORMAL, 0, 1});
    tri_loss(tri_sum(tri_mul(w, w), TRI_ALL));
    return g;
}

static void refused(void **state) {
    (void)state;
    static const struct {
        tri_options o;
        const char *words;
        tri_graph *(*network)(void);
    } rows[] = {
        {{0}, "steps", NULL},
        {{.epochs = 2}, "epochs", NULL},
        {{.steps = 2, .sampler = "sequential"}, "--sampler", NULL},
        {{.steps = 2, .subset = "0:8"}, "--subset", NULL},
        {{.steps = 2, .share = "0/2"}, "--share", NULL},
        {{.steps = 2, .tail = "keep"}, "--tail", NULL},
        {{.steps = 2, .tail = "keep"}, "--tail", NULL},
        {{.steps = 2, .tail = "pad"}, "--tail", NULL},
        {{.steps = 2, .tokenizer = "gpt2:/none"}, "--tokenizer", NULL},
        {{.steps = 2, .data_threads = 2}, "--data-threads", NULL},
        {{.steps = 2, .eval_data = "feed"}, "'feed'", NULL},
        {{.steps = 2, .eval_data = "synthetic", .early_stop = 1}, "--early-stop", NULL},
        {{.steps = 2}, "tri_shorter", with_shorter},
        {{.steps = 2}, "no inputs", without_inputs},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        tri_options o = rows[i].o;
        o.data = "feed";
        assert_null(tri_open((rows[i].network ? rows[i].network : network)(), &o));
        assert_message(rows[i].words);
        assert_message("feed");
    }
    tri_options o = {.data = "feed", .steps = 2, .quiet = true, .source = numbers()};
    assert_null(tri_open(network(), &o));
    assert_message("tri_options.source");
    o.source = NULL;
    assert_int_equal(tri_train(network(), &o, NULL), TRI_USAGE);
    assert_message("tri_train");
    assert_null(tri_data_open("feed", NULL, 1));
    assert_message("tri_feed");
}

/* ---- the rate ---- */

static tri_run *open_numbers(const tri_options *more) {
    tri_options o = *more;
    o.source = numbers();
    o.no_shuffle = true;
    tri_run *run = tri_open(network(), &o);
    if (!run) fail_msg("%s", tri_message());
    return run;
}

static struct hashes end(tri_run *run) {
    while (tri_step(run)) {}
    struct hashes h = hash(run);
    assert_int_equal(tri_close(run), TRI_OK);
    return h;
}

static void replaces_the_schedule(void **state) {
    (void)state;
    const tri_options plain = {.steps = STEPS, .optimizer = {.name = "adam", .lr = 0.125}};
    tri_options cosine = plain;
    cosine.optimizer.lr = 0.5;
    cosine.optimizer.schedule = "cosine:end=0";
    tri_run *run = open_numbers(&cosine);
    tri_set_scalar(run, "lr", 0.125);
    same(end(run), end(open_numbers(&plain)));

    run = open_numbers(&cosine); /* for one step, then back */
    tri_set_scalar(run, "lr", 0.125);
    assert_true(tri_step(run));
    tri_set_scalar(run, "lr", NAN);
    tri_run *other = open_numbers(&cosine);
    for (int i = 0; i < 2; i++) assert_true(tri_step(other));
    double second = run_lr(other);
    tri_close(other);
    assert_true(run_lr(run) == 0.125);
    assert_true(tri_step(run));
    assert_true(run_lr(run) == second && second < 0.5);
    assert_int_equal(tri_close(run), TRI_OK);

    run = open_numbers(&cosine);
    tri_set_scalar(run, "lr", NAN);
    same(end(run), end(open_numbers(&cosine)));
}

static void refused_scalars(void **state) {
    (void)state;
    const struct {
        const char *name;
        double value;
        const char *words;
    } rows[] = {{"step", 3, "\"step\""}, {"lanes", 3, "\"lanes\""}, {"lr", INFINITY, "inf"},
                {"lr", -0.1, "-0.1"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        tri_run *run = open_numbers(&(tri_options){.steps = 1, .optimizer.gradients_sum = true});
        tri_set_scalar(run, rows[i].name, rows[i].value);
        assert_int_equal(tri_run_status(run), TRI_USAGE);
        assert_message(rows[i].words);
        assert_int_equal(tri_close(run), TRI_USAGE);
    }
}

/* ---- resuming ---- */

/* Fed, with its own rate from step 3 on, which a run that resumes after step 6 still has. */
static struct hashes part(int64_t until, const char *ckpt, bool back) {
    const tri_options o = {
        .data = "feed",
        .steps = STEPS,
        .ckpt = ckpt,
        .resume = ckpt,
        .quiet = true,
        .optimizer = {.name = "momentum", .lr = 0.25, .schedule = "poly:power=1,end=0"}};
    tri_run *run = tri_open(network(), &o);
    assert_non_null(run);
    while (tri_step_number(run) < until) {
        int64_t n = tri_step_number(run);
        if (n == 3) tri_set_scalar(run, "lr", 0.015625);
        if (n == 5 && back) tri_set_scalar(run, "lr", NAN);
        assert_int_equal(feed(run), TRI_OK);
        assert_true(tri_step(run));
    }
    struct hashes h = hash(run);
    assert_int_equal(tri_close(run), TRI_OK);
    return h;
}

static void resumes(void **state) {
    (void)state;
    struct hashes all[2];
    for (int back = 0; back < 2; back++) {
        const char *ckpt = at(back ? "back" : "stays");
        part(6, ckpt, back);
        all[back] = part(STEPS, ckpt, back);
        same(all[back], part(STEPS, NULL, back));
    }
    assert_string_not_equal(all[0].weights, all[1].weights);
}

static bool is_written(struct checkpointer *c) {
    pthread_mutex_lock(&c->late);
    bool is = c->finished;
    pthread_mutex_unlock(&c->late);
    return is;
}

/* The rate is set after step 4, whose checkpoint is being written or complete. In
 * between, the run goes on for a step, or is closed. Another goes on from that checkpoint. */
static void keeps_what_is_set_after_the_step(void **state) {
    (void)state;
    struct hashes wanted = {"", ""};
    for (int way = 0; way < 4; way++) {
        bool sets = way > 0, complete = way > 1, steps = way > 2;
        char ckpt[4096], copy[4096], command[12400];
        tri_options o = {.data = "feed", .steps = 8, .quiet = true,
                         .optimizer = {.name = "momentum", .lr = 0.25}};
        strcpy(ckpt, at(way == 1 ? "closed" : way == 2 ? "complete" : "stepped"));
        strcpy(copy, at("copy"));
        snprintf(command, sizeof command, "rm -rf %s; cp -r %s %s", copy, ckpt, copy);
        if (sets) o.ckpt = ckpt, o.save_every = 4;
        tri_run *run = tri_open(network(), &o);
        assert_non_null(run);
        for (int i = 0; i < 4; i++) assert_true(!feed(run) && tri_step(run));
        while (complete && !is_written(run->checkpointer)) sched_yield();
        tri_set_scalar(run, "lr", 0.015625);
        if (steps) assert_true(!feed(run) && tri_step(run));
        if (steps) assert_int_equal(system(command), 0);
        if (sets) {
            assert_int_equal(tri_close(run), TRI_OK);
            o.resume = true;
            o.ckpt = steps ? copy : ckpt;
            assert_non_null(run = tri_open(network(), &o));
            assert_int_equal(tri_step_number(run), 4);
        }
        while (tri_step_number(run) < 8) assert_true(!feed(run) && tri_step(run));
        struct hashes h = hash(run);
        assert_int_equal(tri_close(run), TRI_OK);
        if (sets) same(wanted, h);
        wanted = h;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_a_source),
        cmocka_unit_test(each_input_each_step),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(forward),
        cmocka_unit_test(other_data),
        cmocka_unit_test(refused),
        cmocka_unit_test(replaces_the_schedule),
        cmocka_unit_test(refused_scalars),
        cmocka_unit_test(resumes),
        cmocka_unit_test(keeps_what_is_set_after_the_step),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
