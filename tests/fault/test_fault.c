/* SPDX-License-Identifier: Apache-2.0
 * Every call that can fail does so once: allocations, files, other libraries. The operation then
 * reports the failure and its reason, or continues and gives the same result; and it leaks nothing.
 * Of the calls with the same stack only the first fails, unless SLOW is set. ONLY=PATTERN runs the
 * tests of these names. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "data/data.h"
#include "dev/dev.h"
#include "fault/scenarios.h"
#include "fault/wrap.h"
#include "io/safetensors.h"
#include "plan/passes.h"
#include "unit/pictures_made.h"

const char *broken;

static char directory[] = "/tmp/trireme-fault-XXXXXX";

const char *in_directory(const char *name) {
    static char path[4][128];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", directory, name);
    return p;
}

/* ---- graphs ---- */

static tri_graph *fine(tri_graph *g) {
    if (!tri_graph_status(g)) return g;
    tri_graph_free(g);
    return NULL;
}

static bool printed(tri_graph *g, uint64_t *result) {
    char *text = g ? tri_graph_print(g) : NULL;
    bool ok = text && add_text(result, text);
    free(text);
    tri_graph_free(g);
    return ok;
}

static bool build_and_parse(uint64_t *result) {
    tri_graph *g = fine(tri_model_open("lenet5:classes=4", 2));
    char *text = g ? tri_graph_print(g) : NULL;
    tri_graph_free(g);
    g = text ? fine(tri_graph_parse(text, strlen(text), "text")) : NULL;
    free(text);
    return printed(g, result);
}

/* Everything that a user's code may call. */
static bool build_by_hand(uint64_t *result) {
    tri_graph *g = tri_graph_new(4);
    tri_push(g, "block%d", 1);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(4, 3, 8, 8));
    tri_tensor *h = tri_gn(tri_ln(tri_bn(tri_conv(x, "c", 4, 3), "bn"), "ln"), "gn", 2);
    tri_tensor *table = tri_array(g, TRI_F32, TRI_SHAPE(2, 2), ((float[]){1, 2, 3, 4}));
    tri_tensor *parts[3], *top, *where;
    tri_split(x, 3, 1, parts);
    tri_top_k(tri_concat(parts, 3, -1), 2, &top, &where);
    tri_precision(g, NULL, TRI_BF16);
    tri_pop(g);
    tri_tensor *y = tri_dropout(tri_dense(tri_flatten(h, 1), "fc", 5), 0.5);
    tri_metric(tri_mean(tri_embed(where, "e", 24, 3), TRI_ALL), "m");
    tri_output(tri_matmul(table, table), "o");
    tri_freeze(g, "*.bias");
    tri_group_lr(g, "fc.*", 0.1);
    tri_group_decay(g, "*", 0);
    tri_tie(tri_find(g, "fc.weight"), "tied");
    tri_assign(tri_state(g, "s", TRI_F32, TRI_SCALAR, (tri_init){0}), tri_scalar(g, "step"));
    tri_loss(tri_mean(tri_softmax(y, -1), TRI_ALL));
    return printed(fine(g), result);
}

static bool differentiate(uint64_t *result) {
    tri_graph *g = tri_model_open("mlp:hidden=3,size=4", 4);
    tri_tensor *wrt[6], *dx[6], *again[6];
    int n = tri_param_count(g) < 6 ? tri_param_count(g) : 6;
    for (int i = 0; i < n; i++) wrt[i] = tri_param_at(g, i);
    if (n == 6) {
        tri_tensor *y = tri_mean(tri_mul(tri_find(g, "logits"), tri_find(g, "logits")), TRI_ALL);
        tri_grad(y, wrt, n, dx);
        tri_grad(tri_global_norm(dx, n), wrt, n, again);
        tri_minimize(tri_find(g, "loss"), (tri_optimizer){.name = "adamw", .clip_norm = 1});
    }
    return printed(fine(g), result);
}

static bool fuses_all(const tri_node *const *node, int n) {
    for (int i = 0; i < n; i++)
        if (node_is(node[i], "conv2d") || node[i]->n_out > 1) return false;
    return true;
}

