/* SPDX-License-Identifier: Apache-2.0
 * Orders of samples other than a shuffle: stratified by class, weighted, shares. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs these headers */
#include <cmocka.h>

#include <math.h>

#include "base/random.h"
#include "data/data.h"
#include "data/sampler.h"
#include "data/strata.h"
#include "plan/lanes.h"
#include "unit/scratch.h"

/* ---- data of which only the labels matter ---- */

static const tri_field no_field = {"x", TRI_F32, {0}};

static int nothing(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user;
    (void)epoch;
    (void)seed;
    *(float *)out[0] = (float)index;
    return 0;
}

static int64_t label_in(const void *user, int64_t index) { return ((const int64_t *)user)[index]; }

/* Samples sorted by class: count[c] of class c. */
static tri_data *labelled(const int64_t *count, int64_t classes, int64_t *label) {
    int64_t n = 0;
    for (int64_t c = 0; c < classes; c++)
        for (int64_t i = 0; i < count[c]; i++) label[n++] = c;
    tri_data *d = tri_data_new("labels", n, &no_field, 1, nothing, label, false);
    assert_non_null(d);
    tri_data_labels(d, classes, label_in);
    return d;
}

/* ---- rounding ---- */

static void check_table(const struct strata_table *t) {
    for (int64_t c = 0; c < t->classes; c++) {
        uint64_t row = 0;
        for (int g = 0; g < STRATA_GROUPS; g++) {
            uint64_t product = t->count[c] * t->size[g], x = t->out[c * STRATA_GROUPS + g];
            assert_in_range(x, product / t->all, product / t->all + (product % t->all != 0));
            row += x;
        }
        assert_int_equal(row, t->count[c]);
    }
    for (int g = 0; g < STRATA_GROUPS; g++) {
        uint64_t column = 0;
        for (int64_t c = 0; c < t->classes; c++) column += t->out[c * STRATA_GROUPS + g];
        assert_int_equal(column, t->size[g]);
    }
}

static void rounds(void **state) {
    (void)state;
    for (uint64_t n = 0; n < 20000; n++) {
        uint32_t count[9], out[9 * STRATA_GROUPS], most = 1 + random_u32(7, n, 20) % 12;
        struct strata_table t = {
            .count = count, .classes = 1 + random_u32(7, n, 0) % 9, .out = out};
        for (int64_t c = 0; c < t.classes; c++)
            t.all += count[c] = random_u32(7, n, 1 + (uint64_t)c) % most;
        if (!t.all) continue;
        t.size[0] = random_u32(7, n, 21) % (t.all + 1);
        t.size[1] = random_u32(7, n, 22) % (t.all - t.size[0] + 1);
        t.size[2] = t.all - t.size[0] - t.size[1];
        strata_round(&t);
        check_table(&t);
    }
}

/* ---- stratified ---- */

#define MOST 4096
#define CLASSES 12

struct strata_case {
    int64_t count[CLASSES], classes, batch, lanes, share, shares;
    bool even, pad;
};

static tri_status open_case(const struct strata_case *c, const tri_data *d, uint64_t seed,
                            struct sampler *s) {
    char share[64];
    snprintf(share, sizeof share, "%lld/%lld%s", (long long)c->share, (long long)c->shares,
             c->even ? ",drop" : "");
    const struct sampler_settings o = {.kind = "stratified",
                                       .share = c->shares ? share : NULL,
                                       .batch = c->batch,
                                       .lanes = c->lanes,
                                       .seed = seed,
                                       .tail = c->pad ? TAIL_PAD : TAIL_DROP};
    return sampler_open(s, d, &o);
}

/* Each lane against its share of each class. `of`: the classes' counts in the whole share. */
static void check_lanes(const struct strata_case *c, const int64_t *label, const uint64_t *index,
                        const int64_t *of, int64_t places) {
    int64_t step[CLASSES] = {0};
    for (int64_t lane = 0; lane < c->lanes; lane++) {
        int64_t first = lane_first(c->batch, c->lanes, lane),
                n = lane_samples(c->batch, c->lanes, lane);
        int64_t has[CLASSES] = {0};
        for (int64_t i = first; i < first + n; i++) has[label[index[i]]]++;
        for (int64_t k = 0; k < c->classes; k++) {
            assert_in_range(has[k], of[k] * n / places, (of[k] * n + places - 1) / places);
            step[k] += has[k];
        }
    }
    for (int64_t k = 0; k < c->classes && c->batch % c->lanes == 0; k++)
        assert_in_range(step[k], of[k] * c->batch / places,
                        (of[k] * c->batch + places - 1) / places);
}

