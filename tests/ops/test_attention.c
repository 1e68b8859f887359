/* SPDX-License-Identifier: Apache-2.0
 * Attention against the operators that it consists of, divided into lanes, and with long
 * sequences. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "base/random.h"
#include "run/run.h"

/* A step that updates only a useless parameter, so that nothing is added to the graph. */
static tri_run *open_run(tri_graph *g, int64_t lanes, const char *device) {
    tri_options o = {.steps = 1, .lanes = lanes, .device = device};
    tri_tensor *p = tri_param(g, "p", TRI_SCALAR, (tri_init){TRI_CONSTANT, 0, 0});
    tri_assign(p, p);
    tri_run *run = tri_open(g, &o);
    if (!run) fail_msg("%s", tri_message());
    return run;
}

static void step(tri_run *run) {
    if (!tri_step(run)) fail_msg("%s", tri_message());
}

static float *numbers(const char *name, int64_t n, double size) {
    float *x = malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(size * random_normal(1, base_hash_text(name), (uint64_t)i));
    return x;
}

static void write_numbers(tri_run *run, const char *name, int64_t n, double size) {
    float *x = numbers(name, n, size);
    assert_int_equal(tri_write(run, name, x, (size_t)n * sizeof *x), TRI_OK);
    free(x);
}

static float *read_numbers(tri_run *run, const char *name, int64_t n) {
    float *x = malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    if (tri_read(run, name, x, (size_t)n * sizeof *x)) fail_msg("%s", tri_message());
    return x;
}

static void compare(const char *what, const float *a, const float *b, int64_t n, double limit) {
    double scale = 0;
    for (int64_t i = 0; i < n; i++) /* gcc 12 for ARM fails with fmax here */
        if (fabs((double)a[i]) > scale) scale = fabs((double)a[i]);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= limit * scale))
            fail_msg("%s: element %lld is %.9g, not %.9g", what, (long long)i, (double)b[i],
                     (double)a[i]);
}

/* ---- against its parts ---- */

#define SOURCES                                                                             \
    "%q = state() {name=\"q\", type=f32, shape=[2,3,70,8]}\n"                               \
    "%k = state() {name=\"k\", type=f32, shape=[2,3,90,8]}\n"                               \
    "%v = state() {name=\"v\", type=f32, shape=[2,3,90,8]}\n"                               \
    "%m = state() {name=\"m\", type=f32, shape=[90]}\n"                                     \
    "%w = state() {name=\"w\", type=f32, shape=[2,3,70,8]}\n"

static const char composed[] =
    "graph {batch=2, lanes=1}\n" SOURCES
    "%s = matmul(%q, %k) {trans_b=1}\n"
    "%h = constant() {value=0.5, type=f32}\n"
    "%t = mul(%s, %h)\n"
    "%u = add(%t, %m)\n"
    "%p = softmax(%u) {axis=3}\n"
    "%d, %kept = dropout(%p) {p=0.3} @ \"drop\"\n"
    "%y = matmul(%d, %v)\n";
static const char fused[] =
    "graph {batch=2, lanes=1}\n" SOURCES
    "%y, %l = attention(%q, %k, %v, %m) {scale=0.5, dropout=0.3} @ \"drop\"\n";

/* y and its derivatives, one after the other. */
#define Y_COUNT (2 * 3 * 70 * 8)
#define K_COUNT (2 * 3 * 90 * 8)
#define ALL_COUNT (2 * Y_COUNT + 2 * K_COUNT + 90)