static bool dump(uint64_t *result) {
    static const struct target target = {.fuses = fuses_all};
    bool ok = true;
    for (int i = 0; i < passes_count() && ok; i++) {
        tri_options o = {.lanes = 2, .amp = "O2",
                         .optimizer = {.name = "adam", .clip_norm = 1, .loss_scale = "dynamic"}};
        tri_graph *g = fine(tri_model_open("cnn:width=2", 4));
        char *text = g ? passes_dump(g, &o, &target, passes_name(i)) : NULL;
        ok = text && add_text(result, text);
        free(text);
        tri_graph_free(g);
    }
    return ok;
}

static bool change_types(uint64_t *result) {
    tri_options o = {.lanes = 2, .amp = "O2"};
    tri_graph *g = fine(tri_model_open("mlp:hidden=3,size=4", 4));
    if (g) tri_minimize(tri_find(g, "loss"), (tri_optimizer){.loss_scale = "8", .clip_norm = 1});
    char *text = g ? tri_graph_print(g) : NULL;
    tri_graph *again = text ? fine(tri_graph_parse(text, strlen(text), "text")) : NULL;
    char *lowered = again ? passes_dump(again, &o, NULL, "batch") : NULL;
    bool ok = lowered && add_text(result, lowered);
    free(text);
    free(lowered);
    tri_graph_free(g);
    tri_graph_free(again);
    return ok;
}

static bool read_textual(uint64_t *result) {
    return printed(fine(tri_model_open(in_directory("net.tri"), 6)), result);
}

static bool load_object(uint64_t *result) {
    char spec[512];
    snprintf(spec, sizeof spec, "%s:width=4,scale=0.5,name=mine", getenv("TRI_TEST_MODEL"));
    return printed(fine(tri_model_open(spec, 2)), result);
}

/* ---- runs ---- */

static bool opened(const char *model, int64_t batch, const tri_options *o, uint64_t *result) {
    char weights[65], state[65];
    tri_graph *g = fine(tri_model_open(model, batch));
    tri_run *run = g ? tri_open(g, o) : NULL;
    tri_hash(run, weights, state);
    bool ok = run && *weights && *state && add_text(result, state);
    if (run && tri_close(run)) ok = false;
    return ok;
}

/* On one thread: which call is the k-th must not depend on the scheduling of threads. */
static tri_options quiet(const char *device, int64_t lanes) {
    return (tri_options){.steps = 2, .lanes = lanes, .threads = 1, .device = device, .quiet = true,
                         .data = "synthetic:size=40",
                         .optimizer = {.name = "adam", .clip_norm = 1}};
}

static bool open_lenet(uint64_t *result) {
    tri_options o = quiet("ref", 3);
    return opened("lenet5", 8, &o, result);
}

static bool open_resnet(uint64_t *result) {
    tri_options o = quiet(NULL, 2);
    return opened("resnet18:form=small,width=2,classes=4", 4, &o, result);
}

static bool steps(tri_run *run, uint64_t *result) {
    while (tri_step(run)) {
        double loss = tri_value(run, "loss");
        add(result, &loss, sizeof loss);
    }
    return !tri_run_status(run);
}

static bool evaluated(tri_run *run, uint64_t *result) {
    const tri_field fields[] = {{"image", TRI_F32, TRI_SHAPE(1, 8, 8)},
                                {"label", TRI_I64, TRI_SCALAR}};
    tri_data *data = data_synthetic(fields, (const int64_t[]){0, 4}, 2, 11, 7);
    bool ok = data && !tri_evaluate(run, data);
    double loss = tri_result(run, "loss");
    tri_data_free(data);
    return ok && add(result, &loss, sizeof loss);
}