static void read_epoch(struct sampler *s, int64_t epoch, uint64_t *index) {
    int64_t steps;
    assert_int_equal(sampler_steps(s, &steps), TRI_OK);
    for (int64_t i = 0; i < steps; i++) {
        sampler_seek(s, epoch * steps + i);
        assert_int_equal(s->epoch, epoch);
        assert_int_equal(sampler_epoch(s, epoch * steps + i), epoch);
        sampler_take(s, 0, s->batch, index + i * s->batch);
    }
}

static void check_case(const struct strata_case *c) {
    static int64_t label[MOST];
    static uint64_t index[2 * MOST];
    struct sampler s;
    tri_data *d = labelled(c->count, c->classes, label);
    for (int64_t epoch = 0; epoch < 5; epoch++) {
        assert_int_equal(open_case(c, d, 3, &s), TRI_OK);
        int64_t places = sampler_places(&s), steps = places / c->batch, of[CLASSES] = {0},
                seen[MOST] = {0}, again = 0;
        read_epoch(&s, epoch, index);
        const uint32_t *all = strata_order(s.strata, epoch);
        for (int64_t i = 0; i < places; i++) {
            assert_in_range(all[i], 0, tri_data_size(d) - 1);
            again += seen[all[i]]++;
            of[label[all[i]]]++;
            if (i < steps * c->batch) assert_int_equal(all[i], index[i]);
        }
        assert_int_equal(again, 0);
        for (int64_t i = 0; i < steps; i++) check_lanes(c, label, index + i * c->batch, of, places);
        if (c->pad && places % c->batch) {
            sampler_seek(&s, (epoch + 1) * (steps + 1) - 1);
            assert_int_equal(sampler_padding(&s), places % c->batch);
            for (int64_t i = places; i < (steps + 1) * c->batch; i++)
                assert_int_equal(index[i], index[i % places]);
        }
        sampler_close(&s);
    }
    tri_data_free(d);
}

