/* SPDX-License-Identifier: Apache-2.0
 * Mixed precision: trained parameters stay close to f32, for any number of lanes; scopes; mistakes.
 * Loss scaling: exact, and steps that overflow are skipped. */
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
#include "ops/op.h"
#include "run/evaluate.h"
#include "train/scaling.h"

#define STEPS 10

static const char *const levels[] = {"O1", "O2", "O3"};

/* Whether the processor has products of bf16: only then does a run on cpu differ from f32. */
static bool cpu_has_bf16(void) {
    struct dev *dev = dev_find("cpu");
    return dev && !dev_open(dev) && dev->kind->target && !dev->kind->target->lacks(TRI_BF16);
}

static tri_run *opened(tri_graph *g, tri_options o) {
    tri_run *run = tri_open(g, &o);
    if (!run) fail_msg("%s", tri_message());
    return run;
}

struct trained {
    double loss[STEPS];
    char weights[65];
};

/* The losses of a few steps. */
static struct trained train(tri_graph *g, tri_options o) {
    struct trained t = {{0}, ""};
    char state[65];
    o.steps = STEPS;
    tri_run *run = opened(g, o);
    for (int i = 0; i < STEPS; i++) {
        assert_true(tri_step(run));
        t.loss[i] = tri_value(run, "loss");
        assert_true(isfinite(t.loss[i]));
    }
    tri_hash(run, t.weights, state);
    assert_int_equal(tri_close(run), TRI_OK);
    return t;
}

static void close_to(const struct trained *a, const struct trained *b, double tolerance,
                     const char *what) {
    for (int i = 0; i < STEPS; i++)
        if (!(fabs(a->loss[i] - b->loss[i]) <= tolerance * fabs(a->loss[i])))
            fail_msg("%s: the loss of step %d is %g, not %g", what, i + 1, b->loss[i], a->loss[i]);
    assert_string_not_equal(a->weights, b->weights);
}

/* ---- networks ---- */

/* Embeddings, attention from its parts, layer norm, a residual: the parts of transformers. */
static tri_graph *attentive(int64_t n) {
    tri_graph *g = tri_graph_new(n);
    enum { T = 6, W = 32 };
    tri_tensor *ids = tri_input(g, "ids", TRI_I64, TRI_SHAPE(n, T), .below = 11);
    tri_tensor *x = tri_embed(ids, "tokens", 11, W);
    tri_init normal = {TRI_NORMAL, 0, 0.3};
    x = tri_add(x, tri_param(g, "places", TRI_SHAPE(T, W), normal));
    for (int i = 0; i < 2; i++) {
        tri_push(g, "layer.%d", i);
        tri_tensor *h = tri_ln(x, "norm1"), *q = tri_dense(h, "q", W), *k = tri_dense(h, "k", W);
        tri_tensor *p = tri_softmax(tri_scale(tri_matmul(q, k, .trans_b = true), 0.17), 2);
        x = tri_add(x, tri_dense(tri_matmul(p, tri_dense(h, "v", W)), "out", W));
        x = tri_add(x, tri_dense(tri_gelu(tri_dense(tri_ln(x, "norm2"), "up", 64)), "down", W));
        tri_pop(g);
    }
    tri_loss(tri_cross_entropy(tri_dense(tri_ln(x, "norm"), "head", 11), ids));
    return g;
}

static tri_graph *small(const char *name, int64_t batch) {
    return strcmp(name, "attentive") ? tri_model_open(name, batch) : attentive(batch);
}

/* A regression with two layers, in which sample `*user` is NaN. */
static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)epoch, (void)seed;
    float *x = out[0];
    for (uint64_t i = 0; i < 4; i++) x[i] = (float)random_normal(1, (uint64_t)index, i);
    *(float *)out[1] = x[0] - x[1] * x[2];
    if (user && index == *(int64_t *)user) x[0] = INFINITY;
    return 0;
}

static tri_data *points(int64_t size, int64_t *bad) {
    const tri_field fields[] = {{"x", TRI_F32, TRI_SHAPE(4)}, {"y", TRI_F32, TRI_SHAPE(1)}};
    return tri_data_new("points", size, fields, 2, fill, bad, false);
}