/* Two steps, an evaluation, saving and loading. */
static bool train(const char *device, uint64_t *result) {
    char weights[65], state[65], again[65];
    const char *file = in_directory("trained.safetensors");
    tri_options o = quiet(device, 3);
    o.data = "synthetic:size=12";
    o.tail = "keep"; /* the second step is a smaller one */
    o.out = in_directory("out/deep");
    tri_graph *g = fine(tri_model_open("cnn:width=2,size=8,classes=4", 8));
    tri_run *run = g ? tri_open(g, &o) : NULL;
    if (!run) return false;
    bool ok = steps(run, result) && evaluated(run, result);
    tri_hash(run, weights, state);
    ok = ok && *weights && *state && !tri_save(run, file) && !tri_load(run, file);
    tri_hash(run, again, state);
    ok = ok && *again && *state && add_text(result, weights) && add_text(result, state);
    if (ok && strcmp(weights, again)) broken = "what was saved is not what was loaded";
    return !tri_close(run) && ok;
}

static bool train_ref(uint64_t *result) { return train("ref", result); }
static bool train_default(uint64_t *result) { return train(NULL, result); }

static bool forward(uint64_t *result) {
    float image[2 * 64], logits[2 * 4];
    for (int i = 0; i < 128; i++) image[i] = (float)i / 64;
    tri_options o = {.forward = true, .quiet = true, .threads = 1};
    tri_graph *g = fine(tri_model_open("mlp:hidden=3,size=8,classes=4", 2));
    tri_run *run = g ? tri_open(g, &o) : NULL;
    bool ok = run && !tri_feed(run, "image", image, sizeof image) && !tri_forward(run) &&
              !tri_read(run, "logits", logits, sizeof logits) &&
              add(result, logits, sizeof logits);
    if (run && tri_close(run)) ok = false;
    return ok;
}

/* The loop with progress, metrics, files, callbacks and evaluations, as in the program. */
static bool loop(uint64_t *result) {
    tri_options o = quiet(NULL, 2);
    o.quiet = false;
    o.out = in_directory("loop");
    o.save = in_directory("loop.safetensors");
    tri_graph *g = fine(tri_model_open("linear", 8));
    if (!g || tri_train(g, &o,
                        TRI_CALLBACKS(tri_loss_monitor(1), tri_time_monitor(1),
                                      tri_evaluator(.data = "synthetic:size=11", .every = 1,
                                                    .early_stop = 9))))
        return false;
    struct safetensors *file;
    if (safetensors_open(o.save, NULL, false, &file)) return false;
    for (size_t i = 0; i < file->n; i++)
        add(result, file->entry[i].data, base_spec_bytes(&file->entry[i].spec));
    safetensors_close(file);
    return true;
}

static bool check_operator(uint64_t *result) {
    (void)result;
    return !tri_op_check(tri_op_find("softmax"), NULL);
}

/* ---- each call of a scenario ---- */

static bool one_line_message(void) { return tri_message()[0] && !strchr(tri_message(), '\n'); }

/* The output of a scenario is discarded. */
static bool run_silently(scenario *s, long k, long *calls, uint64_t *result) {
    int kept[2] = {dup(1), dup(2)}, null = open("/dev/null", O_WRONLY);
    assert_true(kept[0] >= 0 && kept[1] >= 0 && null >= 0);
    fflush(NULL);
    dup2(null, 1);
    dup2(null, 2);
    base_fail(TRI_OK, "%s", "");
    *result = 0;
    broken = NULL;
    wrap_arm(k);
    bool ok = s(result);
    *calls = wrap_disarm();
    fflush(NULL);
    clearerr(stdout);
    dup2(kept[0], 1);
    dup2(kept[1], 2);
    close(kept[0]);
    close(kept[1]);
    close(null);
    return ok;
}