static void shares_of_classes(void **state) {
    (void)state;
    static const struct strata_case cases[] = {
        {.count = {40, 40, 40}, .classes = 3, .batch = 12, .lanes = 4},
        {.count = {100, 3, 57, 1, 0, 200, 11}, .classes = 7, .batch = 16, .lanes = 4},
        {.count = {100, 3, 57, 1, 0, 200, 11}, .classes = 7, .batch = 31, .lanes = 1},
        {.count = {100, 3, 57, 1, 0, 200, 11}, .classes = 7, .batch = 31, .lanes = 7},
        {.count = {100, 3, 57, 1, 0, 200, 11}, .classes = 7, .batch = 30, .lanes = 4, .pad = true},
        {.count = {371, 5}, .classes = 2, .batch = 10, .lanes = 10},
        {.count = {1000, 500, 250, 125, 60, 30, 15, 8, 4, 2, 1, 1},
         .classes = 12,
         .batch = 64,
         .lanes = 8},
        {.count = {1000, 500, 250, 125, 60, 30, 15, 8, 4, 2, 1, 1},
         .classes = 12,
         .batch = 50,
         .lanes = 8},
        {.count = {100, 3, 57, 1, 0, 200, 11},
         .classes = 7,
         .batch = 16,
         .lanes = 4,
         .share = 2,
         .shares = 3},
        {.count = {100, 3, 57, 1, 0, 200, 11},
         .classes = 7,
         .batch = 10,
         .lanes = 3,
         .share = 3,
         .shares = 4,
         .even = true},
        {.count = {7, 5}, .classes = 2, .batch = 100, .lanes = 4, .pad = true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) check_case(&cases[i]);
    for (uint64_t n = 0; n < 300; n++) {
        struct strata_case c = {.classes = 1 + random_u32(9, n, 0) % CLASSES,
                                .batch = 1 + random_u32(9, n, 1) % 60};
        c.lanes = 1 + random_u32(9, n, 2) % (c.batch < 9 ? (uint32_t)c.batch : 9);
        for (int64_t k = 0; k < c.classes; k++)
            c.count[k] = random_u32(9, n, 10 + (uint64_t)k) % 300;
        c.count[0] += c.batch;
        check_case(&c);
    }
}

/* Another order in each epoch and for each seed; the same when asked again, whatever was asked in
 * between. */
static void stratified_is_pure(void **state) {
    (void)state;
    static const struct strata_case c = {
        .count = {300, 200, 100}, .classes = 3, .batch = 20, .lanes = 2};
    static int64_t label[MOST];
    uint64_t first[640], again[640], other[640];
    struct sampler s, t;
    tri_data *d = labelled(c.count, c.classes, label);
    assert_int_equal(open_case(&c, d, 3, &s), TRI_OK);
    assert_int_equal(open_case(&c, d, 4, &t), TRI_OK);
    read_epoch(&s, 0, first);
    for (int64_t epoch = 5; epoch > 0; epoch--) {
        int differ = 0;
        read_epoch(&s, epoch, other);
        for (int i = 0; i < 600; i++) differ += other[i] != first[i];
        assert_in_range(differ, 550, 600);
    }
    read_epoch(&s, 0, again);
    assert_memory_equal(first, again, 600 * sizeof *first);
    read_epoch(&t, 0, other);
    int differ = 0;
    for (int i = 0; i < 600; i++) differ += other[i] != first[i];
    assert_in_range(differ, 550, 600);
    sampler_close(&s);
    sampler_close(&t);
    tri_data_free(d);
}

static void stratified_refuses(void **state) {
    (void)state;
    struct sampler s;
    static int64_t label[] = {0, 1, 2, 3};
    tri_data *d = tri_data_new("plain", 4, &no_field, 1, nothing, label, false);
    const struct sampler_settings o = {.kind = "stratified", .batch = 2, .lanes = 1};
    assert_int_equal(sampler_open(&s, d, &o), TRI_USAGE);
    assert_message("data plain does not know the classes of its samples");
    sampler_close(&s);
    tri_data_labels(d, 3, label_in);
    assert_int_equal(sampler_open(&s, d, &o), TRI_FAILED);
    assert_message("sample 3: its label is 3; there are 3 classes");
    sampler_close(&s);
    label[3] = -1;
    assert_int_equal(sampler_open(&s, d, &o), TRI_FAILED);
    assert_message("sample 3: its label is -1; there are 3 classes");
    sampler_close(&s);
    tri_data_free(d);
}

/* ---- the purpose ---- */

#define FEATURES 6

/* Samples of a class are close together. */
static int around_class(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)epoch;
    (void)seed;
    int64_t label = ((const int64_t *)user)[index];
    for (int i = 0; i < FEATURES; i++)
        ((float *)out[0])[i] = (float)(random_normal(11, (uint64_t)label, (uint64_t)i) +
                                       0.1 * random_normal(12, (uint64_t)index, (uint64_t)i));
    *(int64_t *)out[1] = label;
    return 0;
}

/* The variance of the losses of an epoch's lanes, of 16 samples each, with constant weights. */
static double variance(const char *kind, const int64_t *count, int64_t *label) {
    const tri_field fields[] = {{"x", TRI_F32, TRI_SHAPE(FEATURES)}, {"label", TRI_I64, {0}}};
    tri_data *like = labelled(count, 10, label);
    tri_data *d =
        tri_data_new("clusters", tri_data_size(like), fields, 2, around_class, label, false);
    tri_data_labels(d, 10, label_in);
    tri_data_free(like);
    tri_graph *g = tri_graph_new(16);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(16, FEATURES));
    tri_tensor *y = tri_input(g, "label", TRI_I64, TRI_SHAPE(16), .below = 10);
    tri_loss(tri_cross_entropy(tri_dense(x, "fc", 10), y));
    tri_run *run = tri_open(g, &(tri_options){.lanes = 1, .epochs = 1, .source = d, .sampler = kind,
                                              .optimizer.lr = 1e-30});
    double sum = 0, squares = 0, n = 0;
    for (; tri_step(run); n++) {
        sum += tri_value(run, "loss");
        squares += tri_value(run, "loss") * tri_value(run, "loss");
    }
    assert_int_equal(tri_close(run), TRI_OK);
    return squares / n - sum / n * (sum / n);
}