static tri_graph *regression(int64_t n) {
    tri_graph *g = tri_graph_new(n);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(n, 4));
    tri_tensor *y = tri_input(g, "y", TRI_F32, TRI_SHAPE(n, 1));
    tri_loss(tri_mse(tri_dense(tri_relu(tri_dense(x, "fc1", 8)), "fc2", 1), y));
    return g;
}

/* ---- closeness ---- */

static const struct {
    const char *model;
    int64_t batch, lanes;
    double tolerance;
    tri_optimizer optimizer;
} rows[] = {
    {"lenet5", 16, 1, 0.01, {.name = "momentum", .lr = 0.02}},
    {"cnn:width=4", 12, 3, 0.03, {.name = "adamw", .lr = 0.002}},
    {"resnet18:form=small,width=4,classes=10", 8, 2, 0.05, {.name = "momentum", .lr = 0.01}},
    {"attentive", 8, 2, 0.03, {.name = "adam", .lr = 0.005}},
    {"bert-tiny:layers=1,hidden=32,heads=2,inner=64,vocab=101,seq=16", 6, 2, 0.02,
     {.name = "adamw", .lr = 0.002}},
    {"gpt2-tiny:layers=1,hidden=32,heads=2,inner=64,vocab=101,seq=16", 4, 1, 0.02,
     {.name = "adamw", .lr = 0.002}},
};

static void stays_close_to_f32(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        tri_options o = {.lanes = rows[i].lanes, .optimizer = rows[i].optimizer};
        o.device = cpu_has_bf16() ? "cpu" : "ref";
        if (!cpu_has_bf16() && strstr(rows[i].model, "resnet")) continue; /* too slow for ref */
        struct trained full = train(small(rows[i].model, rows[i].batch), o);
        for (size_t k = 0; k < COUNT(levels); k++) {
            char what[96];
            snprintf(what, sizeof what, "%s, %s", rows[i].model, levels[k]);
            o.amp = levels[k];
            struct trained half = train(small(rows[i].model, rows[i].batch), o);
            close_to(&full, &half, rows[i].tolerance, what);
        }
    }
}

/* Products have the same operands however the batch is divided; sums over lanes are f32. */
static void lanes_change_little(void **state) {
    (void)state;
    tri_options o = {.amp = "O1", .lanes = 1, .device = cpu_has_bf16() ? "cpu" : "ref",
                     .optimizer = {.name = "momentum", .lr = 0.02}};
    struct trained one = train(small("lenet5", 12), o);
    for (o.lanes = 2; o.lanes <= 4; o.lanes++) {
        struct trained more = train(small("lenet5", 12), o);
        close_to(&one, &more, 0.002, "lanes");
        struct trained again = train(small("lenet5", 12), o);
        assert_string_equal(more.weights, again.weights);
    }
    o.lanes = 0; /* the default does not follow from the precision */
    for (int half = 0; half < 2; half++) {
        o.amp = half ? "O2" : NULL;
        tri_run *run = opened(small("lenet5", 64), o);
        assert_int_equal(run_lanes(run), 4);
        assert_int_equal(tri_close(run), TRI_OK);
    }
}

static void devices_agree(void **state) {
    (void)state;
    if (!cpu_has_bf16()) return;
    tri_options o = {.amp = "O2", .lanes = 2, .device = "cpu", .optimizer = {.lr = 0.05}};
    struct trained cpu = train(small("attentive", 8), o);
    o.device = "ref";
    struct trained ref = train(small("attentive", 8), o);
    close_to(&cpu, &ref, 0.01, "ref against cpu");
}

/* ---- scopes and results ---- */

static struct trained train_scoped(const char *amp, const char *pattern, tri_type type) {
    tri_graph *g = regression(8);
    if (pattern) tri_precision(g, pattern, type);
    return train(g, (tri_options){.amp = amp, .device = "ref", .source = points(80, NULL)});
}

