/* SPDX-License-Identifier: Apache-2.0
 * Winograd's transform rounds differently from the direct method. By how much: the error of
 * convolutions and both their derivatives against sums in double, and the effect on a training. If
 * the library has no such kernel for this processor, both are the same. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check/trial.h"
#include "dev/dev.h"
#include "ops/op.h"

/* The root mean square of the difference to `want`, relative to that of `want`. */
static double rms_error(const struct values *want, const struct values *got) {
    double error = 0, all = 0;
    for (int64_t i = 0; i < tri_shape_count(&want->spec[0].shape); i++) {
        double d = got->at[0][i] - want->at[0][i];
        error += d * d;
        all += want->at[0][i] * want->at[0][i];
    }
    return sqrt(error / all);
}

static double error_of(const char *op, const char *shapes, bool winograd) {
    char text[256];
    struct example e;
    struct values in = {0}, want = {0}, got = {0};
    snprintf(text, sizeof text, "%s {pad=[1,1]%s}", shapes, winograd ? ", way=1" : "");
    assert_int_equal(example_read(tri_op_find(op), text, &e), TRI_OK);
    e.text = shapes; /* the same numbers for both */
    assert_true(values_draw(&e, &in));
    assert_int_equal(trial_plain(&e, dev_find("ref"), 1, 1, &in, &want), TRI_OK);
    if (trial_plain(&e, dev_find("cpu"), 1, 1, &in, &got)) fail_msg("%s", tri_message());
    double error = rms_error(&want, &got);
    values_free(&in);
    values_free(&want);
    values_free(&got);
    return error;
}

/* Weights with zero mean, values with any sign, as after a norm; deep sums and flat ones. They are
 * too small for Winograd's transform to be chosen by itself. */
static void errors_are_small(void **state) {
    static const struct {
        const char *op, *shapes;
    } cases[] = {
        {"conv2d", "f32[1,32,20,20], f32[32,32,3,3]"},
        {"conv2d", "f32[2,128,14,14], f32[64,128,3,3]"},
        {"conv2d_dx", "f32[1,32,20,20], f32[32,32,3,3], f32[1,32,20,20]"},
        {"conv2d_dx", "f32[2,128,14,14], f32[128,64,3,3], f32[2,64,14,14]"},
        {"conv2d_dw", "f32[1,32,20,20], f32[1,32,20,20], f32[32,32,3,3]"},
        {"conv2d_dw", "f32[2,64,14,14], f32[2,64,14,14], f32[64,64,3,3]"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        double direct = error_of(cases[i].op, cases[i].shapes, false);
        double winograd = error_of(cases[i].op, cases[i].shapes, true);
        printf("%-10s %-50s rms error: direct %.2g, Winograd %.2g\n", cases[i].op,
               cases[i].shapes, direct, winograd);
        assert_true(direct < 1e-6);
        assert_true(winograd < 3e-6);
    }
}

static void train(const char *way, uint64_t seed, double *loss, int steps) {
    tri_options o = {.batch = 16, .lanes = 1, .steps = steps, .seed = seed, .conv = way,
                     .data = "synthetic:size=32", .quiet = true,
                     .optimizer = {.name = "momentum", .lr = 0.02}};
    tri_run *run = tri_open(tri_model_open("resnet18:form=small,width=32,size=16,classes=10", 16),
                            &o);
    if (!run) fail_msg("%s", tri_message());
    for (int i = 0; tri_step(run); i++) loss[i] = tri_value(run, "loss");
    assert_int_equal(tri_close(run), TRI_OK);
}

/* A network learns two batches by heart, with either method: the two curves are much closer to each
 * other than to that of another seed. */
static void trainings_run_alike(void **state) {
    enum { STEPS = 24 };
    double direct[STEPS], winograd[STEPS], other[STEPS];
    double between = 0, seeds = 0;
    (void)state;
    train("direct", 1, direct, STEPS);
    train("auto", 1, winograd, STEPS);
    train("direct", 2, other, STEPS);
    for (int i = 0; i < STEPS; i++) {
        between += fabs(winograd[i] - direct[i]) / STEPS;
        seeds += fabs(other[i] - direct[i]) / STEPS;
    }
    printf("loss %.4f to %.4f; Winograd %.4f; apart by %.2g on average, seeds by %.2g\n",
           direct[0], direct[STEPS - 1], winograd[STEPS - 1], between, seeds);
    assert_true(fabs(winograd[0] - direct[0]) < 1e-4);
    assert_true(between < 0.1 * seeds);
    assert_true(direct[STEPS - 1] < 0.7 * direct[0] && winograd[STEPS - 1] < 0.7 * direct[0]);
}

static double operations(const tri_tensor *t, bool winograd) {
    ((tri_attr *)node_attr(t->node, "way"))->i = winograd;
    return t->node->entry->op->flops(t->node);
}

/* A node counts what it computes: squares of 4x4 places, in part outside, of y or of dx. */
static void operations_are_counted(void **state) {
    (void)state;
    tri_graph *g = tri_graph_new(1);
    tri_tensor *x = tri_state(g, "x", TRI_F32, TRI_SHAPE(2, 32, 10, 13), (tri_init){0});
    tri_tensor *w = tri_state(g, "w", TRI_F32, TRI_SHAPE(48, 32, 3, 3), (tri_init){0});
    tri_tensor *y = tri_conv2d(x, w);
    tri_tensor *dy[] = {y, w, x}, *weight[] = {y, x, w};
    tri_tensor *dx = APPLY_LIKE(y->node, "conv2d_dx", dy);
    tri_tensor *dw = APPLY_LIKE(y->node, "conv2d_dw", weight);
    const tri_tensor *all[] = {y, dx, dw};
    const double places[] = {2 * 2 * 3, 2 * 3 * 4, 2 * 2 * 3};
    assert_int_equal(tri_graph_status(g), TRI_OK);
    for (size_t i = 0; i < COUNT(all); i++) {
        assert_true(operations(all[i], false) == 2.0 * 2 * 8 * 11 * 9 * 32 * 48);
        assert_true(operations(all[i], true) == 2.0 * places[i] * 36 * 32 * 48);
    }
    tri_graph_free(g);
}

static void other_ways_are_refused(void **state) {
    tri_options o = {.conv = "fft", .steps = 1};
    (void)state;
    assert_null(tri_open(tri_model_open("lenet5", 4), &o));
    assert_non_null(strstr(tri_message(), "direct"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_small),
        cmocka_unit_test(trainings_run_alike),
        cmocka_unit_test(operations_are_counted),
        cmocka_unit_test(other_ways_are_refused),
    };
    return cmocka_run_group_tests_name("winograd", tests, NULL, NULL);
}