static void losses_vary_less(void **state) {
    (void)state;
    static const int64_t count[] = {120, 30, 90, 60, 100, 55, 45, 80, 10, 20};
    static int64_t label[MOST];
    double sorted = variance("sequential", count, label),
           shuffled = variance("shuffled", count, label),
           stratified = variance("stratified", count, label);
    print_message("variances: sorted %.3g, shuffled %.3g, stratified %.3g\n", sorted, shuffled,
                  stratified);
    assert_true(sorted > 8 * shuffled);
    assert_true(shuffled > 3 * stratified);
}

/* ---- weights ---- */

static tri_status open_kind(const char *kind, const tri_data *d, struct sampler *s) {
    return sampler_open(
        s, d, &(struct sampler_settings){.kind = kind, .batch = 100, .lanes = 1, .seed = 5});
}

/* How often each class is drawn in 100 epochs of 800 samples each. */
static void drawn(const char *kind, const tri_data *d, const int64_t *label, double share[3]) {
    struct sampler s;
    uint64_t index[800];
    assert_int_equal(open_kind(kind, d, &s), TRI_OK);
    memset(share, 0, 3 * sizeof *share);
    assert_int_equal(sampler_bytes(&s), 800 * sizeof(double));
    for (int64_t epoch = 0; epoch < 100; epoch++) {
        read_epoch(&s, epoch, index);
        for (int i = 0; i < 800; i++) share[label[index[i]]] += 1 / 80000.0;
    }
    sampler_close(&s);
}

static void write_weights(const char *path, const char *each[3], const int64_t *label, int64_t n) {
    FILE *f = fopen(path, "w");
    for (int64_t i = 0; i < n; i++) fprintf(f, "%s\n", each[label[i]]);
    fclose(f);
}

static void near(double x, double y) {
    if (fabs(x - y) > 0.008) fail_msg("%g is not near %g", x, y); /* five standard deviations */
}

static void weighted(void **state) {
    (void)state;
    static const int64_t count[] = {500, 200, 100};
    static int64_t label[800];
    double share[3];
    tri_data *d = labelled(count, 3, label);
    drawn("weighted:balanced", d, label, share);
    for (int c = 0; c < 3; c++) near(share[c], 1 / 3.0);
    drawn("weighted:classes=1/0/5", d, label, share);
    near(share[0], 0.5);
    assert_true(share[1] == 0);
    write_weights(at("weights"), (const char *[]){"0", "2.5", "5e0"}, label, 800);
    char kind[600];
    snprintf(kind, sizeof kind, "weighted:%s", at("weights"));
    drawn(kind, d, label, share);
    assert_true(share[0] == 0);
    near(share[1], 0.5);

    struct sampler s;
    const struct {
        const char *kind, *message;
    } wrong[] = {{"weighted:classes=1/2", "3 numbers of at least 0, separated by /"},
                 {"weighted:classes=1/2/x", "3 numbers of at least 0"},
                 {"weighted:classes=1/2/3/4", "3 numbers of at least 0"},
                 {"weighted:classes=1/-2/3", "3 numbers of at least 0"},
                 {"weighted:classes=0/0/0", "the sum of all weights is 0"},
                 {"weighted:/nowhere", "/nowhere: No such file"},
                 {"weighted", "weighted:FILE"},
                 {"weighted:", "weighted:FILE"},
                 {"stratified:3", "known: shuffled, sequential"},
                 {"strat", "known: shuffled, sequential"}};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_not_equal(open_kind(wrong[i].kind, d, &s), TRI_OK);
        assert_message(wrong[i].message);
        sampler_close(&s);
    }
    write_weights(at("weights"), (const char *[]){"0", "2.5", "-1"}, label, 800);
    assert_int_equal(open_kind(kind, d, &s), TRI_FAILED);
    assert_message("line 701: a weight is a number of at least 0");
    sampler_close(&s);
    write_weights(at("weights"), (const char *[]){"0", "two", "1"}, label, 800);
    assert_int_equal(open_kind(kind, d, &s), TRI_FAILED);
    assert_message("line 501: 'two' is not a number");
    sampler_close(&s);
    write_weights(at("weights"), (const char *[]){"0", "2", "1"}, label, 700);
    assert_int_equal(open_kind(kind, d, &s), TRI_FAILED);
    assert_message("700 weights; data labels has 800 samples");
    sampler_close(&s);
    static const int64_t labels[] = {3, 4000000, -1};
    for (size_t i = 0; i < COUNT(labels); i++) {
        char message[64];
        base_format(message, sizeof message, "sample 5: its label is %lld; there are 3 classes",
                    (long long)labels[i]);
        label[5] = labels[i];
        assert_int_equal(open_kind("weighted:balanced", d, &s), TRI_FAILED);
        assert_message(message);
        sampler_close(&s);
        assert_int_equal(open_kind("weighted:classes=1/2/1", d, &s), TRI_FAILED);
        assert_message(message);
        sampler_close(&s);
    }
    tri_data_free(d);
}

