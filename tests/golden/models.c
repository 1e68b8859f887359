/* SPDX-License-Identifier: Apache-2.0
 * The zoo against PyTorch: evaluation, first gradients, ten steps of training. */
#include "golden.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 10
#define SAMPLES 16

/* Relative to the largest value of the tensor. PyTorch's own float32 differs from its float64 by
 * up to 5e-7 in outputs, 2e-5 in gradients (of the deepest network) and 2e-6 after training. */
#define FORWARD 5e-6
#define GRADIENT 1e-4
#define TRAINED 2e-5

static const char *device_name;
static struct safetensors *golden;

struct test {
    const char *name; /* family or run */
    int64_t lanes;
};

static const char *text_of(const char *test, const char *key) {
    char name[96];
    snprintf(name, sizeof name, "%s/%s", test, key);
    return safetensors_metadata(golden, name);
}

static double number_of(const char *test, const char *key) {
    const char *text = text_of(test, key);
    return text ? strtod(text, NULL) : 0;
}

static tri_optimizer optimizer_of(const char *run) {
    return (tri_optimizer){
        .name = text_of(run, "name"),
        .lr = number_of(run, "lr"),
        .momentum = number_of(run, "momentum"),
        .beta1 = number_of(run, "beta1"),
        .beta2 = number_of(run, "beta2"),
        .eps = number_of(run, "eps"),
        .trust = number_of(run, "trust"),
        .weight_decay = number_of(run, "weight_decay"),
        .clip_norm = number_of(run, "clip_norm"),
        .decay_all = number_of(run, "decay_all") != 0,
    };
}

/* ---- data: the fields are random, by their names and the family's number ---- */

#define MAX_FIELDS 8

struct field {
    char name[32];
    int number;
    tri_type type;
    double low, high;
    int64_t count; /* of a sample */
};

struct source {
    struct field field[MAX_FIELDS];
    int n;
};

/* Whole numbers below 0 mean places to ignore. */
static void draw_field(const struct field *f, int64_t first, int64_t samples, void *out) {
    int64_t n = samples * f->count;
    char key[48];
    snprintf(key, sizeof key, "%s.%d", f->name, f->number);
    if (f->type != TRI_I64) {
        draw(key, first * f->count, n, f->low, f->high, out);
        return;
    }
    int64_t *whole = out;
    draw_int(key, first * f->count, n, f->low, f->high, whole);
    for (int64_t i = 0; i < n; i++) whole[i] = whole[i] < 0 ? -100 : whole[i];
}

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)epoch, (void)seed;
    const struct source *s = user;
    for (int i = 0; i < s->n; i++) draw_field(&s->field[i], index, 1, out[i]);
    return 0;
}

/* The family's fields, "name:low:high name:low:high", and a data set of STEPS batches. */
static tri_data *make_source(tri_graph *g, const char *family, int64_t batch, struct source *s) {
    tri_field fields[MAX_FIELDS];
    int used = 0, number = (int)number_of(family, "data");
    *s = (struct source){.n = 0};
    for (const char *text = text_of(family, "fields"); *text; text += used) {
        assert_true(s->n < MAX_FIELDS);
        struct field *f = &s->field[s->n];
        if (sscanf(text, " %31[^:]:%lf:%lf%n", f->name, &f->low, &f->high, &used) != 3)
            fail_msg("%s: fields are \"%s\"", family, text);
        tri_tensor *t = tri_find(g, f->name);
        assert_non_null(t);
        f->number = number;
        f->type = tri_type_of(t);
        f->count = 1;
        tri_field *field = &fields[s->n++];
        *field = (tri_field){f->name, f->type, {.rank = tri_ndim(t) - 1}};
        for (int k = 1; k < tri_ndim(t); k++)
            f->count *= field->shape.dim[k - 1] = tri_dim(t, k);
    }
    tri_data *data = tri_data_new("golden", STEPS * batch, fields, s->n, fill, s, false);
    assert_non_null(data);
    return data;
}

/* ---- stored tensors: models.py's set_drawn and digest ---- */

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

static void draw_stored(const char *name, const tri_shape *shape, float *out) {
    int64_t n = tri_shape_count(shape);
    double low = -0.2, high = 0.2;
    if (shape->rank > 1) {
        high = sqrt(3.0 / (double)(n / shape->dim[0]));
        low = -high;
    } else if (ends_with(name, "bn3.weight")) {
        low = 0.05;
        high = 0.15;
    } else if (ends_with(name, "weight") || ends_with(name, "running_var")) {
        low = 0.5;
        high = 1.5;
    }
    draw(name, 0, n, low, high, out);
}

static int64_t digest_count(int64_t n) { return (n < SAMPLES ? n : SAMPLES) + 2; }

