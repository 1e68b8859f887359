/* SPDX-License-Identifier: Apache-2.0
 * The cpu device against the reference, beyond the rows' own examples: sizes around the borders of
 * tiles and vectors, broadcasting of every kind, shapes that oneDNN treats differently, 16-bit
 * storage. Arguments name operators to check only those. FEW=1 compares instruction sets alone. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check/trial.h"
#include "dev/cpu/conv_own.h"
#include "dev/cpu/isa.h"
#include "dev/dev.h"
#include "ops/cpu_cases.h"

/* Whether the machine has this instruction set. */
static bool has(const char *isa) {
    setenv("TRIREME_ISA", isa, 1);
    tri_status status = dev_open(dev_find("cpu"));
    unsetenv("TRIREME_ISA");
    return !status;
}

/* An example's results with an instruction set; false if the machine does not have it, or the
 * device declines the example. */
static bool run_by(const char *isa, int threads, const struct example *e, const struct values *in,
                   struct values *out) {
    tri_status status = TRI_USAGE;
    if (has(isa)) {
        setenv("TRIREME_ISA", isa, 1);
        status = trial_plain(e, dev_find("cpu"), 1, threads, in, out);
    }
    if (status == TRI_FAILED) fail_msg("%s: %s", isa, tri_message());
    unsetenv("TRIREME_ISA");
    return out->n;
}

static void compare_bits(const struct example *e, const char *isa, const struct values *a,
                         const struct values *b) {
    assert_int_equal(a->n, b->n);
    for (int i = 0; i < a->n; i++)
        for (int64_t k = 0; k < tri_shape_count(&a->spec[i].shape); k++) {
            double x = a->at[i][k], y = b->at[i][k];
            if (memcmp(&x, &y, sizeof x) && !(x != x && y != y))
                fail_msg("%s \"%s\": element %lld of result %d is %a by plain instructions and one "
                         "thread, %a by %s and several",
                         e->op->name, e->text, (long long)k, i, x, y, isa);
        }
}

/* The bits are the same with every instruction set and any number of threads. */
static void check_instructions(const tri_op *op, const char *text) {
    struct example e;
    struct values in = {0}, plain = {0};
    assert_int_equal(example_read(op, text, &e), TRI_OK);
    assert_true(values_draw(&e, &in));
    bool runs = run_by("plain", 1, &e, &in, &plain);
    assert_true(runs || strstr(text, "16[")); /* a half type may be declined */
    for (size_t i = 0; runs && i < ISAS; i++) {
        struct values out = {0};
        if (run_by(isa_names[i], 2 + (int)i % 2, &e, &in, &out))
            compare_bits(&e, isa_names[i], &plain, &out);
        values_free(&out);
    }
    values_free(&in);
    values_free(&plain);
}

static void check(void **state) {
    const struct case_group *g = *state;
    const tri_op *row = tri_op_find(g->op);
    assert_non_null(row);
    tri_op op = *row;
    op.examples = g->cases;
    if (!getenv("FEW") && tri_op_check(&op, "cpu")) fail_msg("%s", tri_message());
    for (int i = 0; g->cases[i]; i++) check_instructions(&op, g->cases[i]);
}

/* Which kernel a convolution of x [n, c, 6, 6] and weight [o, c, k, k] takes: the table's examples
 * are for that one. */
static void ways(void **state) {
    static const struct {
        int64_t n, c, o, k;
        bool few, across;
    } rows[] = {{16, 1, 6, 5, true, true}, {14, 6, 16, 2, true, true}, {13, 6, 16, 2, true, false},
                {31, 3, 1, 3, true, true}, {33, 3, 1, 3, true, false}, {16, 1, 6, 3, true, false},
                {16, 16, 6, 3, false, false}, {16, 6, 17, 3, false, false}};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        tri_graph *g = tri_graph_new(rows[i].n);
        tri_init init = {.kind = TRI_NORMAL, .b = 1};
        tri_tensor *x = tri_state(g, "x", TRI_F32, TRI_SHAPE(rows[i].n, rows[i].c, 6, 6), init);
        tri_tensor *y =
            tri_conv2d(x, tri_state(g, "w", TRI_F32,
                                    TRI_SHAPE(rows[i].o, rows[i].c, rows[i].k, rows[i].k), init));
        assert_int_equal(conv_few_takes(y->node), rows[i].few);
        assert_int_equal(conv_across_takes(y->node), rows[i].across);
        tri_graph_free(g);
    }
}

