/* SPDX-License-Identifier: Apache-2.0
 * Passes that can be left out change no bit of training: weights, state and loss are the same with
 * all of them, without any, and without each. Also their benefits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/run.h"

/* ---- networks ---- */

/* What the passes look for: casts and transposes and their inverses, numbers made of numbers,
 * expressions that are computed twice and such that only look so (two dropouts), unused results, a
 * copy of a parameter. */
static void crooked(tri_graph *g) {
    int64_t n = tri_batch(g);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(n, 6, 4));
    tri_tensor *y = tri_input(g, "y", TRI_F32, TRI_SHAPE(n, 3));
    tri_tensor *h = tri_dense(x, "fc1", 8);
    tri_tensor *a = tri_dropout(tri_relu(h), 0.3), *b = tri_dropout(tri_relu(h), 0.3);
    h = tri_add(a, tri_scale(b, 1));
    h = tri_transpose(tri_transpose(h, TRI_SHAPE(0, 2, 1)), TRI_SHAPE(0, 2, 1));
    h = tri_cast(tri_cast(h, TRI_BF16), TRI_F32);
    tri_tensor *half = tri_mul(tri_constant(g, 0.1, TRI_F32), tri_constant(g, 5, TRI_F32));
    h = tri_mul(tri_sub(h, tri_sqrt(half)), tri_div(half, tri_add_number(half, 0.7)));
    tri_exp(h);
    tri_tensor *z = tri_dense(tri_flatten(h, 1), "fc2", 3);
    tri_tensor *w = tri_find(g, "fc2.weight");
    tri_tensor *copy = tri_state(g, "copy", TRI_F32, tri_shape_of(w), (tri_init){.kind = 0});
    tri_assign(copy, w);
    tri_output(tri_stop_gradient(w), "before");
    tri_output(tri_scale(z, 1), "z");
    tri_loss(tri_add(tri_mse(z, y), tri_scale(tri_sum(tri_mul(w, w), TRI_ALL), 0.01)));
}

struct net {
    const char *model; /* of the zoo; null: crooked */
    const char *optimizer;
    int64_t batch, lanes;
    double clip;
    const char *recompute, *amp;
};

static const struct net nets[] = {
    {"linear", "sgd", 16, 1, 0, NULL, NULL},
    {"mlp:hidden=24,size=8", "adamw", 12, 3, 0.5, NULL, NULL},
    {"lenet5", "momentum", 6, 2, 0, NULL, NULL},
    {"cnn:width=4", "adam", 8, 2, 0, NULL, NULL},
    {"resnet18:form=small,width=4,classes=5", "nesterov", 8, 1, 0, NULL, NULL},
    {"resnet50:form=small,width=4,classes=5", "momentum", 6, 2, 0, NULL, NULL},
    {"resnet18:form=small,width=4,classes=5", "momentum", 8, 2, 0, "layer?.?", NULL},
    {"resnet18:form=small,width=4,classes=5", "adamw", 4, 1, 0, "layer?.?", "O1"},
    {"bert-tiny:seq=16,hidden=16,inner=24,vocab=50,predictions=3", "adamw", 4, 2, 1,
     "*.layer.?", NULL},
    {"gpt2-tiny:seq=12,hidden=16,inner=24,vocab=50", "lamb", 4, 1, 0, "*.h.?,*.attn", "O2"},
    {"cnn:width=4", "sgd", 8, 1, 0, "*relu*,*batch_norm", NULL},
    {NULL, "adamw", 5, 1, 1, "*", NULL},
    {NULL, "sgd", 7, 3, 0, "dropout*", NULL},
};

struct result {
    char weights[65], state[65];
    double loss;
};

static tri_graph *open_net(const struct net *n) {
    if (n->model) return tri_model_open(n->model, n->batch);
    tri_graph *g = tri_graph_new(n->batch);
    crooked(g);
    return g;
}

static struct result train(const struct net *n, tri_options o) {
    struct result r;
    o.steps = 3;
    o.lanes = n->lanes;
    o.recompute = n->recompute;
    o.amp = n->amp;
    o.seed = 5;
    o.optimizer = (tri_optimizer){.name = n->optimizer, .lr = 0.01, .weight_decay = 0.01,
                                  .clip_norm = n->clip};
    tri_run *run = tri_open(open_net(n), &o);
    if (!run) fail_msg("%s", tri_message());
    while (tri_step(run)) continue;
    tri_hash(run, r.weights, r.state);
    r.loss = tri_value(run, "loss");
    assert_int_equal(tri_close(run), TRI_OK);
    return r;
}

