/* SPDX-License-Identifier: Apache-2.0
 * Steps of several shapes: networks for shorter samples beside the usual one. (A smaller last step:
 * test_tail.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs these headers */
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "data/data.h"
#include "unit/scratch.h"

#define LONGEST 8
#define SIZE 75
#define BATCH 8

/* ---- samples with lengths 1 to 8 ---- */

struct seen {
    int n;
    int64_t index[BATCH]; /* of the step */
    int times[SIZE];      /* in total */
};

static int64_t length_of(const void *user, int64_t index) {
    (void)user;
    return 1 + (index * 5 + index / 7) % LONGEST;
}

static float x_of(int64_t index, int64_t i) { return (float)((index * 7 + i * 13) % 11) / 5 - 1; }
static float y_of(int64_t index) { return (float)(index % 4) / 2; }
/* Also beyond a sample's length, to show whether a network reads too much or too little. */
static float m_of(int64_t index, int64_t i, int64_t k) {
    return (float)((index + 3 * i + k) % 17) / 100;
}

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    struct seen *s = user;
    (void)epoch, (void)seed;
    for (int64_t i = 0; i < LONGEST; i++) {
        ((float *)out[0])[i] = x_of(index, i);
        for (int64_t k = 0; k < LONGEST; k++)
            ((float *)out[1])[i * LONGEST + k] = m_of(index, i, k);
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

/* ---- y is w x + c sum(m), over the first `length` elements of each ---- */

static tri_tensor *error_of(tri_graph *g, int64_t length) {
    int64_t batch = tri_batch(g);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(batch, length));
    tri_tensor *m = tri_input(g, "m", TRI_F32, TRI_SHAPE(batch, length, length));
    tri_tensor *y = tri_input(g, "y", TRI_F32, TRI_SHAPE(batch));
    tri_tensor *w = tri_param(g, "w", TRI_SHAPE(LONGEST), (tri_init){TRI_NORMAL, 0, 0.5});
    tri_tensor *c = tri_param(g, "c", TRI_SCALAR, (tri_init){TRI_CONSTANT, 0.5, 0});
    if (length < LONGEST) w = tri_slice(w, 0, 0, length);
    tri_tensor *sums = tri_sum(m, TRI_SHAPE(1, 2));
    return tri_mse(tri_add(tri_sum(tri_mul(x, w), TRI_SHAPE(1)), tri_mul(sums, c)), y);
}