static void scopes_have_their_own_precision(void **state) {
    (void)state;
    struct trained none = train_scoped(NULL, NULL, TRI_F32);
    struct trained zero = train_scoped("O0", NULL, TRI_F32);
    struct trained all = train_scoped("O2", NULL, TRI_F32);
    struct trained one = train_scoped("O2", "fc1", TRI_F32);
    struct trained back = train_scoped("O2", "*", TRI_F32);
    struct trained low = train_scoped(NULL, "fc?", TRI_BF16);
    struct trained part = train_scoped(NULL, "fc1", TRI_BF16);
    assert_string_equal(none.weights, zero.weights);
    assert_string_equal(none.weights, back.weights);
    assert_string_not_equal(none.weights, all.weights);
    assert_string_not_equal(all.weights, one.weights);
    assert_string_not_equal(none.weights, one.weights);
    assert_string_not_equal(none.weights, low.weights);
    assert_string_not_equal(low.weights, part.weights);
    /* The open scope. */
    tri_graph *g = tri_graph_new(2);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(2, 4));
    tri_push(g, "head");
    tri_precision(g, NULL, TRI_BF16);
    tri_tensor *y = tri_dense(x, "fc", 3), *product = y->node->in[0];
    tri_pop(g);
    tri_output(y, "y");
    tri_options o = {.forward = true, .device = "ref"};
    tri_run *run = opened(g, o);
    assert_int_equal(tri_type_of(product), TRI_BF16);
    float out[6] = {0};
    assert_int_equal(tri_forward(run), TRI_OK);
    assert_int_equal(tri_read(run, "y", out, sizeof out), TRI_OK); /* f32, as declared */
    assert_int_equal(tri_close(run), TRI_OK);
}

/* Evaluation has the precision of training; running statistics and parameters are f32. */
static void evaluation_follows(void **state) {
    (void)state;
    double loss[2];
    for (int half = 0; half < 2; half++) {
        tri_graph *g = tri_model_open("cnn:width=2", 8);
        tri_data *data = tri_data_open("synthetic:size=20", g, 3);
        tri_options o = {.amp = half ? "O2" : NULL, .steps = 3, .device = "ref"};
        tri_run *run = opened(g, o);
        while (tri_step(run)) continue;
        for (size_t i = 0; i < run->store.n; i++)
            assert_true(run->store.entry[i].spec.type == TRI_F32 ||
                        run->store.entry[i].spec.type == TRI_I64);
        assert_int_equal(tri_evaluate(run, data), TRI_OK);
        loss[half] = tri_result(run, "loss");
        tri_data_free(data);
        assert_int_equal(tri_close(run), TRI_OK);
    }
    assert_true(fabs(loss[0] - loss[1]) < 0.02 * loss[0] && loss[0] != loss[1]);
}

static void composed(tri_graph *g) {
    tri_minimize(tri_find(g, "loss"), (tri_optimizer){.name = "sgd"});
}
static void unmatched(tri_graph *g) { tri_precision(g, "fc3", TRI_BF16); }
static void whole_numbers(tri_graph *g) { tri_precision(g, "fc1", TRI_I32); }
static void no_scope(tri_graph *g) { tri_precision(g, NULL, TRI_BF16); }

