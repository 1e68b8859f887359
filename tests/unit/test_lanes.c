/* SPDX-License-Identifier: Apache-2.0
 * Lanes: the same training for any number of them, except for rounding; exact means; refusals. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "run/run.h"
#include "plan/rebatch.h"

/* Samples that depend only on the index: x of 3 x 8 x 8, a label of 4 classes or -100, and y. */
static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)epoch, (void)seed;
    for (int64_t i = 0; i < 192; i++)
        ((float *)out[0])[i] = (float)random_normal(1, (uint64_t)index, (uint64_t)i);
    *(int64_t *)out[1] = index % 3 == 1 ? -100 : index % 4;
    *(float *)out[2] = (float)random_normal(2, (uint64_t)index, 0);
    return 0;
}

static tri_data *samples(int64_t n) {
    const tri_field fields[] = {{"x", TRI_F32, TRI_SHAPE(3, 8, 8)},
                                {"label", TRI_I64, TRI_SCALAR},
                                {"y", TRI_F32, TRI_SCALAR}};
    return tri_data_new("samples", n, fields, 3, fill, NULL, false);
}

struct net {
    tri_tensor *x, *label, *y;
    tri_graph *g;
};

static struct net begin(int64_t batch) {
    struct net n = {.g = tri_graph_new(batch)};
    n.x = tri_input(n.g, "x", TRI_F32, TRI_SHAPE(batch, 3, 8, 8));
    n.label = tri_input(n.g, "label", TRI_I64, TRI_SHAPE(batch), .below = 4);
    n.y = tri_input(n.g, "y", TRI_F32, TRI_SHAPE(batch));
    return n;
}

static tri_tensor *convolutions(struct net *n, bool norm, double drop) {
    tri_tensor *h = tri_conv(n->x, "conv1", 6, 3, .pad = 1);
    if (norm) h = tri_bn(h, "bn1");
    h = tri_max_pool(tri_relu(h), .size = 2);
    h = tri_flatten(h, 1);
    if (drop > 0) h = tri_dropout(h, drop);
    return tri_dense(tri_gelu(tri_dense(h, "fc1", 16)), "fc2", 4);
}

static void plain(struct net *n) {
    tri_tensor *logits = convolutions(n, false, 0);
    tri_output(logits, "logits");
    tri_metric(tri_accuracy(logits, n->label, 1), "top1");
    tri_loss(tri_cross_entropy(logits, n->label, .ignore = true, .ignore_index = -100));
}

/* Two losses with their own divisors, a penalty on weights, dropout. */
static void several(struct net *n) {
    tri_tensor *logits = convolutions(n, false, 0.3);
    tri_tensor *value = tri_reshape(tri_slice(logits, 1, 0, 1), TRI_SHAPE(tri_batch(n->g)));
    tri_tensor *w = tri_find(n->g, "fc1.weight");
    tri_tensor *penalty = tri_scale(tri_sum(tri_mul(w, w), TRI_ALL), 1e-3);
    tri_tensor *ce = tri_cross_entropy(logits, n->label, .ignore = true, .ignore_index = -100,
                                       .smoothing = 0.1);
    tri_metric(ce, "ce");
    tri_loss(tri_add(tri_add(ce, tri_huber(value, n->y)), penalty));
}

/* One weight for all places of a sequence, samples first or places first. */
static void sequence(struct net *n, bool places_first) {
    int64_t b = tri_batch(n->g);
    tri_tensor *h = tri_reshape(n->x, TRI_SHAPE(b, 2, 96));
    if (places_first) h = tri_transpose(h, TRI_SHAPE(1, 0, 2));
    tri_init normal = {TRI_NORMAL, 0, 0.1};
    tri_tensor *w = tri_param(n->g, "fc1.weight", TRI_SHAPE(16, 96), normal);
    h = tri_gelu(tri_matmul(h, w, .trans_b = true));
    if (places_first) h = tri_transpose(h, TRI_SHAPE(1, 0, 2));
    tri_loss(tri_mean(tri_dense(tri_flatten(h, 1), "fc2", 1), TRI_ALL));
}
static void samples_first(struct net *n) { sequence(n, false); }
static void places_first(struct net *n) { sequence(n, true); }

static tri_run *open_net(void (*network)(struct net *), int64_t batch, tri_options o) {
    struct net n = begin(batch);
    network(&n);
    o.source = samples(10 * batch);
    tri_run *run = tri_open(n.g, &o);
    if (!run) print_message("%s\n", tri_message());
    return run;
}

