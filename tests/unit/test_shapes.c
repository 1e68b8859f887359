/* SPDX-License-Identifier: Apache-2.0
 * Steps of several shapes: networks for shorter samples beside the usual one. (A smaller last step: test_tail.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h wants those before it. */
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "data/data.h"
#include "unit/scratch.h"

#define LONGEST 8
#define SIZE 75
#define BATCH 8

/* ---- samples that are 1 to 8 long ---- */

struct seen {
    int n;
    int64_t index[BATCH]; /* of the step */
    int times[SIZE];      /* in all */
};

static int64_t length_of(const void *user, int64_t index) {
    (void)user;
    return 1 + (index * 5 + index / 7) % LONGEST;
}

static float x_of(int64_t index, int64_t i) { return (float)((index * 7 + i * 13) % 11) / 5 - 1; }
static float y_of(int64_t index) { return (float)(index % 4) / 2; }
/* Also behind a sample's length, so that it shows where a network reads more or less than it should. */
static float m_of(int64_t index, int64_t i, int64_t k) { return (float)((index + 3 * i + k) % 17) / 100; }

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    struct seen *s = user;
    (void)epoch, (void)seed;
    for (int64_t i = 0; i < LONGEST; i++) {
        ((float *)out[0])[i] = x_of(index, i);
        for (int64_t k = 0; k < LONGEST; k++) ((float *)out[1])[i * LONGEST + k] = m_of(index, i, k);
    }
    *(float *)out[2] = y_of(index);
    if (s->n < BATCH) s->index[s->n] = index;
    s->n++;
    s->times[index]++;
    return 0;
}

static tri_data *samples(struct seen *s, bool lengths) {
    const tri_field fields[] = {{"x", TRI_F32, TRI_SHAPE(LONGEST)},
                                {"m", TRI_F32, TRI_SHAPE(LONGEST, LONGEST)},
                                {"y", TRI_F32, TRI_SCALAR}};
    *s = (struct seen){0};
    tri_data *d = tri_data_new("samples", SIZE, fields, 3, fill, s, false);
    if (lengths) tri_data_lengths(d, length_of);
    return d;
}

/* ---- y is w x + c sum(m), of the first `length` of each ---- */

static tri_graph *network(int64_t batch, int64_t length) {
    tri_graph *g = tri_graph_new(batch);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(batch, length));
    tri_tensor *m = tri_input(g, "m", TRI_F32, TRI_SHAPE(batch, length, length));
    tri_tensor *y = tri_input(g, "y", TRI_F32, TRI_SHAPE(batch));
    tri_tensor *w = tri_param(g, "w", TRI_SHAPE(LONGEST), (tri_init){TRI_NORMAL, 0, 0.5});
    tri_tensor *c = tri_param(g, "c", TRI_SCALAR, (tri_init){TRI_CONSTANT, 0.5, 0});
    if (length < LONGEST) w = tri_slice(w, 0, 0, length);
    tri_tensor *sums = tri_sum(m, TRI_SHAPE(1, 2));
    tri_loss(tri_mse(tri_add(tri_sum(tri_mul(x, w), TRI_SHAPE(1)), tri_mul(sums, c)), y));
    return g;
}

static tri_graph *networks(void) {
    tri_graph *g = network(BATCH, LONGEST);
    tri_shorter(g, 2, network(BATCH, 2)); /* in any order */
    tri_shorter(g, 5, network(BATCH, 5));
    return g;
}

static int64_t network_of(int64_t length) { return length <= 2 ? 2 : length <= 5 ? 5 : LONGEST; }

static double expected(const float *w, float c, const struct seen *s, int64_t rows) {
    double sum = 0;
    int64_t length = network_of(length_of(NULL, s->index[0]));
    for (int64_t r = 0; r < rows; r++) {
        double z = -y_of(s->index[r]);
        assert_int_equal(network_of(length_of(NULL, s->index[r])), length);
        for (int64_t i = 0; i < length; i++) {
            z += w[i] * x_of(s->index[r], i);
            for (int64_t k = 0; k < length; k++) z += c * m_of(s->index[r], i, k);
        }
        sum += z * z;
    }
    return sum / (double)rows;
}

/* ---- what comes out ---- */

/* Each step is of one network's samples alone, and computes what that network says of them; with `keep` each sample
 * comes once an epoch. */
static void each_by_its_network(void **state) {
    (void)state;
    for (int shuffled = 0; shuffled < 2; shuffled++) {
        struct seen s;
        float w[LONGEST], c;
        tri_options o = {.epochs = 3, .source = samples(&s, true), .tail = "keep", .no_shuffle = !shuffled, .lanes = 3,
                         .optimizer.lr = 0.005, .data_threads = -1};
        tri_run *run = tri_open(networks(), &o);
        if (!run) print_message("%s\n", tri_message());
        assert_non_null(run);
        for (bool more = true; more;) {
            assert_int_equal(tri_read(run, "w", w, sizeof w), TRI_OK);
            assert_int_equal(tri_read(run, "c", &c, sizeof c), TRI_OK);
            s.n = 0;
            more = tri_step(run);
            double right = more ? expected(w, c, &s, s.n) : 0;
            if (more) assert_true(fabs(tri_value(run, "loss") - right) <= 1e-5 * right);
        }
        for (int i = 0; i < SIZE; i++) assert_int_equal(s.times[i], 3);
        assert_int_equal(tri_close(run), TRI_OK);
    }
}