static void mistakes(void **state) {
    (void)state;
    const struct {
        void (*build)(tri_graph *g);
        tri_options o;
        const char *says;
    } cases[] = {
        {NULL, {.amp = "O4"}, "is \"O4\"; it can be O0, O1, O2 or O3"},
        {NULL, {.amp = "O"}, "is \"O\""},
        {NULL, {.amp = "O12"}, "is \"O12\""},
        {NULL, {.amp = "O1", .amp_type = "fp16"}, "is \"fp16\"; it can be bf16 or f16"},
        {NULL, {.optimizer = {.loss_scale = "3"}}, "power of two"},
        {NULL, {.optimizer = {.loss_scale = "0"}}, "power of two"},
        {NULL, {.optimizer = {.loss_scale = "dynamics"}}, "power of two"},
        {NULL, {.optimizer = {.loss_scale = "dynamic:every=0"}}, "power of two"},
        {NULL, {.optimizer = {.loss_scale = "dynamic:start=33554432"}}, "power of two"},
        {composed, {.optimizer = {.loss_scale = "2"}}, "updates its parameters itself, without the "
                                                       "loss scale"},
        {composed, {.optimizer = {.name = "adam"}}, "updates its parameters itself, without the "
                                                    "optimizer"},
        {unmatched, {.amp = "O1"}, "matches \"fc3\""},
        {whole_numbers, {.amp = NULL}, "i32 is no floating-point type"},
        {no_scope, {.amp = NULL}, "no scope is open"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        tri_graph *g = regression(4);
        if (cases[i].build) cases[i].build(g);
        tri_options o = cases[i].o;
        o.steps = 1;
        assert_null(tri_open(g, &o));
        if (!strstr(tri_message(), cases[i].says)) fail_msg("the message is: %s", tri_message());
    }
}

/* ---- derivatives ---- */

enum { PLACES = 97 };

/* The slopes of an operator in a type, at numbers that all types can represent. */
static void slopes(tri_tensor *(*op)(tri_tensor *x), tri_type type, float *out) {
    float at[PLACES];
    for (int i = 0; i < PLACES; i++) at[i] = (float)(i - PLACES / 2) / 16;
    tri_graph *g = tri_graph_new(1);
    tri_tensor *p = tri_param(g, "p", TRI_SHAPE(PLACES), (tri_init){0}), *dp;
    tri_tensor *y = tri_cast(op(tri_cast(p, type)), TRI_F32);
    tri_grad(tri_sum(y, TRI_ALL), &p, 1, &dp);
    tri_output(dp, "slope");
    tri_assign(p, tri_scale(dp, 0));
    tri_run *run = opened(g, (tri_options){.steps = 1, .device = "ref"});
    assert_int_equal(tri_write(run, "p", at, sizeof at), TRI_OK);
    assert_true(tri_step(run));
    assert_int_equal(tri_read(run, "slope", out, sizeof at), TRI_OK);
    assert_int_equal(tri_close(run), TRI_OK);
}

static tri_tensor *norm(tri_tensor *x) { return tri_global_norm(&x, 1); }
static tri_tensor *to_the_zero(tri_tensor *x) { return tri_pow(x, op_constant_like(0, x)); }

/* Also the derivative of the derivative's square, in which nothing may divide by 0. */
static void flat_derivatives(void **state) {
    (void)state;
    enum { N = 6 };
    static const struct {
        tri_tensor *(*of)(tri_tensor *x);
        float at[N];
    } cases[] = {{norm, {0}},
                 {norm, {0, -0.0f}},
                 {to_the_zero, {0, -0.0f, 1e-40f, -1e-45f, 3, -INFINITY}}};
    for (size_t i = 0; i < COUNT(cases); i++)
        for (tri_type type = TRI_F32; type <= TRI_F16; type++) {
            tri_graph *g = tri_graph_new(1);
            tri_tensor *p = tri_param(g, "p", TRI_SHAPE(N), (tri_init){0}), *dp, *twice;
            tri_grad(tri_sum(cases[i].of(tri_cast(p, type)), TRI_ALL), &p, 1, &dp);
            tri_grad(tri_sum(tri_mul(dp, dp), TRI_ALL), &p, 1, &twice);
            tri_output(dp, "first");
            tri_output(twice, "second");
            tri_assign(p, p);
            tri_run *run = opened(g, (tri_options){.steps = 1, .device = "ref"});
            float first[N], second[N];
            assert_int_equal(tri_write(run, "p", cases[i].at, sizeof cases[i].at), TRI_OK);
            assert_true(tri_step(run));
            assert_int_equal(tri_read(run, "first", first, sizeof first), TRI_OK);
            assert_int_equal(tri_read(run, "second", second, sizeof second), TRI_OK);
            for (int k = 0; k < N; k++)
                if (first[k] != 0 || second[k] != 0)
                    fail_msg("row %zu, %s, place %d: %g, %g", i, tri_type_name(type), k,
                             (double)first[k], (double)second[k]);
            assert_int_equal(tri_close(run), TRI_OK);
        }
}

/* The derivative in a half type is that of f32, rounded once; if it is computed from a result that
 * is itself rounded, it has that error too. */
static void derivatives_are_rounded_once(void **state) {
    (void)state;
    const struct {
        tri_tensor *(*op)(tri_tensor *x);
        double absolute;
    } ops[] = {{(tri_gelu), 0}, {(tri_gelu_tanh), 0}, {(tri_silu), 0},       {(tri_softplus), 0},
               {(tri_erf), 0},  {(tri_tanh), 0x1p-7}, {(tri_sigmoid), 0x1p-8}};
    for (size_t i = 0; i < COUNT(ops); i++) {
        float full[PLACES], half[PLACES];
        slopes(ops[i].op, TRI_F32, full);
        slopes(ops[i].op, TRI_BF16, half);
        for (int k = 0; k < PLACES; k++) {
            double d = fabs((double)half[k] - (double)full[k]), f = fabs((double)full[k]);
            if (!(d <= 0x1.01p-8 * f + ops[i].absolute))
                fail_msg("operator %zu, place %d: %g, not %g", i, k, (double)half[k],
                         (double)full[k]);
        }
    }
}

/* ---- loss scaling ---- */

/* Powers of two change no digit. */
static void scaling_is_exact(void **state) {
    (void)state;
    char first[65] = "";
    const char *const scales[] = {NULL, "off", "1024", "1", "dynamic", "dynamic:start=8,every=2"};
    for (size_t i = 0; i < COUNT(scales); i++) {
        tri_options o = {.lanes = 2, .source = points(80, NULL),
                         .optimizer = {.name = "adam", .clip_norm = 0.5, .loss_scale = scales[i]}};
        struct trained t = train(regression(8), o);
        if (!i) memcpy(first, t.weights, sizeof first);
        assert_string_equal(first, t.weights);
    }
}

static void scale_grows(void **state) {
    (void)state;
    const double expected[] = {8, 16, 16, 32, 32, 64};
    tri_options o = {.steps = 6, .source = points(80, NULL),
                     .optimizer = {.loss_scale = "dynamic:start=8,every=2"}};
    tri_run *run = opened(regression(8), o);
    for (size_t i = 0; i < COUNT(expected); i++) {
        float scale;
        assert_true(tri_step(run));
        assert_int_equal((int)tri_value(run, "loss_scale"), (int)expected[i]);
        assert_int_equal(tri_read(run, "optimizer.loss_scale", &scale, sizeof scale), TRI_OK);
        assert_int_equal((int)scale, (int)expected[i]);
    }
    assert_int_equal((int)tri_value(run, "skipped"), 0);
    assert_int_equal(tri_close(run), TRI_OK);
}

/* Weights, moments and the number of updates: everything that an update changes. */
struct snapshot {
    float weight[32], mean[32], updates;
};

static struct snapshot look(const tri_run *run) {
    struct snapshot s;
    assert_int_equal(tri_read(run, "fc1.weight", s.weight, sizeof s.weight), TRI_OK);
    assert_int_equal(tri_read(run, "optimizer.mean.fc1.weight", s.mean, sizeof s.mean), TRI_OK);
    assert_int_equal(tri_read(run, "optimizer.updates", &s.updates, sizeof s.updates), TRI_OK);
    return s;
}

/* The third step has a sample that is NaN. */
static void overflow_skips_a_step(void **state) {
    (void)state;
    int64_t bad = 19;
    const char *const scales[] = {"dynamic:start=64,every=4", "64"};
    for (int64_t lanes = 1; lanes <= 4; lanes++)
        for (size_t k = 0; k < COUNT(scales); k++) {
            tri_options o = {.steps = 7, .lanes = lanes, .no_shuffle = true,
                             .source = points(80, &bad),
                             .optimizer = {.name = "adam", .loss_scale = scales[k]}};
            tri_run *run = opened(regression(8), o);
            struct snapshot before, after;
            for (int i = 1; i <= 7; i++) {
                before = look(run);
                assert_true(tri_step(run));
                after = look(run);
                bool same = !memcmp(&before, &after, sizeof before);
                assert_int_equal(same, i == 3);
                assert_int_equal((int)tri_value(run, "skipped"), i >= 3);
                if (!k) assert_int_equal((int)tri_value(run, "loss_scale"), i < 3   ? 64
                                                                            : i < 7 ? 32
                                                                                    : 64);
            }
            assert_int_equal((int)after.updates, 6);
            assert_int_equal(tri_close(run), TRI_OK);
        }
}

/* f16 overflows with the largest scale, and learns with a smaller one. */
static void f16_finds_its_scale(void **state) {
    (void)state;
    tri_options o = {.amp = "O2", .amp_type = "f16", .device = "ref", .steps = 40, .lanes = 2,
                     .source = points(320, NULL),
                     .optimizer = {.name = "momentum", .lr = 0.02,
                                   .loss_scale = "dynamic:start=16777216"}};
    tri_run *run = opened(regression(8), o);
    double first = 0, last = 0;
    for (int i = 0; i < 40; i++) {
        assert_true(tri_step(run));
        *(i < 10 ? &first : &last) += i < 10 || i >= 30 ? tri_value(run, "loss") : 0;
    }
    double scale = tri_value(run, "loss_scale"), skipped = tri_value(run, "skipped");
    assert_true(skipped > 3 && skipped < 20 && scale < 0x1p22 && scale > 64);
    assert_int_equal((int)(scale * exp2(skipped)), 1 << 24);
    assert_true(last < 0.9 * first);
    assert_int_equal(tri_close(run), TRI_OK);
    /* By default f16 is scaled and bf16 is not. */
    for (int bf16 = 0; bf16 < 2; bf16++) {
        o = (tri_options){.amp = "O1", .amp_type = bf16 ? "bf16" : "f16", .device = "ref",
                          .steps = 1, .source = points(80, NULL)};
        run = opened(regression(8), o);
        assert_true(tri_step(run));
        assert_true(bf16 ? isnan(tri_value(run, "loss_scale"))
                         : tri_value(run, "loss_scale") > 1);
        assert_int_equal(tri_close(run), TRI_OK);
    }
}

static void scales_as_text(void **state) {
    (void)state;
    const struct {
        const char *text;
        double start;
        int64_t every;
    } texts[] = {{NULL, 0, 0},
                 {"off", 0, 0},
                 {"2", 2, 0},
                 {"dynamic", 65536, 2000},
                 {"dynamic:every=5", 65536, 5},
                 {"dynamic:start=4,every=7", 4, 7}};
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct scaling s;
        assert_int_equal(scaling_parse(texts[i].text, &s), TRI_OK);
        assert_true(s.start == texts[i].start && s.every == texts[i].every);
    }
}