static void assert_same(const struct net *n, tri_options o, const struct result *want) {
    struct result r = train(n, o);
    if (strcmp(r.weights, want->weights) || strcmp(r.state, want->state) ||
        memcmp(&r.loss, &want->loss, sizeof r.loss))
        fail_msg("%s with %s on %s: other bits", n->model ? n->model : "crooked", o.passes,
                 o.device ? o.device : "cpu");
}

static void switches_keep_the_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(nets); i++) {
        struct result want = train(&nets[i], (tri_options){0});
        assert_same(&nets[i], (tri_options){.passes = "-all"}, &want);
        for (int k = 0; k < passes_count(); k++) {
            char word[64];
            if (!passes_may(k)) continue;
            snprintf(word, sizeof word, "-%s", passes_name(k));
            assert_same(&nets[i], (tri_options){.passes = word}, &want);
        }
    }
}

/* The small ones: the reference is slow. */
static void switches_keep_the_bits_of_the_reference(void **state) {
    (void)state;
    const size_t small[] = {0, 1, COUNT(nets) - 2, COUNT(nets) - 1};
    for (size_t i = 0; i < COUNT(small); i++) {
        const struct net *n = &nets[small[i]];
        struct result want = train(n, (tri_options){.device = "ref"});
        assert_same(n, (tri_options){.device = "ref", .passes = "-all"}, &want);
    }
}

/* ---- memory ---- */

/* Bytes of a step's values at once. */
static size_t arena_of(const char *model, tri_options o) {
    o.steps = 1;
    o.batch = 16;
    if (!o.lanes) o.lanes = 1;
    tri_run *run = tri_open(tri_model_open(model, o.batch), &o);
    if (!run) fail_msg("%s", tri_message());
    size_t bytes = run->machine->thread[0].arena_bytes;
    assert_int_equal(tri_close(run), TRI_OK);
    return bytes;
}

static void recomputation_saves_memory(void **state) {
    (void)state;
    const char *model = "resnet18:form=small,width=8";
    size_t all = arena_of(model, (tri_options){0});
    size_t blocks = arena_of(model, (tri_options){.recompute = "layer?.?"});
    size_t some = arena_of(model, (tri_options){.recompute = "*relu*,*batch_norm"});
    assert_true(blocks < all * 3 / 4);
    assert_true(some < all);
    print_message("%zu bytes; blocks again: %zu, norm and relu again: %zu\n", all, blocks, some);
}

/* A parameter's new value takes the place of the old one, and results that of operands that end. */
static void memory_is_reused(void **state) {
    (void)state;
    const char *const models[] = {"mlp:hidden=64", "lenet5"};
    for (size_t i = 0; i < COUNT(models); i++) {
        tri_options o = {.lanes = 1, .optimizer.name = "adamw"};
        size_t in_place = arena_of(models[i], o);
        o.passes = "-in-place";
        size_t apart = arena_of(models[i], o);
        assert_true(in_place < apart * 9 / 10);
    }
}

static void order_saves_memory(void **state) {
    (void)state;
    const char *const models[] = {"linear", "mlp:hidden=64,size=8", "lenet5", "cnn",
                                  "resnet18:form=small,width=8", "resnet50:form=small,width=8"};
    const char *const optimizers[] = {"sgd", "adamw"};
    size_t saved = 0;
    for (size_t i = 0; i < COUNT(models) * COUNT(optimizers) * 2; i++) {
        const char *model = models[i / 4];
        tri_options o = {.lanes = (int64_t)(i % 2 + 1)};
        o.optimizer.name = optimizers[i / 2 % 2];
        size_t after = arena_of(model, o);
        o.passes = "-order";
        size_t before = arena_of(model, o);
        /* A kernel's own memory is known only after it is prepared: small networks may need
         * more. */
        if (after > before + before / 5)
            fail_msg("%s, %s: %zu bytes in order, %zu without", model, o.optimizer.name, after,
                     before);
        saved += before > after ? before - after : 0;
    }
    assert_true(saved > 0);
}