/* What fills no step is left out of each class; threads and data threads change no bit. */
static void same_bits(void **state) {
    (void)state;
    const int64_t threads[][2] = {{1, -1}, {2, -1}, {3, 2}};
    static const char *const tails[] = {"drop", "keep"};
    for (size_t k = 0; k < COUNT(tails); k++) {
        char first[65], hash[65], ignored[65];
        for (size_t i = 0; i < COUNT(threads); i++) {
            struct seen s;
            tri_options o = {.epochs = 4, .source = samples(&s, true), .tail = tails[k], .lanes = 4,
                             .threads = threads[i][0], .data_threads = threads[i][1], .optimizer.name = "adam"};
            tri_run *run = tri_open(networks(), &o);
            assert_non_null(run);
            while (tri_step(run)) continue;
            tri_hash(run, hash, ignored);
            assert_int_equal(tri_close(run), TRI_OK);
            if (!i) memcpy(first, hash, sizeof first);
            assert_string_equal(first, hash);
        }
    }
}

/* The batch that the options name is that of all networks. */
static void another_batch(void **state) {
    (void)state;
    struct seen s;
    tri_options o = {.batch = 5, .epochs = 1, .source = samples(&s, true), .tail = "keep", .data_threads = -1};
    tri_run *run = tri_open(networks(), &o);
    assert_non_null(run);
    for (s.n = 0; tri_step(run); s.n = 0) assert_in_range(s.n, 1, 5);
    for (int i = 0; i < SIZE; i++) assert_int_equal(s.times[i], 1);
    assert_int_equal(tri_close(run), TRI_OK);
}

/* ---- what is refused ---- */

static tri_graph *without_an_input(void) {
    tri_graph *g = tri_graph_new(BATCH);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(BATCH, 4));
    tri_loss(tri_mean(tri_mul(x, tri_param(g, "w", TRI_SHAPE(4), (tri_init){0})), TRI_ALL));
    return g;
}

static tri_graph *another_parameter(void) {
    tri_graph *g = network(BATCH, 4);
    tri_add(tri_find(g, "c"), tri_param(g, "d", TRI_SCALAR, (tri_init){0}));
    return g;
}

static void refuses(void **state) {
    (void)state;
    const struct {
        int64_t length;
        tri_graph *other;
        const char *message;
    } cases[] = {{0, network(BATCH, 2), "at most 0"},
                 {3, network(BATCH + 1, 2), "a batch of 9, and 8"},
                 {3, without_an_input(), "the network for shorter samples has no input \"m\""},
                 {3, another_parameter(), "the network for longer samples has no param \"d\""}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        tri_graph *g = network(BATCH, LONGEST);
        tri_shorter(g, cases[i].length, cases[i].other);
        assert_int_equal(tri_graph_status(g), TRI_USAGE);
        assert_message(cases[i].message);
        tri_graph_free(g);
    }
    tri_graph *twice = networks();
    tri_shorter(twice, 5, network(BATCH, 5));
    assert_int_equal(tri_graph_status(twice), TRI_USAGE);
    assert_message("at most 5 already");
    tri_graph_free(twice);
    struct seen s;
    tri_options o = {.source = samples(&s, false)};
    assert_null(tri_open(networks(), &o));
    assert_message("does not tell the lengths of its samples");
    o = (tri_options){.source = samples(&s, true), .share = "0/2"};
    assert_null(tri_open(networks(), &o));
    assert_message("not drawn in shares");
    o = (tri_options){.source = samples(&s, true), .batch = 60};
    assert_null(tri_open(networks(), &o));
    assert_message("at most for any of the networks");
}

static void lists_of_lengths(void **state) {
    (void)state;
    static const char *const wrong[] = {"seq=16/", "seq=16//8", "seq=/16", "seq=16/16"};
    tri_graph *g = tri_model_open("bert-tiny:layers=1,seq=8/32/16,vocab=50", 2);
    assert_int_equal(tri_graph_status(g), TRI_OK);
    tri_graph_free(g);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        char spec[64];
        base_format(spec, sizeof spec, "bert-tiny:layers=1,%s", wrong[i]);
        g = tri_model_open(spec, 2);
        assert_int_equal(tri_graph_status(g), TRI_USAGE);
        tri_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_by_its_network), cmocka_unit_test(same_bits), cmocka_unit_test(another_batch),
        cmocka_unit_test(refuses),             cmocka_unit_test(lists_of_lengths),
    };
    return cmocka_run_group_tests_name("shapes", tests, make_directory, remove_directory);
}