/* Up to SAMPLES entries, the norm, the product with the probe. */
static void digest(const char *name, const float *values, int64_t n, float *out) {
    int64_t samples = digest_count(n) - 2;
    for (int64_t k = 0; k < samples; k++) out[k] = values[k * n / samples];
    char probe_name[160];
    snprintf(probe_name, sizeof probe_name, "%s.probe", name);
    double squares = 0, product = 0;
    for (int64_t i = 0; i < n; i++) {
        float probe;
        draw(probe_name, i, 1, -1, 1, &probe);
        squares += (double)values[i] * (double)values[i];
        product += (double)values[i] * (double)probe;
    }
    out[samples] = (float)sqrt(squares);
    out[samples + 1] = (float)product;
}

/* The parameters and running statistics, found by their names in the file: those after
 * PREFIX/KIND/. Calls visit for each. */
struct visit {
    tri_run *run;
    const tri_graph *graph;
    const char *test;
    const char *kind;
    const char *output; /* the prefix of a name in tri_read: "" or "grad." */
    double tolerance;
};

static void write_drawn(const struct visit *v, const char *name, const tri_shape *shape) {
    size_t bytes = (size_t)tri_shape_count(shape) * sizeof(float);
    float *values = must_allocate(bytes);
    draw_stored(name, shape, values);
    must(tri_write(v->run, name, values, bytes), name);
    free(values);
}

static void check_digest(const struct visit *v, const char *name, const tri_shape *shape) {
    int64_t n = tri_shape_count(shape), m = digest_count(n);
    const struct safetensors_entry *want =
        golden_entry(golden, TRI_F32, m, "%s/%s/%s", v->test, v->kind, name);
    float *values = must_allocate((size_t)n * sizeof *values), got[SAMPLES + 2];
    char full[192], what[320];
    snprintf(full, sizeof full, "%s%s", v->output, name);
    must(tri_read(v->run, full, values, (size_t)n * sizeof *values), full);
    digest(name, values, n, got);
    snprintf(what, sizeof what, "%s %s %s on %s", v->test, v->kind, name, device_name);
    /* sums are as large as the norm, entries as their values */
    compare(what, got, want->data, m - 2, v->tolerance);
    compare(what, got + m - 2, (const float *)want->data + m - 2, 2, v->tolerance);
    free(values);
}

static void for_each_stored(const struct visit *v,
                            void (*call)(const struct visit *, const char *, const tri_shape *)) {
    char prefix[96];
    int n = snprintf(prefix, sizeof prefix, "%s/%s/", v->test, v->kind);
    int found = 0;
    for (size_t i = 0; i < golden->n; i++) {
        const char *name = golden->entry[i].name;
        if (strncmp(name, prefix, (size_t)n)) continue;
        tri_tensor *t = tri_find(v->graph, name + n);
        if (!t) fail_msg("the model has no %s", name + n);
        tri_shape shape = tri_shape_of(t);
        call(v, name + n, &shape);
        found++;
    }
    assert_true(found > 0);
}

/* ---- tests ---- */

static tri_options options_of(int64_t batch, int64_t lanes) {
    tri_options o = tri_options_default();
    o.device = device_name;
    o.batch = batch;
    o.lanes = lanes;
    o.steps = STEPS;
    o.seed = 1;
    o.no_shuffle = true;
    o.quiet = true;
    return o;
}

static tri_graph *open_family(const char *family, int64_t *batch) {
    *batch = (int64_t)number_of(family, "batch");
    tri_graph *g = tri_model_open(text_of(family, "model"), *batch);
    assert_non_null(g);
    must(tri_graph_status(g), family);
    return g;
}

/* Metadata have the names FAMILY/key and RUN/key: the part before the slash. */
static const char *test_of(size_t i) {
    static char names[512][48];
    const char *key = golden->metadata[i].key;
    CHECK(i < COUNT(names));
    snprintf(names[i], sizeof names[i], "%.*s", (int)strcspn(key, "/"), key);
    return names[i];
}

static bool is_run(size_t i, const char *family) {
    return ends_with(golden->metadata[i].key, "/family") &&
           !strcmp(golden->metadata[i].value, family);
}

/* Any run of the family, for the names of all parameters and running statistics. */
static const char *run_of(const char *family) {
    for (size_t i = 0; i < golden->n_metadata; i++)
        if (is_run(i, family)) return test_of(i);
    fail_msg("no run is of the family %s", family);
    return NULL;
}

static void write_all(tri_run *run, const tri_graph *g, const char *family) {
    const struct visit all = {run, g, run_of(family), "after", "", 0};
    for_each_stored(&all, write_drawn);
}

static void feed(tri_run *run, const struct source *s, int64_t batch) {
    for (int i = 0; i < s->n; i++) {
        const struct field *f = &s->field[i];
        size_t bytes = (size_t)(batch * f->count) * tri_type_size(f->type);
        void *values = must_allocate(bytes);
        draw_field(f, 0, batch, values);
        must(tri_feed(run, f->name, values, bytes), f->name);
        free(values);
    }
}

