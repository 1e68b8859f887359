/* SPDX-License-Identifier: Apache-2.0
 * The rest of an epoch as a step with samples that do not count; callbacks every few steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs these headers */
#include <cmocka.h>

#include <math.h>

#include "data/data.h"
#include "unit/scratch.h"

#define FEATURES 5
#define CLASSES 4
#define WEIGHTS (FEATURES * CLASSES)
#define ALL (WEIGHTS + CLASSES) /* with the bias */

/* ---- data and networks ---- */

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user;
    (void)epoch;
    (void)seed;
    for (int i = 0; i < FEATURES; i++)
        ((float *)out[0])[i] = (float)((index * 7 + i * 13) % 11) / 5 - 1;
    *(int64_t *)out[1] = (index * index + 1) % CLASSES;
    return 0;
}

static tri_data *samples(int64_t n) {
    const tri_field fields[] = {{"x", TRI_F32, TRI_SHAPE(FEATURES)}, {"label", TRI_I64, {0}}};
    return tri_data_new("samples", n, fields, 2, fill, NULL, false);
}

typedef void loss(tri_tensor *logits, tri_tensor *label);

static tri_graph *network(int64_t batch, loss *end) {
    tri_graph *g = tri_graph_new(batch);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(batch, FEATURES));
    tri_tensor *label = tri_input(g, "label", TRI_I64, TRI_SHAPE(batch), .below = CLASSES);
    end(tri_dense(x, "fc", CLASSES), label);
    return g;
}

static void ignoring(tri_tensor *logits, tri_tensor *label) {
    tri_loss(tri_cross_entropy(logits, label, .ignore = true, .ignore_index = -100));
}

/* The labels in another order, and the term of the weights in the loss. */
static void ignoring_moved(tri_tensor *logits, tri_tensor *label) {
    tri_graph *g = tri_graph_of(label);
    tri_tensor *moved = tri_reshape(label, TRI_SHAPE(tri_batch(g)));
    tri_tensor *w = tri_find(g, "fc.weight"),
               *penalty = tri_scale(tri_mean(tri_mul(w, w), TRI_ALL), 0.1);
    tri_loss(
        tri_add(tri_cross_entropy(logits, moved, .ignore = true, .ignore_index = -100), penalty));
}

static void plain(tri_tensor *logits, tri_tensor *label) {
    tri_loss(tri_cross_entropy(logits, label));
}

static void other_label(tri_tensor *logits, tri_tensor *label) {
    tri_loss(tri_cross_entropy(logits, label, .ignore = true, .ignore_index = 2));
}

static void mean_of_all(tri_tensor *logits, tri_tensor *label) {
    tri_loss(tri_mean(tri_cross_entropy(logits, label, .reduction = TRI_NONE, .ignore = true,
                                        .ignore_index = -100),
                      TRI_ALL));
}

static void with_another(tri_tensor *logits, tri_tensor *label) {
    tri_loss(tri_add(tri_cross_entropy(logits, label, .ignore = true, .ignore_index = -100),
                     tri_scale(tri_mean(tri_mul(logits, logits), TRI_ALL), 0.1)));
}

/* ---- padding ---- */

static void train(loss *end, tri_options o, float w[WEIGHTS], double *last) {
    o.optimizer.lr = 0.5;
    o.data_threads = -1;
    tri_run *run = tri_open(network(o.batch, end), &o);
    assert_non_null(run);
    while (tri_step(run)) continue;
    *last = tri_value(run, "loss");
    assert_int_equal(tri_read(run, "fc.weight", w, WEIGHTS * sizeof *w), TRI_OK);
    assert_int_equal(tri_close(run), TRI_OK);
}

/* A step of 12 samples and some that do not count gives the same as a step of 12, however it is
 * divided. */