/* An infinite weight makes the same outputs infinite or NaN with all instruction sets, also at the
 * ends of planes. */
static void infinite_weight(void **state) {
    enum { N = 16, SIDE = 6 };
    static float y[ISAS][N * 2 * SIDE * SIDE];
    float weight[2 * 25] = {INFINITY};
    int infinite = 0;
    (void)state;
    for (size_t i = 0; i < ISAS; i++) {
        tri_graph *g = tri_graph_new(N);
        tri_init normal = {.kind = TRI_NORMAL, .b = 1};
        tri_tensor *x = tri_state(g, "x", TRI_F32, TRI_SHAPE(N, 1, SIDE, SIDE), normal);
        tri_tensor *w = tri_state(g, "w", TRI_F32, TRI_SHAPE(2, 1, 5, 5), normal);
        tri_output(tri_conv2d(x, w, .pad = 2), "y");
        setenv("TRIREME_ISA", has(isa_names[i]) ? isa_names[i] : "plain", 1);
        tri_run *run = tri_open(g, &(tri_options){.forward = true, .device = "cpu", .seed = 2});
        unsetenv("TRIREME_ISA");
        if (!run || tri_write(run, "w", weight, sizeof weight) || tri_forward(run))
            fail_msg("%s: %s", isa_names[i], tri_message());
        assert_int_equal(tri_read(run, "y", y[i], sizeof y[i]), TRI_OK);
        assert_int_equal(tri_close(run), TRI_OK);
        for (size_t k = 0; k < COUNT(y[i]); k++)
            assert_true(y[0][k] == y[i][k] || (y[0][k] != y[0][k] && y[i][k] != y[i][k]));
    }
    for (size_t k = 0; k < COUNT(y[0]); k++) infinite += !isfinite(y[0][k]);
    assert_true(infinite > 0 && infinite < (int)COUNT(y[0]));
}

/* A case that the device does not support is reported, with an alternative. */
static void declines(void **state) {
    static const char text[] = "graph {batch=1, lanes=1}\n"
                               "%a = state() {name=\"a\", type=f16, shape=[2,2]}\n"
                               "%y = matmul(%a, %a) {trans_a=0, trans_b=0} @ \"y\"\n";
    struct dev *dev = dev_find("cpu");
    (void)state;
    tri_graph *g = tri_graph_parse(text, strlen(text), "f16");
    assert_int_equal(tri_graph_status(g), TRI_OK);
    const char *reason = dev->kind->declines(g->node[g->n_nodes - 1]);
    assert_non_null(reason);
    assert_non_null(strstr(reason, "products of f16"));
    assert_non_null(strstr(reason, "cast"));
    tri_graph_free(g);
}

static int infer_same(const tri_node *n, tri_spec *out) {
    out[0] = n->in[0]->spec;
    return 1;
}

#define NAN_ROWS 60

/* Where rows, some with NaN, have their maximum, and its value, by a device and an instruction
 * set. */
static void rank_nans(const char *device, const char *isa, tri_type type, float out[3][NAN_ROWS]) {
    static const char *const name[] = {"argmax", "top", "max"};
    tri_graph *g = tri_graph_new(1);
    tri_tensor *x = tri_state(g, "x", TRI_F32, TRI_SHAPE(NAN_ROWS, 70),
                              (tri_init){.kind = TRI_UNIFORM, .a = -0.03, .b = 3});
    tri_tensor *y = tri_cast(tri_sqrt(x), type), *values, *index;
    tri_top_k(y, 1, &values, &index);
    tri_output(tri_cast(tri_argmax(y, 1), TRI_F32), name[0]);
    tri_output(tri_cast(index, TRI_F32), name[1]);
    tri_output(tri_cast(tri_max(y, TRI_SHAPE(1)), TRI_F32), name[2]);
    setenv("TRIREME_ISA", isa, 1);
    tri_run *run = tri_open(g, &(tri_options){.forward = true, .device = device, .seed = 3});
    unsetenv("TRIREME_ISA");
    if (!run || tri_forward(run)) fail_msg("%s: %s", isa, tri_message());
    for (int i = 0; i < 3; i++)
        assert_int_equal(tri_read(run, name[i], out[i], sizeof out[i]), TRI_OK);
    assert_int_equal(tri_close(run), TRI_OK);
}

