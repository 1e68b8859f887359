/* SPDX-License-Identifier: Apache-2.0
 * Single operators against PyTorch: each case of cases.h, its outputs and the derivatives by its
 * inputs, on a graph whose inputs are parameters and states. */
#include "golden.h"

#include <stdlib.h>
#include <string.h>

#define EXACT 0.0
#define ROUND 1e-6
#define SHORT 2e-6
#define LONG 1e-5
#define FAR 2e-4

#define MAX_INPUTS 5
#define MAX_OUTS 4

struct op_case {
    const char *name;
    double tolerance;
    tri_tensor *(*build)(tri_tensor **in, tri_tensor **out);
};

struct op_input {
    char kind; /* p, s, i: see ops.py */
    double low, high;
    tri_tensor *tensor;
    char name[16];
};

static const char *device_name;
static struct safetensors *golden;

/* Labels with -100 in places 1 and 4 of six. */
static tri_tensor *ignoring(tri_tensor *labels) {
    tri_graph *g = tri_graph_of(labels);
    const uint8_t ignored[6] = {0, 1, 0, 0, 1, 0};
    return tri_where(tri_array(g, TRI_BOOL, TRI_SHAPE(6), ignored),
                     tri_constant(g, -100, TRI_I64), labels);
}

#define CASE(name_, tolerance_, expression)                                  \
    static tri_tensor *build_##name_(tri_tensor **in, tri_tensor **out) {    \
        tri_tensor *a = in[0], *b = in[1], *c = in[2], *d = in[3], *e = in[4]; \
        (void)a, (void)b, (void)c, (void)d, (void)e, (void)out;              \
        return expression;                                                   \
    }
#include "cases.h"
#undef CASE

#define CASE(name_, tolerance_, expression) {#name_, tolerance_, build_##name_},
static const struct op_case cases[] = {
#include "cases.h"
};
#undef CASE

/* Creates "p[2,3]@-1:1 i[4]@0:9" as sources of the graph; returns their number. */
static int add_inputs(tri_graph *g, const char *text, struct op_input *in) {
    int n = 0;
    for (; *text; n++) {
        assert_true(n < MAX_INPUTS);
        tri_shape shape = {0};
        in[n].kind = *text++;
        while (*text == '[' || *text == ',')
            shape.dim[shape.rank++] = strtoll(text + 1, (char **)&text, 10);
        assert_true(text[0] == ']' && text[1] == '@');
        in[n].low = strtod(text + 2, (char **)&text);
        assert_true(*text == ':');
        in[n].high = strtod(text + 1, (char **)&text);
        while (*text == ' ') text++;
        snprintf(in[n].name, sizeof in[n].name, "in%d", n);
        tri_init zero = {TRI_CONSTANT, 0, 0};
        in[n].tensor =
            in[n].kind == 'p' ? tri_param(g, in[n].name, shape, zero)
                              : tri_state(g, in[n].name, in[n].kind == 'i' ? TRI_I64 : TRI_F32,
                                          shape, zero);
    }
    return n;
}

/* The sum over outputs k of sum(out_k * draw("CASE.dyk")), whose derivatives become outputs. */
static void add_gradients(tri_graph *g, const char *name, tri_tensor **out, int n_out,
                          struct op_input *in, int n) {
    tri_tensor *total = NULL, *wrt[MAX_INPUTS], *dx[MAX_INPUTS];
    for (int k = 0; k < n_out; k++) {
        if (tri_type_of(out[k]) != TRI_F32) continue;
        tri_shape shape = tri_shape_of(out[k]);
        char key[80];
        snprintf(key, sizeof key, "%s.dy%d", name, k);
        float *dy = must_allocate((size_t)tri_shape_count(&shape) * sizeof *dy);
        draw(key, 0, tri_shape_count(&shape), -1, 1, dy);
        tri_tensor *y = tri_sum(tri_mul(out[k], tri_array(g, TRI_F32, shape, dy)), TRI_ALL);
        total = total ? tri_add(total, y) : y;
        free(dy);
    }
    int m = 0;
    for (int i = 0; i < n; i++)
        if (in[i].kind == 'p') wrt[m++] = in[i].tensor;
    if (!total || !m) return;
    tri_grad(total, wrt, m, dx);
    for (int i = 0, k = 0; i < n; i++)
        if (in[i].kind == 'p') {
            char output[16];
            snprintf(output, sizeof output, "d%d", i);
            tri_output(dx[k++], output);
        }
}

static void write_input(tri_run *run, const char *name, const struct op_input *in, int64_t count,
                        int i) {
    char key[80];
    snprintf(key, sizeof key, "%s.in%d", name, i);
    size_t size = in->kind == 'i' ? sizeof(int64_t) : sizeof(float);
    void *values = must_allocate((size_t)count * size);
    if (in->kind == 'i')
        draw_int(key, 0, count, in->low, in->high, values);
    else
        draw(key, 0, count, in->low, in->high, values);
    must(tri_write(run, in->name, values, (size_t)count * size), in->name);
    free(values);
}