/* ---- a step of the program's own ---- */

/* What the library adds for the optimizer `o`, from its parts. */
static void own_step(tri_graph *g, tri_optimizer o) {
    tri_tensor *params[128], *grads[128];
    int n = tri_param_count(g);
    assert_true(n <= 128);
    for (int i = 0; i < n; i++) params[i] = tri_param_at(g, i);
    tri_tensor *scaled = tri_scale_loss(tri_find(g, "loss"), o.loss_scale);
    tri_grad(scaled, params, n, grads);
    tri_tensor *finite = tri_unscale(scaled, grads, n);
    tri_metric(tri_clip_by_norm(grads, n, o.clip_norm), "norm");
    tri_update(params, grads, n, o, finite);
}

/* The text of a graph says enough, too. */
static tri_graph *read_again(tri_graph *g) {
    char *text = tri_graph_print(g);
    tri_graph *other = text ? tri_graph_parse(text, strlen(text), "text") : NULL;
    if (!other || tri_graph_status(other)) fail_msg("%s", tri_message());
    free(text);
    tri_graph_free(g);
    return other;
}

static tri_graph *residual_sums(int64_t n) {
    tri_graph *g = tri_graph_new(n);
    tri_tensor *p[3], *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(n, 4));
    tri_tensor *y = tri_input(g, "y", TRI_F32, TRI_SHAPE(n, 1));
    for (int i = 0; i < 3; i++)
        p[i] = tri_param(g, (const char *[]){"a", "b", "c"}[i], TRI_SHAPE(n, 4),
                         (tri_init){TRI_NORMAL, 0, 1});
    tri_push(g, "low"); /* one derivative in f32; rounded for a and b, but not for c */
    tri_tensor *sum = tri_add(tri_add(x, p[0]), p[1]);
    tri_pop(g);
    tri_precision(g, "low", TRI_BF16);
    tri_push(g, "high");
    sum = tri_mul(tri_add(sum, p[2]), x);
    tri_pop(g);
    tri_precision(g, "high", TRI_F32);
    tri_loss(tri_mse(tri_dense(sum, "fc", 1), y));
    return g;
}