static void does_not_count(void **state) {
    (void)state;
    loss *const ends[] = {ignoring, ignoring_moved};
    for (size_t k = 0; k < COUNT(ends); k++) {
        float right[WEIGHTS], w[WEIGHTS];
        double right_loss, last;
        train(ends[k],
              (tri_options){
                  .batch = 12, .lanes = 1, .epochs = 3, .source = samples(12), .no_shuffle = true},
              right, &right_loss);
        for (int64_t batch = 13; batch < 40; batch += 4)
            for (int64_t lanes = 1; lanes <= 4; lanes++) {
                train(ends[k],
                      (tri_options){.batch = batch,
                                    .lanes = lanes,
                                    .epochs = 3,
                                    .source = samples(12),
                                    .tail = "pad"},
                      w, &last);
                for (int i = 0; i < WEIGHTS; i++) assert_true(fabsf(w[i] - right[i]) < 1e-5F);
                assert_true(fabs(last - right_loss) < 1e-5);
            }
    }
}

/* 20 samples in steps of 8: three steps per epoch, each sample once; the weighted means of the
 * steps give the mean of all. */
static void every_sample_once(void **state) {
    (void)state;
    float w[WEIGHTS];
    double whole, sum = 0;
    const double count[] = {8, 8, 4};
    train(ignoring, (tri_options){.batch = 20, .lanes = 1, .steps = 1, .source = samples(20)}, w,
          &whole);
    tri_options o = {.batch = 8,
                     .lanes = 2,
                     .epochs = 1,
                     .source = samples(20),
                     .tail = "pad",
                     .optimizer.lr = 1e-30};
    tri_run *run = tri_open(network(8, ignoring), &o);
    assert_int_equal(tri_step_total(run), 3);
    for (int i = 0; tri_step(run); i++) sum += count[i] * tri_value(run, "loss");
    assert_int_equal(tri_close(run), TRI_OK);
    assert_true(fabs(sum / 20 - whole) < 1e-6);
}