static void each_call_fails(void **state) {
    scenario *s = *(scenario **)*state;
    uint64_t right, result;
    long calls, ignored;
    /* things created once per process are created here */
    bool ok = run_silently(s, 0, &calls, &right);
    if (!ok) fail_msg("without a failure: %s", tri_message());
    assert_true(run_silently(s, 0, &calls, &result));
    assert_true(calls > 0 && result == right);
    bool all = getenv("SLOW");
    long failed = 0;
    for (long k = 1; k <= calls; k++) {
        if (!wrap_is_first(k) && !all) continue;
        if (getenv("FEW") && calls > 100 && k % 3) continue;
        ok = run_silently(s, k, &ignored, &result);
        struct wrap_held left = wrap_held();
        const char *name = wrap_failed() ? wrap_failed() : "nothing";
        if (broken) fail_msg("call %ld of %ld, %s: %s", k, calls, name, broken);
        failed += !ok;
        if (left.memory || left.files || left.objects)
            fail_msg("call %ld of %ld, %s: %ld allocations, %ld files, %ld objects are left", k,
                     calls, name, left.memory, left.files, left.objects);
        if (!ok && !one_line_message())
            fail_msg("call %ld of %ld, %s: it does not say why", k, calls, name);
        if (!ok && base_last() != TRI_FAILED) /* not a user's mistake */
            fail_msg("call %ld of %ld, %s: exit code %d: %s", k, calls, name, (int)base_last(),
                     tri_message());
        if (ok && result != right)
            fail_msg("call %ld of %ld, %s: another result", k, calls, name);
    }
    assert_true(failed > 0);
}

/* ---- set-up ---- */

static void write_idx(const char *name, bool gz, const char *data, size_t bytes) {
    gzFile f = gzopen(in_directory(name), gz ? "wb" : "wbT");
    assert_non_null(f);
    assert_int_equal(gzwrite(f, data, (unsigned)bytes), bytes);
    assert_int_equal(gzclose(f), Z_OK);
}

/* Two images of 2 x 2 and their labels. */
static const char images[] = "\0\0\010\003\0\0\0\002\0\0\0\002\0\0\0\002abcdefgh";
static const char labels[] = "\0\0\010\001\0\0\0\002\003\001";
static const char network[] =
    "graph {batch=2}\n%x = input() {name=\"x\", type=f32, shape=[2,3]}\n"
    "%w = param() {name=\"w\", shape=[4,3]}\n%y = matmul(%x, %w) {trans_b=1} : f32[2,4]\n"
    "%l = mean(%y)\nloss \"loss\" %l\nlr \"w\" 0.5\ntie \"v\" %w\n";

static const char text[] =
    "The fox. The dog.\n\nA \316\221\316\243 e\314\202\314\243. The wolf! \n";