static void composed_steps_get_the_types_too(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(rows) + 1; i++) {
        bool sums = i == COUNT(rows);
        tri_optimizer of = sums ? (tri_optimizer){.name = "adam"} : rows[i].optimizer;
        if (!sums && strstr(rows[i].model, "resnet")) continue; /* too slow for ref */
        of.clip_norm = 0.5;
        of.loss_scale = "dynamic:start=8,every=1";
        for (size_t k = 0; k < COUNT(levels); k++) {
            char first[65] = "";
            for (int own = 0; own < 3; own++) {
                tri_options o = {.amp = levels[k], .lanes = sums ? 1 : rows[i].lanes,
                                 .optimizer = of, .device = cpu_has_bf16() ? "cpu" : "ref",
                                 .source = sums ? points(80, NULL) : NULL};
                tri_graph *g = sums ? residual_sums(8) : small(rows[i].model, rows[i].batch);
                if (own) own_step(g, of);
                if (own == 2) o.optimizer = (tri_optimizer){0}; /* a text has the rate alone */
                struct trained t = train(own == 2 ? read_again(g) : g, o);
                if (!own) memcpy(first, t.weights, sizeof first);
                if (strcmp(first, t.weights))
                    fail_msg("%s, %s, %s: other bits", sums ? "sums" : rows[i].model, levels[k],
                             own == 2 ? "as text" : "own step");
            }
        }
    }
}