static void run_text(const char *text, size_t bytes, float *to) {
    static const char *const names[] = {"y", "dq", "dk", "dv", "dm"};
    static const int64_t counts[] = {Y_COUNT, Y_COUNT, K_COUNT, K_COUNT, 90};
    tri_graph *g = tri_graph_parse(text, bytes, "attention");
    assert_int_equal(tri_graph_status(g), TRI_OK);
    tri_tensor *y = g->node[g->n_nodes - 1]->out, *dx[4];
    tri_tensor *by[] = {tri_find(g, "q"), tri_find(g, "k"), tri_find(g, "v"), tri_find(g, "m")};
    tri_grad(tri_sum(tri_mul(y, tri_find(g, "w")), TRI_ALL), by, 4, dx);
    tri_output(y, "y");
    for (int i = 0; i < 4; i++) tri_output(dx[i], names[i + 1]);
    tri_run *run = open_run(g, 1, "cpu");
    write_numbers(run, "q", Y_COUNT, 1);
    write_numbers(run, "k", K_COUNT, 1);
    write_numbers(run, "v", K_COUNT, 1);
    write_numbers(run, "m", 90, 1);
    write_numbers(run, "w", Y_COUNT, 1);
    step(run);
    for (int i = 0; i < 5; i++) {
        float *x = read_numbers(run, names[i], counts[i]);
        memcpy(to, x, (size_t)counts[i] * sizeof *x);
        to += counts[i];
        free(x);
    }
    assert_int_equal(tri_close(run), TRI_OK);
}

/* With dropout: it drops the elements that tri_dropout of that name drops. */
static void as_composed(void **state) {
    (void)state;
    static float a[ALL_COUNT], b[ALL_COUNT];
    run_text(composed, sizeof composed - 1, a);
    run_text(fused, sizeof fused - 1, b);
    compare("y", a, b, Y_COUNT, 1e-5);
    compare("derivatives", a + Y_COUNT, b + Y_COUNT, ALL_COUNT - Y_COUNT, 1e-5);
}

/* ---- lanes ---- */

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)epoch, (void)seed;
    for (int64_t i = 0; i < 20 * 12; i++)
        ((float *)out[0])[i] = (float)random_normal(1, (uint64_t)index, (uint64_t)i);
    return 0;
}

/* Trains two layers for three steps; the last y. */
static void train(int64_t lanes, int threads, float *y) {
    const tri_field field = {"x", TRI_F32, TRI_SHAPE(20, 12)};
    tri_options o = {.steps = 3, .lanes = lanes, .threads = threads, .no_shuffle = true,
                     .optimizer = {.name = "sgd", .lr = 0},
                     .source = tri_data_new("x", 6, &field, 1, fill, NULL, false)};
    tri_graph *g = tri_graph_new(6);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(6, 20, 12));
    tri_tensor *h = tri_attention(tri_dense(x, "qkv", 36), NULL, NULL, .heads = 3, .causal = true,
                                  .dropout = 0.2);
    tri_tensor *z = tri_attention(h, x, x, .heads = 2, .dropout = 0.5);
    tri_output(z, "z");
    tri_loss(tri_mean(tri_mul(z, z), TRI_ALL));
    tri_group_lr(g, "*", 0);
    tri_run *run = tri_open(g, &o);
    if (!run) fail_msg("%s", tri_message());
    while (tri_step(run)) continue;
    float *read = read_numbers(run, "z", 6 * 20 * 12);
    memcpy(y, read, 6 * 20 * 12 * sizeof *y);
    free(read);
    assert_int_equal(tri_close(run), TRI_OK);
}

static void same_for_lanes(void **state) {
    (void)state;
    static float first[6 * 20 * 12], other[6 * 20 * 12];
    train(1, 1, first);
    for (int64_t lanes = 1; lanes <= 6; lanes++)
        for (int threads = 1; threads <= 3; threads++) {
            train(lanes, threads, other);
            if (memcmp(first, other, sizeof first))
                fail_msg("other bits with %d lanes, %d threads", (int)lanes, threads);
        }
}

/* ---- long sequences ---- */

#define WIDTH 16