/* Reads an output or state of the run and compares it with CASE/entry. */
static void check(const tri_run *run, const struct op_case *c, const char *name, tri_type type,
                  int64_t count, const char *entry) {
    const struct safetensors_entry *want = golden_entry(golden, type, count, "%s/%s", c->name,
                                                        entry);
    size_t bytes = (size_t)count * tri_type_size(type);
    void *got = must_allocate(bytes);
    must(tri_read(run, name, got, bytes), name);
    char what[96];
    snprintf(what, sizeof what, "%s %s on %s", c->name, entry, device_name);
    if (type == TRI_F32)
        compare(what, got, want->data, count, c->tolerance);
    else if (memcmp(got, want->data, bytes))
        fail_msg("%s differs from PyTorch's integers", what);
    free(got);
}

static int no_field(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)index, (void)epoch, (void)seed;
    *(float *)out[0] = 0;
    return 0;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* Its own step, because evaluation has no gradients: it changes a parameter that no case uses. */
static tri_run *open_case(tri_graph *g, bool training) {
    const tri_field field = {"tick", TRI_F32, TRI_SCALAR};
    tri_options o = tri_options_default();
    o.batch = o.lanes = o.steps = 1;
    o.device = device_name;
    o.quiet = true;
    o.forward = !training;
    if (training) {
        tri_tensor *tick = tri_input(g, "tick", TRI_F32, TRI_SHAPE(1));
        tri_tensor *unused = tri_param(g, "unused", TRI_SCALAR, (tri_init){TRI_CONSTANT, 0, 0});
        tri_assign(unused, tri_sum(tick, TRI_ALL));
        o.source = tri_data_new("tick", 1, &field, 1, no_field, NULL, false);
        assert_non_null(o.source);
    }
    return tri_open(g, &o);
}

static void test_case(void **state) {
    const struct op_case *c = *state;
    const char *inputs = safetensors_metadata(golden, c->name);
    if (!inputs) fail_msg("the golden file has no case %s", c->name);
    tri_graph *g = tri_graph_new(1);
    assert_non_null(g);
    struct op_input in[MAX_INPUTS] = {0};
    tri_tensor *tensors[MAX_INPUTS] = {0}, *out[MAX_OUTS] = {0};
    int n = add_inputs(g, inputs, in), n_out = 0;
    int64_t count[MAX_INPUTS], out_count[MAX_OUTS];
    tri_type out_type[MAX_OUTS];
    for (int i = 0; i < n; i++) {
        tri_shape shape = tri_shape_of(tensors[i] = in[i].tensor);
        count[i] = tri_shape_count(&shape);
    }
    out[0] = c->build(tensors, out);
    for (; n_out < MAX_OUTS && out[n_out]; n_out++) {
        char name[16];
        snprintf(name, sizeof name, "out%d", n_out);
        tri_output(out[n_out], name);
        tri_shape shape = tri_shape_of(out[n_out]);
        out_count[n_out] = tri_shape_count(&shape);
        out_type[n_out] = tri_type_of(out[n_out]);
    }
    must(tri_graph_status(g), c->name);
    bool training = !ends_with(c->name, "_eval");
    if (training) add_gradients(g, c->name, out, n_out, in, n);
    tri_run *run = open_case(g, training);
    if (!run) fail_msg("%s: %s", c->name, tri_message());
    for (int i = 0; i < n; i++) write_input(run, c->name, &in[i], count[i], i);
    if (training) {
        if (!tri_step(run)) fail_msg("%s: %s", c->name, tri_message());
    } else {
        must(tri_forward(run), c->name);
    }
    for (int k = 0; k < n_out; k++) {
        char name[16];
        snprintf(name, sizeof name, "out%d", k);
        check(run, c, name, out_type[k], out_count[k], name);
    }
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, in[i].kind == 'p' ? "d%d" : "after%d", i);
        if (in[i].kind == 'p' && training)
            check(run, c, name, TRI_F32, count[i], name);
        else if (in[i].kind == 's' && ends_with(c->name, "_train"))
            check(run, c, in[i].name, TRI_F32, count[i], name);
    }
    must(tri_close(run), c->name);
}

/* Every case that PyTorch computed is compared, so that none is forgotten. */
static void test_complete(void **state) {
    (void)state;
    for (size_t i = 0; i < golden->n_metadata; i++) {
        bool found = false;
        for (size_t k = 0; k < COUNT(cases); k++)
            found |= !strcmp(cases[k].name, golden->metadata[i].key);
        if (!found) fail_msg("cases.h has no case %s", golden->metadata[i].key);
    }
    assert_int_equal(golden->n_metadata, COUNT(cases));
}

static int open_file(void **state) {
    (void)state;
    golden = golden_open("ops.safetensors");
    return 0;
}

static int close_file(void **state) {
    (void)state;
    safetensors_close(golden);
    return 0;
}

int golden_ops(const char *device) {
    device_name = device;
    struct CMUnitTest tests[COUNT(cases) + 1];
    for (size_t i = 0; i < COUNT(cases); i++)
        tests[i] = (struct CMUnitTest){.name = cases[i].name, .test_func = test_case,
                                       .initial_state = (void *)&cases[i]};
    tests[COUNT(cases)] = (struct CMUnitTest)cmocka_unit_test(test_complete);
    char name[64];
    snprintf(name, sizeof name, "golden operators on %s", device);
    return _cmocka_run_group_tests(name, tests, COUNT(tests), open_file, close_file);
}