/* ---- shares ---- */

static void all_shares(const tri_data *d, const char *kind, int64_t shares, const char *drop,
                       int seen[64]) {
    memset(seen, 0, 64 * sizeof *seen);
    for (int64_t k = 0; k < shares; k++) {
        struct sampler s;
        uint64_t index[64];
        char share[64];
        snprintf(share, sizeof share, "%lld/%lld%s", (long long)k, (long long)shares, drop);
        const struct sampler_settings o = {
            .kind = kind, .share = share, .batch = 1, .lanes = 1, .seed = 2};
        assert_int_equal(sampler_open(&s, d, &o), TRI_OK);
        read_epoch(&s, 3, index);
        for (int64_t i = 0; i < sampler_places(&s); i++) seen[index[i]]++;
        sampler_close(&s);
    }
}

static void interleaved(void **state) {
    (void)state;
    static const int64_t count[] = {20, 23};
    static int64_t label[43];
    static const char *const kinds[] = {"sequential", "shuffled", "stratified"};
    tri_data *d = labelled(count, 2, label);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        int seen[64], twice = 0, none = 0;
        all_shares(d, kinds[i], 4, "", seen); /* 44 places for 43 samples */
        for (int k = 0; k < 43; k++) {
            assert_in_range(seen[k], 1, 2);
            twice += seen[k] == 2;
        }
        assert_int_equal(twice, 1);
        all_shares(d, kinds[i], 4, ",drop", seen); /* 40 */
        for (int k = 0; k < 43; k++) {
            assert_in_range(seen[k], 0, 1);
            none += !seen[k];
        }
        assert_int_equal(none, 3);
    }
    static const char *const wrong[] = {"4/4", "-1/4", "1", "1/", "1/0", "1/2,keep", "x/2"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct sampler s;
        const struct sampler_settings o = {.share = wrong[i], .batch = 1, .lanes = 1};
        assert_int_equal(sampler_open(&s, d, &o), TRI_USAGE);
        assert_message("K/N or K/N,drop is needed");
    }
    struct sampler s;
    assert_int_equal(sampler_open(&s, d, &(struct sampler_settings){.share = "3/44", .batch = 1}),
                     TRI_USAGE);
    assert_message("43 samples, which do not make 44 shares");
    assert_int_equal(sampler_open(&s, d, &(struct sampler_settings){.share = "3/4", .batch = 12}),
                     TRI_USAGE);
    assert_message("the data's share has 11 samples, fewer than the batch of 12");
    tri_data_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds),
        cmocka_unit_test(shares_of_classes),
        cmocka_unit_test(stratified_is_pure),
        cmocka_unit_test(stratified_refuses),
        cmocka_unit_test(losses_vary_less),
        cmocka_unit_test_teardown(weighted, empty_directory),
        cmocka_unit_test(interleaved),
    };
    return cmocka_run_group_tests_name("samplers", tests, make_directory, remove_directory);
}