static void put(const char *name, const void *data, size_t bytes) {
    FILE *f = fopen(in_directory(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

/* One JPEG in train/a, old enough that a list of it is kept; one PNG in val; arrays; an archive. */
static void put_pictures(void) {
    static const char *const folders[] = {"pictures", "pictures/train", "pictures/train/a",
                                          "pictures/val"};
    const struct timespec old[2] = {{1000, 0}, {1000, 0}};
    struct made m = made_rgb_jpeg(20, 10, 0), png = made_png(9, 9, PNG_COLOR_TYPE_RGB, 8, true);
    for (size_t i = 0; i < COUNT(folders); i++)
        assert_int_equal(mkdir(in_directory(folders[i]), 0777), 0);
    put("pictures/train/a/1.jpg", m.bytes, m.n);
    put("pictures/val/1.png", png.bytes, png.n);
    put("labels", "1 a\n", 4);
    for (size_t i = 0; i < COUNT(folders); i++)
        assert_int_equal(utimensat(AT_FDCWD, in_directory(folders[i]), old, 0), 0);
    static const char npy[] = "\x93NUMPY\1\0\74\0{'descr': '<f8', 'fortran_order': False, "
                              "'shape': (1, 1), }\n\0\0\0\0\0\0\360?";
    put("x.npy", npy, sizeof npy - 1);
    char command[256];
    snprintf(command, sizeof command, "cd %s && mv pictures/train/a/1.jpg k.jpg && "
             "echo '{\"label\": 3}' >k.json && tar cf k.tar k.jpg k.json && "
             "mv k.jpg pictures/train/a/1.jpg && touch -d @1000 pictures/train/a", directory);
    assert_int_equal(system(command), 0);
    free(m.bytes);
    free(png.bytes);
}

static int set_up(void **state) {
    (void)state;
    count_jansson();
    if (!mkdtemp(directory) || mkdir(in_directory("plain"), 0777) ||
        mkdir(in_directory("packed"), 0777))
        return -1;
    write_idx("plain/train-images-idx3-ubyte", false, images, sizeof images - 1);
    write_idx("plain/train-labels-idx1-ubyte", false, labels, sizeof labels - 1);
    write_idx("packed/t10k-images-idx3-ubyte.gz", true, images, sizeof images - 1);
    write_idx("packed/t10k-labels-idx1-ubyte.gz", true, labels, sizeof labels - 1);
    put_pictures();
    if (seal_key_make(in_directory("key"))) return -1;
    FILE *f = fopen(in_directory("text.txt"), "w");
    if (!f) return -1;
    fputs(text, f);
    if (fclose(f) || !(f = fopen(in_directory("net.tri"), "w"))) return -1;
    fputs(network, f);
    return fclose(f);
}

static int tear_down(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command);
}

static struct {
    const char *name;
    scenario *run;
} scenarios[] = {
    {"build, print and parse", build_and_parse},
    {"build by hand", build_by_hand},
    {"differentiate twice", differentiate},
    {"dump after each pass", dump},
    {"change the types of a composed step", change_types},
    {"a textual graph for another batch", read_textual},
    {"a model from a shared object", load_object},
    {"open lenet5 with lanes", open_lenet},
    {"open resnet18 with lanes", open_resnet},
    {"train on ref, evaluate, save, load", train_ref},
    {"train in f32 with threads and checkpoints", train_fused},
    {"run forward", forward},
    {"the whole loop", loop},
    {"replace a file", replace_file},
    {"checkpoints", checkpoints},
    {"sealed checkpoints", sealed_checkpoints},
    {"idx files", open_idx},
    {"packed idx files", open_idx_gz},
    {"a text as byte pairs", open_byte_pairs},
    {"a text as pairs of sentences", open_pairs},
    {"pictures in folders", open_images},
    {"pictures in a heap", open_png},
    {"arrays", open_arrays},
    {"pictures in an archive", open_archive},
    {"data of one's own", own_data},
    /* with SLOW only */
    {"training without fused kernels", train_unfused},
    {"check an operator", check_operator},
    {"train on the default device", train_default},
};
enum { SLOW_ONES = 3 };

/* After the first step no step allocates; the reference device, which is for comparisons, may. */
static void steps_do_not_allocate(void **state) {
    (void)state;
    if (!strcmp(dev_at(0)->kind->name, "ref")) skip();
    static const char *const models[] = {"lenet5", "cnn:width=2",
                                         "resnet18:form=small,width=4,classes=4"};
    for (size_t i = 0; i < COUNT(models); i++)
        for (int lanes = 1; lanes <= 3; lanes += 2) {
            tri_options o = quiet(NULL, lanes);
            o.steps = 4;
            tri_run *run = tri_open(tri_model_open(models[i], 6), &o);
            assert_non_null(run);
            assert_true(tri_step(run));
            wrap_arm(0);
            while (tri_step(run)) continue;
            wrap_disarm();
            assert_int_equal(wrap_taken(), 0);
            assert_int_equal(tri_close(run), TRI_OK);
        }
}

int main(void) {
    struct CMUnitTest tests[COUNT(scenarios) + 1] = {
        cmocka_unit_test(steps_do_not_allocate)};
    size_t n = 1;
    cmocka_set_test_filter(getenv("ONLY"));
    for (size_t i = 0; i < COUNT(scenarios) - (getenv("SLOW") ? 0 : SLOW_ONES); i++)
        if (scenarios[i].run != load_object || getenv("TRI_TEST_MODEL"))
            tests[n++] = (struct CMUnitTest){.name = scenarios[i].name,
                                             .test_func = each_call_fails,
                                             .initial_state = &scenarios[i].run};
    return _cmocka_run_group_tests("fault", tests, n, set_up, tear_down);
}