/* A step that differentiates twice, keeps an average of what it sees, and names a derivative. */
static void penalised(tri_graph *g) {
    tri_tensor *w = tri_find(g, "fc1.weight"), *x = tri_find(g, "x"), *dx, *dw;
    tri_tensor *loss = tri_find(g, "loss");
    tri_grad(loss, &x, 1, &dx);
    tri_tensor *mean = tri_state(g, "mean", TRI_F32, TRI_SCALAR, (tri_init){0});
    tri_tensor *next = tri_add(tri_scale(mean, 0.9), tri_scale(tri_mean(dx, TRI_ALL), 0.1));
    tri_assign(mean, next);
    tri_grad(tri_add(loss, tri_sum(tri_mul(dx, dx), TRI_ALL)), &w, 1, &dw);
    tri_output(dw, "dw");
    tri_assign(w, tri_sub(w, tri_scale(dw, 0.05)));
}

static void derivatives_of_derivatives(void **state) {
    (void)state;
    struct trained of[3];
    for (int i = 0; i < 3; i++) {
        tri_graph *g = regression(8);
        penalised(g);
        of[i] = train(i == 2 ? read_again(g) : g,
                      (tri_options){.amp = i ? "O2" : NULL, .lanes = 1, .device = "ref",
                                    .source = points(80, NULL)});
    }
    close_to(&of[0], &of[1], 0.05, "differentiated twice");
    assert_string_equal(of[1].weights, of[2].weights);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flat_derivatives),
        cmocka_unit_test(stays_close_to_f32),    cmocka_unit_test(lanes_change_little),
        cmocka_unit_test(devices_agree),         cmocka_unit_test(scopes_have_their_own_precision),
        cmocka_unit_test(evaluation_follows),    cmocka_unit_test(mistakes),
        cmocka_unit_test(derivatives_are_rounded_once),
        cmocka_unit_test(scaling_is_exact),      cmocka_unit_test(scale_grows),
        cmocka_unit_test(overflow_skips_a_step), cmocka_unit_test(f16_finds_its_scale),
        cmocka_unit_test(scales_as_text),        cmocka_unit_test(derivatives_of_derivatives),
        cmocka_unit_test(composed_steps_get_the_types_too),
    };
    return cmocka_run_group_tests_name("precision", tests, NULL, NULL);
}
