/* SPDX-License-Identifier: Apache-2.0
 * Threads: the same bits for any number of them; the same failures; no deadlocks. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dev/dev.h"
#include "run/run.h"

static const int counts[] = {1, 2, 3, 4, 16};

/* The hash of the state after three steps. */
static void train(const char *model, int64_t batch, int64_t lanes, int t, char state[65]) {
    char weights[65];
    tri_options o = {.steps = 3, .lanes = lanes, .threads = t,
                     .optimizer = {.name = "adamw", .clip_norm = 1, .weight_decay = 0.01}};
    tri_run *run = tri_open(tri_model_open(model, batch), &o);
    assert_non_null(run);
    assert_int_equal(run_threads(run), t);
    while (tri_step(run)) continue;
    tri_hash(run, weights, state);
    assert_int_equal(tri_close(run), TRI_OK);
}

static void same_bits(void **state) {
    (void)state;
    static const struct {
        const char *model;
        int64_t batch, lanes;
        bool long_on_ref; /* which has no operators in parts */
    } cases[] = {{"cnn:width=4", 32, 1, false},
                 {"mlp", 33, 4, false},
                 {"lenet5", 32, 1, false},
                 {"lenet5", 14, 7, false},
                 {"cnn", 24, 5, true},
                 {"resnet18:form=small,width=16", 16, 1, true},
                 {"resnet18:form=small,width=8", 15, 4, true}};
    bool ref = !strcmp(dev_at(0)->kind->name, "ref");
    for (size_t i = 0; i < COUNT(cases); i++) {
        char first[65], other[65];
        if (ref && cases[i].long_on_ref) continue;
        train(cases[i].model, cases[i].batch, cases[i].lanes, 1, first);
        for (size_t k = 1; k < COUNT(counts); k++) {
            train(cases[i].model, cases[i].batch, cases[i].lanes, counts[k], other);
            if (strcmp(first, other))
                fail_msg("%s, %d lanes: other bits with %d threads", cases[i].model,
                         (int)cases[i].lanes, counts[k]);
        }
    }
}

/* Outputs per sample are in the samples' order, whichever thread computes them. */
static void rows_in_order(void **state) {
    (void)state;
    float first[11 * 10], logits[11 * 10];
    for (size_t k = 0; k < COUNT(counts); k++) {
        tri_options o = {.steps = 1, .lanes = 4, .threads = counts[k]};
        tri_graph *g = tri_model_open("mlp:hidden=32", 11);
        tri_run *run = tri_open(g, &o);
        assert_non_null(run);
        assert_true(tri_step(run));
        assert_int_equal(tri_read(run, "logits", logits, sizeof logits), TRI_OK);
        if (!k) memcpy(first, logits, sizeof first);
        assert_memory_equal(first, logits, sizeof first);
        assert_int_equal(tri_close(run), TRI_OK);
    }
}

/* Samples 3, 5 and 6 have invalid labels. */
static int bad_labels(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)epoch, (void)seed;
    *(float *)out[0] = (float)index;
    *(int64_t *)out[1] = index == 3 || index == 5 || index == 6 ? 40 + index : 0;
    return 0;
}

static void the_same_failure(void **state) {
    (void)state;
    char first[512] = "";
    for (size_t k = 0; k < COUNT(counts); k++) {
        const tri_field fields[] = {{"x", TRI_F32, TRI_SHAPE(1)}, {"label", TRI_I64, TRI_SCALAR}};
        tri_graph *g = tri_graph_new(8);
        tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(8, 1));
        tri_tensor *label = tri_input(g, "label", TRI_I64, TRI_SHAPE(8));
        tri_loss(tri_cross_entropy(tri_dense(x, "fc", 4), label));
        tri_run *run = tri_open(g, &(tri_options){
                                       .steps = 2, .lanes = 8, .threads = counts[k],
                                       .no_shuffle = true,
                                       .source = tri_data_new("bad", 8, fields, 2, bad_labels,
                                                              NULL, false)});
        assert_non_null(run);
        assert_false(tri_step(run));
        assert_int_equal(tri_run_status(run), TRI_FAILED);
        if (!k) snprintf(first, sizeof first, "%s", tri_message());
        assert_non_null(strstr(first, "43"));
        assert_string_equal(first, tri_message());
        tri_close(run);
    }
}

static atomic_int calls[16];
static void count(void *arg, int thread) {
    (void)arg;
    atomic_fetch_add(&calls[thread], 1);
}

static void several_threads(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(counts); k++) {
        struct team *team;
        memset(calls, 0, sizeof calls);
        assert_int_equal(team_make(counts[k], &team), TRI_OK);
        assert_int_equal(team_threads(team), counts[k]);
        for (int i = 0; i < 200; i++) team_run(team, count, NULL);
        for (int t = 0; t < counts[k]; t++) assert_int_equal(calls[t], 200);
        team_free(team);
    }
}

static void refusals(void **state) {
    (void)state;
    assert_null(tri_open(tri_model_open("linear", 4), &(tri_options){.threads = -1}));
    assert_non_null(strstr(tri_message(), "threads is -1"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_threads),  cmocka_unit_test(refusals),
        cmocka_unit_test(same_bits),        cmocka_unit_test(rows_in_order),
        cmocka_unit_test(the_same_failure),
    };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