/* A NaN counts as larger than any number, in every type and with all instruction sets. */
static void ranks_nan(void **state) {
    static const tri_type types[] = {TRI_F32, TRI_BF16, TRI_F16};
    (void)state;
    for (size_t t = 0; t < COUNT(types); t++) {
        float want[3][NAN_ROWS], got[3][NAN_ROWS];
        int nans = 0;
        rank_nans("ref", "plain", types[t], want);
        for (int i = 0; i < NAN_ROWS; i++) nans += want[2][i] != want[2][i];
        assert_true(nans > 5 && nans < NAN_ROWS - 5);
        for (size_t i = 0; i < ISAS; i++) {
            if (!has(isa_names[i])) continue;
            rank_nans("cpu", isa_names[i], types[t], got);
            for (int k = 0; k < 3 * NAN_ROWS; k++) {
                float a = want[k / NAN_ROWS][k % NAN_ROWS];
                float b = got[k / NAN_ROWS][k % NAN_ROWS];
                assert_true(a == b || (a != a && b != b));
            }
        }
    }
}

static int runs_of_own;

static void negate(const tri_call *c) {
    int64_t count = tri_shape_count(&c->node->out[0].spec.shape);
    runs_of_own++;
    for (int64_t i = 0; i < count; i++)
        ((float *)c->out[0])[i] = -((const float *)c->in[0])[i];
}

/* A user's operator runs with the kernel of its row. */
static void own_operator(void **state) {
    static const char *const examples[] = {"f32[3,5]", NULL};
    static const tri_op row = {.name = "test_negate", .inputs = 1, .infer = infer_same,
                               .gradient = tri_grad_none, .kernel = negate,
                               .examples = examples};
    (void)state;
    assert_int_equal(tri_register(&row), TRI_OK);
    if (tri_op_check(&row, "cpu")) fail_msg("%s", tri_message());
    assert_true(runs_of_own >= 2); /* on the reference and on the device */
}

/* A factor string that does not fit the shapes is named, before anything is split. */
static void unfit_factors(void **state) {
    static const char *const examples[][2] = {{"f32[3,5]", NULL}, {"f32[5,3]", NULL}};
    static const char *const names[] = {"test_unfit_0", "test_unfit_1"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        const tri_op row = {.name = names[i], .inputs = 1, .infer = infer_same,
                            .gradient = tri_grad_none, .kernel = negate, .factors = "ab->ba",
                            .examples = examples[i]};
        static tri_op kept[2];
        kept[i] = row;
        assert_int_equal(tri_register(&kept[i]), TRI_OK);
        assert_int_not_equal(tri_op_check(&kept[i], NULL), TRI_OK);
        if (!strstr(tri_message(), "its factors \"ab->ba\" do not fit: dimension "))
            fail_msg("%s", tri_message());
    }
}

int main(int argc, char **argv) {
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(ways),         cmocka_unit_test(infinite_weight),
        cmocka_unit_test(declines),     cmocka_unit_test(own_operator),
        cmocka_unit_test(ranks_nan),    cmocka_unit_test(unfit_factors),
    };
    static struct CMUnitTest tests[COUNT(groups) + COUNT(others)];
    static void *states[COUNT(groups)];
    size_t n = 0;
    for (size_t i = 0; i < COUNT(groups); i++) {
        bool wanted = argc < 2;
        for (int k = 1; k < argc; k++) wanted |= !strcmp(argv[k], groups[i].op);
        if (!wanted) continue;
        states[n] = (void *)&groups[i];
        tests[n] = (struct CMUnitTest){.name = groups[i].op, .test_func = check,
                                       .initial_state = states[n]};
        n++;
    }
    for (size_t i = 0; argc < 2 && i < COUNT(others); i++) tests[n++] = others[i];
    return _cmocka_run_group_tests("cpu", tests, n, NULL, NULL);
}