static void read_all(const tri_run *run, const char *name, float *to, size_t n) {
    assert_int_equal(tri_read(run, name, to, n * sizeof *to), TRI_OK);
}

static void close_to(const float *a, const float *b, size_t n, double tolerance) {
    double scale = 0;
    for (size_t i = 0; i < n; i++) /* gcc 12 for ARM fails with fmax here */
        if (fabs((double)a[i]) > scale) scale = fabs((double)a[i]);
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= tolerance * (scale + 1e-3)))
            fail_msg("element %zu is %g, not %g", i, (double)b[i], (double)a[i]);
}

static void same_training(void (*network)(struct net *), tri_options o) {
    enum { BATCH = 11, W = 16 * 96 };
    static float one[W], other[W];
    double loss = 0;
    const int64_t lanes[] = {1, 2, 3, 4, 7, 11};
    for (size_t i = 0; i < COUNT(lanes); i++) {
        o.lanes = lanes[i];
        o.steps = 4;
        tri_run *run = open_net(network, BATCH, o);
        assert_non_null(run);
        while (tri_step(run)) continue;
        assert_int_equal(run_lanes(run), lanes[i]);
        read_all(run, "fc1.weight", i ? other : one, W);
        if (!i) loss = tri_value(run, "loss");
        assert_true(fabs(tri_value(run, "loss") - loss) < 1e-5 * (1 + loss));
        if (i) close_to(one, other, W, 2e-5);
        assert_int_equal(tri_close(run), TRI_OK);
    }
}

static void same_for_any_lanes(void **state) {
    (void)state;
    same_training(plain, (tri_options){.optimizer = {.name = "momentum", .lr = 0.05}});
    same_training(plain, (tri_options){.optimizer = {.name = "adamw", .lr = 0.01,
                                                     .weight_decay = 0.1, .clip_norm = 0.2}});
    same_training(several, (tri_options){.optimizer = {.name = "nesterov", .lr = 0.05,
                                                       .clip_norm = 1}});
    same_training(several, (tri_options){.device = "ref", .optimizer = {.lr = 0.05}});
    same_training(samples_first, (tri_options){.optimizer = {.lr = 0.05}});
    same_training(places_first, (tri_options){.optimizer = {.lr = 0.05}});
}

/* Tensors that are split over the samples are assembled from the lanes. */
static void outputs_are_gathered(void **state) {
    (void)state;
    float whole[44], parts[44];
    for (int64_t lanes = 1; lanes <= 5; lanes += 4) {
        tri_run *run = open_net(plain, 11, (tri_options){.lanes = lanes, .steps = 1});
        assert_true(tri_step(run));
        read_all(run, "logits", lanes == 1 ? whole : parts, 44);
        assert_int_equal(tri_close(run), TRI_OK);
    }
    close_to(whole, parts, 44, 1e-6);
}

static void normed_in(struct net *n, int64_t groups) {
    tri_tensor *y = tri_bn(n->x, "bn", .groups = groups);
    tri_output(tri_node_out(tri_node_of(y), 1), "mean");
    tri_loss(tri_mean(tri_dense(tri_flatten(y, 1), "fc", 1), TRI_ALL));
}
static void normed_whole(struct net *n) { normed_in(n, 4); }
static void normed_by_lane(struct net *n) { normed_in(n, 1); }

/* So are tensors with a row for each group of samples: four lanes are four groups. */
static void rows_of_groups_are_gathered(void **state) {
    (void)state;
    float whole[12], parts[12];
    for (int64_t lanes = 1; lanes <= 4; lanes += 3) {
        tri_run *run = open_net(lanes == 1 ? normed_whole : normed_by_lane, 64,
                                (tri_options){.lanes = lanes, .steps = 1});
        assert_true(tri_step(run));
        read_all(run, "mean", lanes == 1 ? whole : parts, 12);
        assert_int_equal(tri_close(run), TRI_OK);
    }
    close_to(whole, parts, 12, 1e-5);
}

static void dropped(struct net *n) {
    tri_tensor *y = tri_dropout(n->x, 0.4);
    tri_output(y, "dropped");
    tri_loss(tri_mean(tri_mul(y, tri_param(n->g, "w", TRI_SHAPE(8), (tri_init){.a = 1})), TRI_ALL));
}