static tri_graph *network(int64_t batch, int64_t length) {
    tri_graph *g = tri_graph_new(batch);
    tri_loss(error_of(g, length));
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

/* ---- results ---- */

/* Each step has samples of one network only, and computes that network's results for them; with
 * `keep` each sample comes once per epoch. */
static void each_by_its_network(void **state) {
    (void)state;
    for (int shuffled = 0; shuffled < 2; shuffled++) {
        struct seen s;
        float w[LONGEST], c;
        tri_options o = {.epochs = 3,
                         .source = samples(&s, true),
                         .tail = "keep",
                         .no_shuffle = !shuffled,
                         .lanes = 3,
                         .optimizer.lr = 0.005,
                         .data_threads = -1};
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

/* Of each class the samples that fill no step are left out; threads and data threads change no
 * bit. */
static void same_bits(void **state) {
    (void)state;
    const int64_t threads[][2] = {{1, -1}, {2, -1}, {3, 2}};
    static const char *const tails[] = {"drop", "keep"};
    for (size_t k = 0; k < COUNT(tails); k++) {
        char first[65], hash[65], ignored[65];
        for (size_t i = 0; i < COUNT(threads); i++) {
            struct seen s;
            tri_options o = {.epochs = 4,
                             .source = samples(&s, true),
                             .tail = tails[k],
                             .lanes = 4,
                             .threads = threads[i][0],
                             .data_threads = threads[i][1],
                             .optimizer.name = "adam"};
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

/* The batch in the options is that of all networks. */
static void another_batch(void **state) {
    (void)state;
    struct seen s;
    tri_options o = {
        .batch = 5, .epochs = 1, .source = samples(&s, true), .tail = "keep", .data_threads = -1};
    tri_run *run = tri_open(networks(), &o);
    assert_non_null(run);
    for (s.n = 0; tri_step(run); s.n = 0) assert_in_range(s.n, 1, 5);
    for (int i = 0; i < SIZE; i++) assert_int_equal(s.times[i], 1);
    assert_int_equal(tri_close(run), TRI_OK);
}

/* The largest number of networks, each with its steps. */
static void most_networks(void **state) {
    (void)state;
    for (int keep = 0; keep < 2; keep++) {
        struct seen s;
        tri_graph *g = network(BATCH, LONGEST);
        for (int64_t length = 1; length < LONGEST; length++)
            tri_shorter(g, length, network(BATCH, length));
        tri_options o = {.batch = 5,
                         .epochs = 1,
                         .source = samples(&s, true),
                         .tail = keep ? "keep" : "drop",
                         .data_threads = -1};
        tri_run *run = tri_open(g, &o);
        if (keep) assert_null(run);
        if (keep) assert_message("steps of 13 shapes; there can be 8");
        if (keep) continue;
        assert_non_null(run);
        assert_int_equal(tri_step_total(run), 14);
        while (tri_step(run)) continue;
        assert_int_equal(tri_close(run), TRI_OK);
    }
}

/* ---- scalars, outputs and labels of each network ---- */

/* Scalars are matched by their names, in whatever order a network has them. */
static tri_graph *with_scalars(int64_t length, bool turned) {
    tri_graph *g = tri_graph_new(BATCH);
    tri_tensor *b = turned ? tri_scalar(g, "b") : NULL, *a = tri_scalar(g, "a");
    if (!turned) b = tri_scalar(g, "b");
    tri_loss(tri_add(tri_scale(error_of(g, length), 1e-9), tri_add(tri_scale(a, 10), b)));
    return g;
}

static void scalars_by_name(void **state) {
    (void)state;
    struct seen s;
    tri_graph *g = with_scalars(LONGEST, false);
    tri_shorter(g, 5, with_scalars(5, true));
    tri_options o = {
        .epochs = 1, .source = samples(&s, true), .data_threads = -1, .optimizer.lr = 1e-9};
    tri_run *run = tri_open(g, &o);
    if (!run) print_message("%s\n", tri_message());
    assert_non_null(run);
    tri_set_scalar(run, "a", 2);
    tri_set_scalar(run, "b", 3);
    while (tri_step(run)) assert_true(fabs(tri_value(run, "loss") - 23) < 1e-4);
    assert_int_equal(tri_close(run), TRI_OK);
}

static tri_graph *with_outputs(int64_t length, const char *first, const char *second) {
    tri_graph *g = network(BATCH, length);
    if (first) tri_metric(tri_mean(tri_find(g, "w"), TRI_ALL), first);
    if (second) tri_metric(tri_mean(tri_find(g, "w"), TRI_ALL), second);
    return g;
}

/* All networks report a step's results in the same order. */
static void the_same_outputs(void **state) {
    (void)state;
    static const struct {
        const char *first, *second, *message;
    } cases[] = {{"p", NULL, "only the usual network has the output \"q\""},
                 {"q", "p", "output 2 is \"q\", in the usual network \"p\""},
                 {NULL, NULL, "only the usual network has the output \"p\""}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct seen s;
        tri_graph *g = with_outputs(LONGEST, "p", "q");
        tri_shorter(g, 5, with_outputs(5, cases[i].first, cases[i].second));
        tri_options o = {.epochs = 1, .source = samples(&s, true), .data_threads = -1};
        assert_null(tri_open(g, &o));
        assert_message("no longer than 5");
        assert_message(cases[i].message);
    }
}

#define CLASSES 4

static int fill_classes(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)epoch, (void)seed;
    for (int64_t i = 0; i < LONGEST; i++) ((float *)out[0])[i] = x_of(index, i);
    *(int64_t *)out[1] = (index * index + 1) % CLASSES;
    return 0;
}

static tri_graph *classifier(int64_t length) {
    tri_graph *g = tri_graph_new(BATCH);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(BATCH, length));
    tri_tensor *label = tri_input(g, "label", TRI_I64, TRI_SHAPE(BATCH), .below = CLASSES);
    tri_tensor *w = tri_param(g, "w", TRI_SHAPE(LONGEST, CLASSES), (tri_init){TRI_NORMAL, 0, 0.5});
    if (length < LONGEST) w = tri_slice(w, 0, 0, length);
    tri_loss(tri_cross_entropy(tri_matmul(x, w), label, .ignore = true, .ignore_index = -100));
    return g;
}

static void learn(const char *tail, float w[LONGEST * CLASSES]) {
    const tri_field fields[] = {{"x", TRI_F32, TRI_SHAPE(LONGEST)}, {"label", TRI_I64, TRI_SCALAR}};
    tri_data *d = tri_data_new("samples", SIZE, fields, 2, fill_classes, NULL, false);
    tri_graph *g = classifier(LONGEST);
    tri_data_lengths(d, length_of);
    /* the last steps of its samples, and of the others', lack 3 and 2 */
    tri_shorter(g, 4, classifier(4));
    tri_options o = {
        .epochs = 2, .source = d, .tail = tail, .data_threads = -1, .optimizer.lr = 0.5};
    tri_run *run = tri_open(g, &o);
    assert_non_null(run);
    while (tri_step(run)) continue;
    assert_int_equal(tri_read(run, "w", w, LONGEST * CLASSES * sizeof *w), TRI_OK);
    assert_int_equal(tri_close(run), TRI_OK);
}

/* Samples that pad a step do not count, whichever network's step it is. */
static void padding_does_not_count(void **state) {
    (void)state;
    float kept[LONGEST * CLASSES], padded[LONGEST * CLASSES];
    learn("keep", kept);
    learn("pad", padded);
    for (int i = 0; i < LONGEST * CLASSES; i++) assert_true(fabsf(kept[i] - padded[i]) < 1e-5F);
}

/* A run resumes only with the networks that it began with: others would have other steps. */
static void resumes_as_it_began(void **state) {
    (void)state;
    struct seen s;
    tri_options o = {.epochs = 1,
                     .source = samples(&s, true),
                     .data_threads = -1,
                     .ckpt = at("ck"),
                     .quiet = true};
    tri_run *run = tri_open(networks(), &o);
    assert_non_null(run);
    while (tri_step(run)) continue;
    assert_int_equal(tri_close(run), TRI_OK);
    o.source = samples(&s, true);
    o.resume = true;
    assert_null(tri_open(network(BATCH, LONGEST), &o));
    assert_message("was made with lengths 5/2 (this run has none)");
    o.source = samples(&s, true);
    run = tri_open(networks(), &o);
    assert_non_null(run);
    assert_int_equal(tri_close(run), TRI_OK);
}

/* ---- refusals ---- */

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

static int64_t any_length(const void *user, int64_t index) {
    (void)user, (void)index;
    static int64_t calls;
    return calls++ < SIZE ? LONGEST : 1;
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
    assert_message("a network for samples of at most 5");
    tri_graph_free(twice);
    tri_graph *own = network(BATCH, LONGEST), *other = network(BATCH, 5);
    tri_shorter(own, 5, other);
    assert_int_equal(tri_graph_status(own), TRI_OK);
    tri_shorter(own, 2, other);
    assert_int_equal(tri_graph_status(own), TRI_USAGE);
    assert_message("was added before");
    tri_graph_free(own);
    own = network(BATCH, LONGEST);
    tri_shorter(own, 5, own);
    assert_int_equal(tri_graph_status(own), TRI_USAGE);
    assert_message("is the network itself");
    tri_graph_free(own);
    struct seen s;
    tri_options o = {.source = samples(&s, false)};
    assert_null(tri_open(networks(), &o));
    assert_message("does not know the lengths of its samples");
    o = (tri_options){.source = samples(&s, true), .share = "0/2"};
    assert_null(tri_open(networks(), &o));
    assert_message("without --share");
    o = (tri_options){.source = samples(&s, true), .batch = 60};
    assert_null(tri_open(networks(), &o));
    assert_message("at most for any of the networks");
    o = (tri_options){.source = samples(&s, true)};
    tri_data_lengths(o.source, any_length);
    assert_null(tri_open(networks(), &o));
    assert_message("gives different lengths for the same sample (sample 0");
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
        cmocka_unit_test(each_by_its_network),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(another_batch),
        cmocka_unit_test(most_networks),
        cmocka_unit_test(scalars_by_name),
        cmocka_unit_test(the_same_outputs),
        cmocka_unit_test(padding_does_not_count),
        cmocka_unit_test(resumes_as_it_began),
        cmocka_unit_test(refuses),
        cmocka_unit_test(lists_of_lengths),
    };
    return cmocka_run_group_tests_name("shapes", tests, make_directory, remove_directory);
}
