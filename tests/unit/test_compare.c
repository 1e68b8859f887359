/* SPDX-License-Identifier: Apache-2.0
 * What `trireme compare` finds in two runs: nothing if they are the same, else the first operator
 * or parameter. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <trireme.h>

#include "cli/compare.h"

#define APART "-recompute,-format,-hoist,-in-place,-order,-fuse"

/* Two runs of a small network with two lanes. */
struct pair {
    tri_run *run[2];
};

static tri_run *open_run(uint64_t seed, int64_t lanes) {
    tri_graph *g = tri_model_open("mlp:hidden=8,size=4", 8);
    const tri_options o = {.batch = 8, .lanes = lanes, .steps = 4, .threads = 1, .passes = APART,
                           .seed = seed, .data = "synthetic:size=32", .quiet = true};
    tri_run *run = tri_open(g, &o);
    if (!run) fail_msg("%s", tri_message());
    return run;
}

static struct pair pair(uint64_t seed, int64_t lanes) {
    return (struct pair){{open_run(0, 2), open_run(seed, lanes)}};
}

static void close_pair(struct pair *p) {
    for (int i = 0; i < 2; i++) assert_int_equal(tri_close(p->run[i]), TRI_OK);
}

/* The first parameter, read, changed in one element, and written. */
static void change(tri_run *run, const char *name, int64_t n, float by) {
    float *value = calloc((size_t)n, sizeof *value);
    assert_non_null(value);
    assert_int_equal(tri_read(run, name, value, (size_t)n * sizeof *value), TRI_OK);
    value[n - 1] += by;
    assert_int_equal(tri_write(run, name, value, (size_t)n * sizeof *value), TRI_OK);
    free(value);
}

static void expect(struct pair *p, double tolerance, const char *start, const char *part) {
    struct text out = {0};
    size_t compared = 0;
    assert_int_equal(compare_step(p->run, tolerance, &compared, &out), TRI_OK);
    const char *said = out.data ? out.data : "";
    if (!start ? *said : (strncmp(said, start, strlen(start)) || !strstr(said, part)))
        fail_msg("\"%s\"", said);
    if (!start) assert_true(compared > 20);
    text_free(&out);
}

static void test_same(void **state) {
    struct pair p = pair(0, 2);
    (void)state;
    for (int i = 0; i < 3; i++) expect(&p, -1, NULL, NULL);
    close_pair(&p);
}

/* The samples differ. */
static void test_seed(void **state) {
    struct pair p = pair(1, 2);
    (void)state;
    expect(&p, -1, "step 1, lane 0, ", "reshape (reshape ");
    close_pair(&p);
}

/* Of the second step, in the layer that reads the parameter: the one before is the same. */
static void test_parameter(void **state) {
    struct pair p = pair(0, 2);
    (void)state;
    expect(&p, -1, NULL, NULL);
    change(p.run[1], "fc2.bias", 8, 0.25f);
    expect(&p, -1, "step 2, lane 0, ", "fc2.add (add ");
    close_pair(&p);
}

static void test_tolerance(void **state) {
    struct pair p = pair(0, 2);
    (void)state;
    change(p.run[1], "fc2.bias", 8, 1e-5f);
    expect(&p, 1e-2, NULL, NULL);
    expect(&p, 1e-7, "step 2, lane 0, ", "beyond 1e-07 of the largest value, ");
    close_pair(&p);
}

/* Other lanes: only what all lanes make together is compared. */
static void test_lanes(void **state) {
    struct pair p = pair(0, 4);
    struct text out = {0};
    size_t compared = 0;
    (void)state;
    assert_int_equal(compare_step(p.run, 1e-4, &compared, &out), TRI_OK);
    assert_int_equal(out.size, 0);
    assert_int_equal(compare_step(p.run, -1, &compared, &out), TRI_OK);
    assert_null(strstr(out.data ? out.data : "", "lane"));
    text_free(&out);
    close_pair(&p);
}

static void test_values(void **state) {
    static const float a[] = {1, -4, 0, NAN}, zero[] = {-0.0f, INFINITY};
    static const struct {
        const float *a, b[4];
        int64_t n;
        double tolerance;
        int64_t at; /* the first that differs; -1: none */
        bool same;
    } cases[] = {
        {a, {1, -4, 0, NAN}, 4, -1, -1, true},
        {a, {1, -4.0004f, 0, NAN}, 4, -1, 1, false},
        {a, {1, -4.0004f, 0, NAN}, 4, 1e-3, -1, false},
        {a, {1, -4.0004f, 0, NAN}, 4, 1e-5, 1, false},
        {a, {1, -4, NAN, NAN}, 4, 1e-3, 2, false}, /* a NaN is near nothing */
        {a, {INFINITY, -4, 0, NAN}, 4, 1e-3, 0, false},
        {zero, {0, INFINITY}, 2, 1e-3, -1, false},
        {zero, {1, INFINITY}, 2, 1e-3, 0, false}, /* infinity is no largest value */
        {zero, {0, -INFINITY}, 2, 1e-3, 1, false},
        {zero, {0, 1}, 2, 1e-3, 1, false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct compare_values v = {.tolerance = cases[i].tolerance};
        bool equal = compare_equal(&v, TRI_F32, cases[i].a, cases[i].b, cases[i].n);
        if (equal != (cases[i].at < 0) || v.at != cases[i].at || v.same != cases[i].same)
            fail_msg("case %zu: %d %lld %d", i, equal, (long long)v.at, v.same);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),      cmocka_unit_test(test_seed),
        cmocka_unit_test(test_parameter), cmocka_unit_test(test_tolerance),
        cmocka_unit_test(test_lanes),     cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