static void dropout_ignores_lanes(void **state) {
    (void)state;
    enum { N = 12 * 192 };
    static float whole[N], parts[N];
    for (int64_t lanes = 1; lanes <= 5; lanes += 4) {
        tri_run *run = open_net(dropped, 12, (tri_options){.lanes = lanes, .steps = 2});
        while (tri_step(run)) continue;
        read_all(run, "dropped", lanes == 1 ? whole : parts, N);
        assert_int_equal(tri_close(run), TRI_OK);
    }
    int zeros = 0;
    for (int i = 0; i < N; i++) zeros += whole[i] == 0;
    assert_true(zeros > 0.35 * N && zeros < 0.45 * N);
    assert_memory_equal(whole, parts, sizeof whole);
}

static void normed(struct net *n) {
    tri_loss(tri_mse(tri_slice(convolutions(n, true, 0), 1, 0, 1),
                     tri_reshape(n->y, TRI_SHAPE(tri_batch(n->g), 1))));
}

/* Batch statistics are those of a lane: two lanes give the mean of two runs on the halves. */
static void statistics_are_per_lane(void **state) {
    (void)state;
    enum { W = 6 * 27 };
    float begin_w[W], two[W], half[2][W], mean_w[W], stat[3][6], stat_mean[6];
    tri_options o = {.lanes = 2, .steps = 1, .no_shuffle = true, .optimizer = {.lr = 1}};
    tri_run *run = open_net(normed, 8, o);
    read_all(run, "conv1.weight", begin_w, W);
    while (tri_step(run)) continue;
    read_all(run, "conv1.weight", two, W);
    read_all(run, "bn1.running_var", stat[2], 6);
    assert_int_equal(tri_close(run), TRI_OK);
    o.lanes = 1;
    for (int i = 0; i < 2; i++) { /* the second run's batch is the second half */
        struct net n = begin(4);
        normed(&n);
        o.source = samples(40);
        run = tri_open(n.g, &o);
        run->sampler.size = 40;
        run->done = i;
        run->total = i + 1;
        while (tri_step(run)) continue;
        read_all(run, "conv1.weight", half[i], W);
        read_all(run, "bn1.running_var", stat[i], 6);
        assert_int_equal(tri_close(run), TRI_OK);
    }
    for (int i = 0; i < W; i++) mean_w[i] = (half[0][i] + half[1][i]) / 2;
    for (int i = 0; i < 6; i++) stat_mean[i] = (stat[0][i] + stat[1][i]) / 2;
    close_to(mean_w, two, W, 1e-5);
    close_to(stat_mean, stat[2], 6, 1e-5);
    double moved = 0;
    for (int i = 0; i < W; i++) moved = fmax(moved, fabs((double)two[i] - (double)begin_w[i]));
    assert_true(moved > 1e-4);
}

static void across(struct net *n) {
    tri_tensor *h = tri_softmax(tri_dense(tri_flatten(n->x, 1), "fc", 4), 0);
    tri_loss(tri_mean(h, TRI_ALL));
}

/* A mean over the batch that the samples themselves need. */
static void centred(struct net *n) {
    tri_tensor *h = tri_dense(tri_flatten(n->x, 1), "fc", 4);
    tri_tensor *d = tri_sub(h, tri_mean(h, TRI_SHAPE(0), .keep = true));
    tri_loss(tri_mean(tri_mul(d, d), TRI_ALL));
}

/* The largest over the batch: lanes join results by sums only. */
static void largest(struct net *n) {
    tri_tensor *h = tri_dense(tri_flatten(n->x, 1), "fc", 4);
    tri_loss(tri_mean(tri_max(h, TRI_SHAPE(0)), TRI_ALL));
}

/* A table of which each sample is a row, and ids of the first samples. */
static void looked_up(struct net *n) {
    tri_tensor *h = tri_dense(tri_flatten(n->x, 1), "fc", 4);
    int64_t first[] = {0, 1};
    tri_tensor *ids = tri_array(n->g, TRI_I64, TRI_SHAPE(2), first);
    tri_loss(tri_mean(tri_gather(h, ids), TRI_ALL));
}

/* An element's random numbers must not depend on its place in a lane. */
static void dropped_aside(struct net *n) {
    tri_tensor *h = tri_transpose(tri_dense(tri_flatten(n->x, 1), "fc", 4), TRI_SHAPE(1, 0));
    tri_loss(tri_mean(tri_dropout(h, 0.5), TRI_ALL));
}

/* Windows of one sample see others. */
static void pooled_across(struct net *n) {
    tri_tensor *h = tri_transpose(tri_dense(tri_flatten(n->x, 1), "fc", 24), TRI_SHAPE(1, 0));
    h = tri_reshape(h, TRI_SHAPE(1, 4, 6, tri_dim(h, 1)));
    tri_loss(tri_mean(tri_avg_pool(h, .size = 3, .stride = 1, .pad = 1), TRI_ALL));
}