/* A scope's name is taken literally, even if it looks like a pattern. */
static void a_scope_can_be_computed_again(void **state) {
    (void)state;
    tri_graph *g = tri_graph_new(4);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(4, 3));
    for (int i = 0; i < 2; i++) {
        tri_push(g, "part[%d]*", i);
        if (i) tri_recompute(g, NULL);
        x = tri_tanh(tri_exp(tri_dense(x, "fc", 3)));
        tri_pop(g);
    }
    tri_loss(tri_mean(x, TRI_ALL));
    tri_options o = {.lanes = 1};
    char *text = passes_dump(g, &o, NULL, "recompute");
    assert_non_null(text);
    assert_non_null(strstr(text, "again.part[1]*.exp"));
    assert_null(strstr(text, "again.part[0]*"));
    free(text);
    tri_graph_free(g);
    g = tri_graph_new(4);
    tri_recompute(g, NULL);
    assert_int_equal(tri_graph_status(g), TRI_USAGE);
    assert_non_null(strstr(tri_message(), "no scope is open"));
    tri_graph_free(g);
}

/* ---- folded norms ---- */

static void evaluate(const char *passes, const char *device, double *loss) {
    tri_options o = {.steps = 4, .lanes = 1, .passes = passes, .device = device,
                     .optimizer = {.lr = 0.05}};
    tri_graph *g = tri_model_open("cnn:width=4,classes=5", 8);
    tri_data *data = tri_data_open("synthetic:size=12", g, 3);
    tri_run *run = tri_open(g, &o);
    if (!run || !data) fail_msg("%s", tri_message());
    while (tri_step(run)) continue;
    assert_int_equal(tri_evaluate(run, data), TRI_OK);
    *loss = tri_result(run, "loss");
    tri_data_free(data);
    assert_int_equal(tri_close(run), TRI_OK);
}

static void folded_norms_are_close(void **state) {
    (void)state;
    double folded, unfolded;
    for (int ref = 0; ref < 2; ref++) {
        evaluate(NULL, ref ? "ref" : NULL, &folded);
        evaluate("-fold-norm", ref ? "ref" : NULL, &unfolded);
        assert_true(folded > 0 && fabs(folded - unfolded) < 1e-5 * unfolded);
    }
}

static void all_norms_of_resnets_are_folded(void **state) {
    (void)state;
    tri_options o = {.forward = true};
    tri_graph *g = tri_model_open("resnet50", 2);
    char *text = passes_dump(g, &o, NULL, "phases");
    assert_non_null(text);
    assert_null(strstr(text, "= batch_norm("));
    free(text);
    tri_graph_free(g);
}

/* ---- mistakes ---- */

static void assert_refused(tri_options o, const char *words) {
    const struct net *n = &nets[0];
    o.steps = 1;
    assert_null(tri_open(open_net(n), &o));
    if (!strstr(tri_message(), words)) fail_msg("the message is: %s", tri_message());
}

static void unknown_passes_are_reported(void **state) {
    (void)state;
    assert_refused((tri_options){.passes = "-ces"}, "do you mean cse?");
    assert_refused((tri_options){.passes = "-layout"}, "it is now called format;");
    assert_refused((tri_options){.passes = "-train"}, "that can be left out");
    assert_refused((tri_options){.passes = "cse"}, "must begin with -");
    assert_refused((tri_options){.passes = "-cse,"}, "must begin with -");
    assert_refused((tri_options){.recompute = "fc.madmul"}, "do you mean \"fc.matmul\"?");
    assert_refused((tri_options){.recompute = "fc.matmul,"}, "matches \"\"");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(switches_keep_the_bits),
        cmocka_unit_test(switches_keep_the_bits_of_the_reference),
        cmocka_unit_test(recomputation_saves_memory),
        cmocka_unit_test(memory_is_reused),
        cmocka_unit_test(order_saves_memory),
        cmocka_unit_test(a_scope_can_be_computed_again),
        cmocka_unit_test(folded_norms_are_close),
        cmocka_unit_test(all_norms_of_resnets_are_folded),
        cmocka_unit_test(unknown_passes_are_reported),
    };
    return cmocka_run_group_tests_name("switches", tests, NULL, NULL);
}