static void test_forward(void **state) {
    const struct test *test = *state;
    int64_t batch;
    tri_graph *g = open_family(test->name, &batch);
    struct source source;
    tri_options o = options_of(batch, test->lanes);
    tri_data_free(make_source(g, test->name, batch, &source));
    o.forward = true;
    const char *name = text_of(test->name, "output");
    tri_shape shape = tri_shape_of(tri_find(g, name));
    int64_t n = tri_shape_count(&shape);
    tri_run *run = tri_open(g, &o);
    if (!run) fail_msg("%s: %s", test->name, tri_message());
    write_all(run, g, test->name);
    feed(run, &source, batch);
    must(tri_forward(run), test->name);
    float *out = must_allocate((size_t)n * sizeof *out);
    must(tri_read(run, name, out, (size_t)n * sizeof *out), name);
    compare(name, out, golden_entry(golden, TRI_F32, n, "%s/out", test->name)->data, n, FORWARD);
    float loss = (float)tri_value(run, "loss");
    compare("loss", &loss, golden_entry(golden, TRI_F32, 1, "%s/loss", test->name)->data, 1,
            FORWARD);
    free(out);
    must(tri_close(run), test->name);
}

/* A step composed by hand, so that the gradients are outputs. */
static void test_gradients(void **state) {
    const struct test *test = *state;
    int64_t batch;
    tri_graph *g = open_family(test->name, &batch);
    struct source source;
    tri_options o = options_of(batch, test->lanes);
    o.source = make_source(g, test->name, batch, &source);
    int n = tri_param_count(g);
    tri_tensor **params = must_allocate((size_t)n * sizeof(tri_tensor *));
    tri_tensor **grads = must_allocate((size_t)n * sizeof(tri_tensor *));
    for (int i = 0; i < n; i++) params[i] = tri_param_at(g, i);
    tri_grad(tri_find(g, "loss"), params, n, grads);
    for (int i = 0; i < n; i++) {
        char name[192];
        snprintf(name, sizeof name, "grad.%s", tri_name_of(params[i]));
        tri_output(grads[i], name);
    }
    tri_update(params, grads, n, (tri_optimizer){.name = "sgd"}, NULL);
    free(params);
    free(grads);
    tri_run *run = tri_open(g, &o);
    if (!run) fail_msg("%s: %s", test->name, tri_message());
    write_all(run, g, test->name);
    if (!tri_step(run)) fail_msg("%s: %s", test->name, tri_message());
    const struct visit all = {run, g, test->name, "grad", "grad.", GRADIENT};
    for_each_stored(&all, check_digest);
    must(tri_close(run), test->name);
}

static void test_training(void **state) {
    const struct test *test = *state;
    const char *family = text_of(test->name, "family");
    assert_non_null(family);
    int64_t batch;
    tri_graph *g = open_family(family, &batch);
    struct source source;
    tri_options o = options_of(batch, test->lanes);
    o.source = make_source(g, family, batch, &source);
    o.optimizer = optimizer_of(test->name);
    tri_run *run = tri_open(g, &o);
    if (!run) fail_msg("%s: %s", test->name, tri_message());
    write_all(run, g, family);
    float losses[STEPS];
    for (int i = 0; i < STEPS; i++) {
        if (!tri_step(run)) fail_msg("%s, step %d: %s", test->name, i + 1, tri_message());
        losses[i] = (float)tri_value(run, "loss");
    }
    assert_false(tri_step(run));
    compare("losses", losses, golden_entry(golden, TRI_F32, STEPS, "%s/losses", test->name)->data,
            STEPS, TRAINED);
    const struct visit all = {run, g, test->name, "after", "", TRAINED};
    for_each_stored(&all, check_digest);
    must(tri_close(run), test->name);
}

/* ---- the list ---- */

static struct {
    struct test test[128];
    struct CMUnitTest unit[128];
    char name[128][96];
    size_t n;
} list;

static void add(const char *name, int64_t lanes, const char *what, CMUnitTestFunction function) {
    size_t i = list.n++;
    CHECK(i < COUNT(list.unit));
    list.test[i] = (struct test){name, lanes};
    snprintf(list.name[i], sizeof list.name[i], "%s %s, lanes: %lld", name, what,
             (long long)lanes);
    list.unit[i] = (struct CMUnitTest){.name = list.name[i], .test_func = function,
                                       .initial_state = &list.test[i]};
}

static void add_runs(const char *family, int64_t lanes) {
    add(family, lanes, "forward", test_forward);
    add(family, lanes, "gradients", test_gradients);
    for (size_t i = 0; i < golden->n_metadata; i++)
        if (is_run(i, family)) add(test_of(i), lanes, "training", test_training);
}

int golden_models(const char *device) {
    device_name = device;
    golden = golden_open("models.safetensors");
    memset(&list, 0, sizeof list);
    for (size_t i = 0; i < golden->n_metadata; i++) {
        if (!ends_with(golden->metadata[i].key, "/model")) continue;
        const char *family = test_of(i);
        add_runs(family, 1);
        /* batch norm gives other numbers for other lanes, by definition */
        if (number_of(family, "any_lanes") != 0) add_runs(family, 4);
    }
    char name[64];
    snprintf(name, sizeof name, "golden models on %s", device);
    int failed = _cmocka_run_group_tests(name, list.unit, list.n, NULL, NULL);
    safetensors_close(golden);
    return failed;
}