static void what_cannot_be_split_is_refused(void **state) {
    (void)state;
    void (*const nets[])(struct net *) = {across, centred, dropped_aside, largest,
                                         looked_up, pooled_across};
    const char *const words[] = {"computes across the samples", "uses a result of the whole batch",
                                 "it is random", "computes across the samples",
                                 "computes across the samples", "computes across the samples"};
    for (size_t i = 0; i < COUNT(nets); i++) {
        struct net n = begin(8);
        nets[i](&n);
        tri_options o = {.lanes = 2, .steps = 1};
        assert_null(tri_open(n.g, &o));
        if (!strstr(tri_message(), words[i])) fail_msg("the message is: %s", tri_message());
        assert_non_null(strstr(tri_message(), "test_lanes.c:"));
        tri_run *run = open_net(nets[i], 64, (tri_options){.steps = 1}); /* chooses one lane */
        assert_int_equal(run_lanes(run), 1);
        assert_true(tri_step(run));
        assert_int_equal(tri_close(run), TRI_OK);
    }
}

static void default_lanes(void **state) {
    (void)state;
    const struct {
        const char *model;
        int64_t batch, lanes;
    } rows[] = {{"linear", 16, 1},   {"mlp", 64, 1},    {"mlp", 256, 1},  {"mlp", 4096, 8},
                {"lenet5", 16, 1},   {"lenet5", 64, 4}, {"lenet5", 128, 8}, {"lenet5", 100, 4},
                {"resnet18", 32, 2}, {"resnet50", 16, 1},
                {"resnet18:form=small", 64, 4}, {"bert-base:seq=128,head=every", 8, 4},
                {"bert-base:seq=128,head=every", 32, 8},
                {"resnet18:size=32", 64, 1}, {"gpt2-small:seq=256", 4, 4}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        tri_graph *g = tri_model_open(rows[i].model, rows[i].batch);
        int64_t lanes = lanes_default(g);
        if (lanes != rows[i].lanes)
            fail_msg("%s, batch %lld: %lld lanes", rows[i].model, (long long)rows[i].batch,
                     (long long)lanes);
        tri_graph_free(g);
    }
}

/* The same seed gives the same bits; another seed others; a graph that was printed and read back
 * gives the same. */
static void hashes(void **state) {
    (void)state;
    char weights[4][65], states[4][65];
    for (int i = 0; i < 4; i++) {
        struct net n = begin(12);
        several(&n);
        if (i == 3) {
            char *text = tri_graph_print(n.g);
            tri_graph_free(n.g);
            n.g = tri_graph_parse(text, strlen(text), "text");
            free(text);
        }
        tri_options o = {.lanes = 3, .steps = 3, .seed = i == 2, .source = samples(60)};
        tri_run *run = tri_open(n.g, &o);
        while (tri_step(run)) continue;
        tri_hash(run, weights[i], states[i]);
        assert_int_equal(tri_close(run), TRI_OK);
    }
    assert_string_equal(weights[0], weights[1]);
    assert_string_equal(states[0], states[1]);
    assert_string_not_equal(weights[0], weights[2]);
    assert_string_equal(weights[0], weights[3]);
    assert_string_equal(states[0], states[3]);
    assert_int_equal(strlen(weights[0]), 64);
    assert_string_not_equal(weights[0], states[0]);
}

static void lanes_of_a_batch(void **state) {
    (void)state;
    for (int64_t batch = 1; batch < 40; batch++)
        for (int64_t lanes = 1; lanes <= batch; lanes++) {
            int64_t sum = 0, least = batch, most = 0;
            for (int64_t i = 0; i < lanes; i++) {
                int64_t n = lane_samples(batch, lanes, i);
                assert_int_equal(lane_first(batch, lanes, i), sum);
                sum += n;
                least = n < least ? n : least;
                most = n > most ? n : most;
            }
            assert_int_equal(sum, batch);
            assert_true(most - least <= 1 && least >= 1);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_of_a_batch),
        cmocka_unit_test(same_for_any_lanes),
        cmocka_unit_test(outputs_are_gathered),
        cmocka_unit_test(rows_of_groups_are_gathered),
        cmocka_unit_test(dropout_ignores_lanes),
        cmocka_unit_test(statistics_are_per_lane),
        cmocka_unit_test(what_cannot_be_split_is_refused),
        cmocka_unit_test(default_lanes),
        cmocka_unit_test(hashes),
    };
    return cmocka_run_group_tests_name("lanes", tests, NULL, NULL);
}