static void refuses(void **state) {
    (void)state;
    static const struct {
        loss *end;
        const char *message;
    } cases[] = {{plain, "--tail pad: cross_entropy counts every sample"},
                 {other_label, "--tail pad: cross_entropy counts every sample"},
                 {mean_of_all, "--tail pad: mean counts every sample"},
                 {with_another, "counts every sample, and none can be left out"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        tri_options o = {.batch = 8, .source = samples(20), .tail = "pad"};
        assert_null(tri_open(network(8, cases[i].end), &o));
        assert_message(cases[i].message);
    }
    tri_options o = {.batch = 8, .source = samples(20), .tail = "cut"};
    assert_null(tri_open(network(8, ignoring), &o));
    assert_message("it can be drop, keep or pad");
}

/* ---- a smaller last step ---- */

static tri_data *some_of(int64_t first, int64_t n) { return tri_data_take(samples(20), first, n); }

static void steps_of(tri_options o, int64_t batch, int steps, const float *from, float to[ALL],
                     double *last) {
    o.optimizer.lr = 0.5;
    o.batch = batch;
    o.no_shuffle = true;
    tri_run *run = tri_open(network(batch, plain), &o);
    assert_non_null(run);
    if (from) assert_int_equal(tri_write(run, "fc.weight", from, WEIGHTS * sizeof *from), TRI_OK);
    if (from)
        assert_int_equal(tri_write(run, "fc.bias", from + WEIGHTS, CLASSES * sizeof *from), TRI_OK);
    for (int i = 0; i < steps; i++) assert_true(tri_step(run));
    *last = tri_value(run, "loss");
    assert_int_equal(tri_read(run, "fc.weight", to, WEIGHTS * sizeof *to), TRI_OK);
    assert_int_equal(tri_read(run, "fc.bias", to + WEIGHTS, CLASSES * sizeof *to), TRI_OK);
    assert_int_equal(tri_close(run), TRI_OK);
}

/* 20 samples in steps of 8, the last one of 4: to the bit the same as single steps of 8, 8 and 4,
 * in lanes of at most as many samples. */
static void keeps_the_rest(void **state) {
    (void)state;
    const int64_t lanes[][2] = {{1, 1}, {2, 1}, {4, 2}, {8, 4}};
    for (size_t i = 0; i < COUNT(lanes); i++)
        for (int64_t threads = 1; threads <= 3; threads += 2) {
            float parts[ALL], whole[ALL];
            double of_part, last;
            tri_options some = {
                .lanes = lanes[i][0], .threads = threads, .steps = 2, .source = some_of(0, 16)};
            steps_of(some, 8, 2, NULL, parts, &of_part);
            tri_options rest = {
                .lanes = lanes[i][1], .threads = threads, .steps = 1, .source = some_of(16, 4)};
            steps_of(rest, 4, 1, parts, parts, &of_part);
            tri_options all = {.lanes = lanes[i][0],
                               .threads = threads,
                               .epochs = 1,
                               .source = samples(20),
                               .tail = "keep"};
            steps_of(all, 8, 3, NULL, whole, &last);
            assert_memory_equal(parts, whole, sizeof whole);
            assert_true(last == of_part);
        }
}

static void with_logits(tri_tensor *logits, tri_tensor *label) {
    tri_output(logits, "logits");
    plain(logits, label);
}

static void composed(tri_tensor *logits, tri_tensor *label) {
    tri_tensor *loss_of = tri_cross_entropy(logits, label);
    tri_loss(loss_of);
    tri_minimize(loss_of, (tri_optimizer){.lr = 0.1});
}

/* Five epochs of both shapes; outputs per sample have the step's size. */
static void keeps_on(void **state) {
    (void)state;
    tri_graph *g = network(8, with_logits);
    tri_options o = {.lanes = 4, .epochs = 5, .source = samples(20), .tail = "keep", .batch = 8};
    tri_run *run = tri_open(g, &o);
    assert_non_null(run);
    assert_int_equal(tri_step_total(run), 15);
    for (int i = 1; tri_step(run); i++) {
        float logits[8 * CLASSES];
        size_t rows = i % 3 ? 8 : 4;
        assert_int_equal(tri_epoch(run), (i - 1) / 3);
        assert_int_equal(tri_read(run, "logits", logits, sizeof logits),
                         rows == 8 ? TRI_OK : TRI_USAGE);
        assert_int_equal(tri_read(run, "logits", logits, rows * CLASSES * sizeof *logits), TRI_OK);
    }
    assert_int_equal(tri_close(run), TRI_OK);
}

/* Steps that a user composes have one size. */
static void refuses_to_keep(void **state) {
    (void)state;
    tri_graph *g = network(8, composed);
    tri_options o = {.batch = 8, .source = samples(20), .tail = "keep"};
    assert_null(tri_open(g, &o));
    assert_message("a step of 4 samples, the last of an epoch (--tail keep): the network was built "
                   "with its gradients");
}

/* ---- callbacks ---- */

struct calls {
    int n, epochs;
    int64_t step[16];
};

static int note(tri_run *run, void *user) {
    struct calls *c = user;
    c->step[c->n++ % 16] = tri_step_number(run);
    return 0;
}

static int note_epoch(tri_run *run, void *user) {
    (void)run;
    ((struct calls *)user)->epochs++;
    return 0;
}

static void every_few_steps(void **state) {
    (void)state;
    static const struct {
        int64_t every;
        int n;
        int64_t step[8];
    } cases[] = {{0, 7, {1, 2, 3, 4, 5, 6, 7}}, {3, 3, {3, 6, 7}}, {7, 1, {7}}, {100, 1, {7}}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct calls c = {0};
        tri_options o = {.batch = 8,
                         .steps = 7,
                         .source = samples(16),
                         .sink_size = cases[i].every,
                         .quiet = true};
        const tri_callback *list = TRI_CALLBACKS({.step = note, .epoch = note_epoch, .user = &c});
        assert_int_equal(tri_train(network(8, plain), &o, list), TRI_OK);
        assert_int_equal(c.n, cases[i].n);
        assert_int_equal(c.epochs, 3);
        for (int k = 0; k < c.n; k++) assert_int_equal(c.step[k], cases[i].step[k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(does_not_count),
        cmocka_unit_test(every_sample_once),
        cmocka_unit_test(refuses),
        cmocka_unit_test(keeps_the_rest),
        cmocka_unit_test(keeps_on),
        cmocka_unit_test(refuses_to_keep),
        cmocka_unit_test(every_few_steps),
    };
    return cmocka_run_group_tests_name("tail", tests, make_directory, remove_directory);
}