/* A run with y and the derivatives of sum(w y) by q, k, v, for one head with s queries and keys. */
static tri_run *long_run(int64_t s, bool causal) {
    tri_graph *g = tri_graph_new(1);
    tri_shape shape = TRI_SHAPE(1, 1, s, WIDTH);
    tri_init zero = {TRI_CONSTANT, 0, 0};
    static const char *const names[] = {"q", "k", "v", "w"};
    tri_tensor *in[4], *dx[3];
    for (int i = 0; i < 4; i++) in[i] = tri_state(g, names[i], TRI_F32, shape, zero);
    tri_tensor *y = tri_attention(in[0], in[1], in[2], .causal = causal, .scale = 1);
    tri_grad(tri_sum(tri_mul(y, in[3]), TRI_ALL), in, 3, dx);
    tri_output(y, "y");
    tri_output(dx[0], "dq");
    tri_output(dx[1], "dk");
    tri_output(dx[2], "dv");
    tri_run *run = open_run(g, 1, "cpu");
    for (int i = 0; i < 4; i++) write_numbers(run, names[i], s * WIDTH, i < 2 ? 0.7 : 1);
    return run;
}

static double dot(const float *a, const float *b) {
    double sum = 0;
    for (int i = 0; i < WIDTH; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

static bool sees(int64_t i, int64_t j, bool causal) { return !causal || j <= i; }

/* p[j] of query i, and its y. */
static void attend(const float *q, const float *k, const float *v, int64_t s, int64_t i,
                   bool causal, double *p, double y[WIDTH]) {
    double sum = 0;
    for (int64_t j = 0; j < s; j++)
        sum += p[j] = sees(i, j, causal) ? exp(dot(q + i * WIDTH, k + j * WIDTH)) : 0;
    memset(y, 0, WIDTH * sizeof *y);
    for (int64_t j = 0; j < s; j++) {
        p[j] /= sum;
        for (int d = 0; d < WIDTH; d++) y[d] += p[j] * (double)v[j * WIDTH + d];
    }
}

/* sum(w (v_j - y)) p, the derivative by the score of query i and key j. */
static double slope(double p, const float *w, const float *v, const double y[WIDTH]) {
    double sum = 0;
    for (int d = 0; d < WIDTH; d++) sum += (double)w[d] * ((double)v[d] - y[d]);
    return p * sum;
}

/* Rows of y and dq, and a row of dk and dv, in double. */
static void check_rows(tri_run *run, int64_t s, bool causal) {
    static const char *const names[] = {"q", "k", "v", "w", "y", "dq", "dk", "dv"};
    float *x[8];
    for (int i = 0; i < 8; i++) x[i] = read_numbers(run, names[i], s * WIDTH);
    const float *q = x[0], *k = x[1], *v = x[2], *w = x[3];
    double *p = malloc((size_t)s * sizeof *p), y[WIDTH];
    double dk[WIDTH] = {0}, dv[WIDTH] = {0};
    int64_t key = s / 3;
    assert_non_null(p);
    for (int64_t i = 0; i < s; i++) {
        attend(q, k, v, s, i, causal, p, y);
        double ds = slope(p[key], w + i * WIDTH, v + key * WIDTH, y);
        for (int d = 0; d < WIDTH; d++) {
            dk[d] += ds * (double)q[i * WIDTH + d];
            dv[d] += p[key] * (double)w[i * WIDTH + d];
        }
        if (i % 517 && i != s - 1) continue;
        double dq[WIDTH] = {0};
        for (int64_t j = 0; j < s; j++) {
            double by = slope(p[j], w + i * WIDTH, v + j * WIDTH, y);
            for (int d = 0; d < WIDTH; d++) dq[d] += by * (double)k[j * WIDTH + d];
        }
        for (int d = 0; d < WIDTH; d++) {
            assert_true(fabs(y[d] - (double)x[4][i * WIDTH + d]) <= 1e-5);
            assert_true(fabs(dq[d] - (double)x[5][i * WIDTH + d]) <= 2e-5);
        }
    }
    for (int d = 0; d < WIDTH; d++) {
        assert_true(fabs(dk[d] - (double)x[6][key * WIDTH + d]) <= 1e-4);
        assert_true(fabs(dv[d] - (double)x[7][key * WIDTH + d]) <= 1e-4);
    }
    free(p);
    for (int i = 0; i < 8; i++) free(x[i]);
}

static void long_sequence(void **state) {
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        tri_run *run = long_run(4096, causal);
        step(run);
        check_rows(run, 4096, causal);
        assert_int_equal(tri_close(run), TRI_OK);
    }
}

static int64_t peak_bytes(void) {
    struct rusage use;
    assert_int_equal(getrusage(RUSAGE_SELF, &use), 0);
    return (int64_t)use.ru_maxrss * 1024;
}

/* Scores of 16384 x 16384 would take 1 GB. Planned and touched memory are linear in s. */
static void memory_grows_linearly(void **state) {
    (void)state;
    int64_t planned[3] = {0}, s[] = {512, 4096, 16384};
    const bool few = getenv("FEW");
    for (int i = 0; i < (few ? 2 : 3); i++) {
        tri_run *run = long_run(s[i], true);
        int64_t before = peak_bytes();
        step(run);
        planned[i] = (int64_t)run->machine->thread->arena_bytes;
        assert_true(peak_bytes() - before <= planned[i] + (8 << 20));
        assert_int_equal(tri_close(run), TRI_OK);
    }
    /* Two tiles of 64 x 528 floats do not grow; everything else is rows of 64 bytes. */
    assert_true(planned[0] < 2 * 64 * 528 * 4 + 512 * 64 * 16);
    assert_true(planned[1] - planned[0] < (4096 - 512) * 64 * 16);
    if (!few) assert_true(planned[2] - planned[1] < (16384 - 4096) * 64 * 16);
}

/* ---- refusals of the builder ---- */

static void refuse(tri_graph *g, const char *a, const char *b) {
    assert_int_equal(tri_graph_status(g), TRI_USAGE);
    if (!strstr(tri_message(), a) || !strstr(tri_message(), b))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", tri_message(), a, b);
    tri_graph_free(g);
}

static tri_tensor *x(tri_graph *g, const char *name, tri_shape shape) {
    return tri_input(g, name, TRI_F32, shape);
}

static void mistakes(void **state) {
    (void)state;
    tri_graph *g = tri_graph_new(2);
    tri_tensor *q = x(g, "q", TRI_SHAPE(2, 3, 4, 8));
    tri_attention(q, x(g, "k", TRI_SHAPE(2, 3, 5, 8)), x(g, "v", TRI_SHAPE(2, 3, 6, 8)));
    refuse(g, "k and v must have as many rows", "");
    g = tri_graph_new(2);
    q = x(g, "q", TRI_SHAPE(2, 4, 10));
    tri_attention(q, q, q, .heads = 4);
    refuse(g, "4 heads", "10");
    g = tri_graph_new(2);
    q = x(g, "q", TRI_SHAPE(2, 4, 10));
    tri_attention(q, NULL, NULL, .heads = 2);
    refuse(g, "2 heads", "10");
    g = tri_graph_new(2);
    q = x(g, "q", TRI_SHAPE(2, 4, 12));
    tri_attention(q, q, q, .heads = 2, .mask = x(g, "m", TRI_SHAPE(2, 4)));
    refuse(g, "does not broadcast to [2, 2, 4, 4]", "mask");
    g = tri_graph_new(2);
    q = x(g, "q", TRI_SHAPE(2, 4, 12));
    tri_attention(q, q, q, .dropout = 1);
    refuse(g, "dropout is 1", "below 1");
    g = tri_graph_new(2);
    q = x(g, "q", TRI_SHAPE(2, 12));
    tri_attention(q, q, q);
    refuse(g, "[batch, heads, rows, size]", "[batch, rows, heads x size]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_composed),           cmocka_unit_test(same_for_lanes),
        cmocka_unit_test(memory_grows_linearly), cmocka_unit_test(long_sequence),
        cmocka_unit_test(mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
