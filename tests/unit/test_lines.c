/* SPDX-License-Identifier: Apache-2.0
 * Lines of metrics.jsonl as the reader of runs takes them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>
#include <math.h>

#include "observe/metrics.h"
#include "profile/lines.h"
#include "unit/observed.h"
#include "unit/scratch.h"

static double value(const struct lines *l, const char *name) {
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->name[i], name)) return l->value[i];
    return NAN;
}

static const struct {
    const char *line;
    bool good, evaluation;
    double step, loss;
} cases[] = {
    {"{\"step\":1,\"loss\":0.1}", true, false, 1, 0.1},
    {"{\"step\":2,\"loss\":-1.5e-3}", true, false, 2, -1.5e-3},
    {"{\"step\":3,\"loss\":123456789012345678901}", true, false, 3, 123456789012345678901.0},
    {"{\"step\":3,\"loss\":0.1000000000000000055511151231257827}", true, false, 3, 0.1},
    {"{\"step\":3,\"loss\":9007199254740993e-40}", true, false, 3, 9007199254740993e-40},
    {"{\"step\":3,\"loss\":5e-324}", true, false, 3, 5e-324},
    {"{\"step\":4,\"loss\":null}", true, false, 4, NAN},
    {"{\"step\":5}", true, false, 5, NAN},
    {"{\"step\":6,\"workers\":[{\"worker\":0,\"seats\":[0,1],\"loss\":3}],\"loss\":2}", true,
     false, 6, 2},
    {"{\"step\":7,\"workers\":[\"]\\\"\"],\"loss\":2}", true, false, 7, 2},
    {"{\"step\":8,\"eval\":{\"loss\":4},\"seconds\":1}", true, true, 8, 4},
    {"{\"step\":8,\"eval\":{}}", true, true, 8, NAN},
    {" { \"step\" : 9 , \"eval\" : { \"loss\" : 4 } } ", true, true, 9, 4},
    {"{\"step\":10,\"x\":\"y\",\"z\":true,\"o\":{\"loss\":1},\"lo\\u0073s\":6}", true, false, 10,
     6},
    {"{\"loss\":1}", false, false, 0, 0},
    {"{\"step\":-1}", false, false, 0, 0},
    {"{\"step\":1e300}", false, false, 0, 0},
    {"{\"step\":null}", false, false, 0, 0},
    {"{\"step\":1,\"loss\":}", false, false, 0, 0},
    {"{\"step\":1,\"loss\":2", false, false, 0, 0},
    {"{\"step\":1}}", false, false, 0, 0},
    {"{\"step\":1,}", false, false, 0, 0},
    {"{\"step\":1 \"loss\":2}", false, false, 0, 0},
    {"{\"step\":1,\"eval\":{\"loss\":4}", false, false, 0, 0},
    {"{\"step\":1,\"eval\":{\"eval\":{\"loss\":4}", false, false, 0, 0},
    {"[1]", false, false, 0, 0},
    {"", false, false, 0, 0},
    {"{}", false, false, 0, 0},
};

static void scanned(void **state) {
    (void)state;
    struct lines l = {0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const bool good = lines_scan(&l, cases[i].line);
        if (good != cases[i].good) fail_msg("'%s' is %s", cases[i].line, good ? "read" : "refused");
        if (!good) continue;
        const double loss = value(&l, "loss");
        if (l.value[LINES_STEP] != cases[i].step || l.evaluation != cases[i].evaluation ||
            (loss != cases[i].loss && !(isnan(loss) && isnan(cases[i].loss))))
            fail_msg("'%s': step %g, loss %.17g", cases[i].line, l.value[LINES_STEP], loss);
    }
    lines_free(&l);
}

/* What observe/metrics.c writes, and the file cut at each byte. */
static void written(void **state) {
    (void)state;
    struct metrics m;
    char *text;
    size_t bytes;
    assert_int_equal(metrics_open(&m, at("run"), 2, names), TRI_OK);
    for (int i = 1; i <= 3; i++) {
        const double values[] = {i / 3.0, 1e-30 * i};
        const struct observed o = at_step(i, 3, i / 7.0, values);
        metrics_step(&m, &o);
        if (i == 2) metrics_evaluation(&m, &o);
    }
    assert_int_equal(metrics_close(&m), TRI_OK);
    assert_int_equal(base_read_file(at("run/metrics.jsonl"), &text, &bytes), TRI_OK);
    for (size_t cut = 0; cut <= bytes; cut++) {
        struct lines l = {0};
        FILE *f = fopen(at("cut"), "w");
        assert_int_equal(fwrite(text, 1, cut, f), cut);
        fclose(f);
        int rows = 0, whole = 0;
        for (size_t i = 0; i < cut; i++) whole += text[i] == '\n';
        assert_int_equal(lines_open(&l, at("cut")), TRI_OK);
        for (; lines_next(&l); rows++) {
            const int step = (int)l.value[LINES_STEP];
            assert_int_equal(step, rows < 2 ? rows + 1 : rows);
            assert_int_equal(l.evaluation, rows == 2);
            assert_true(fabs(value(&l, "loss") - step / 3.0) < 1e-9);
            assert_true(fabs(value(&l, "top1") / (1e-30 * step) - 1) < 1e-8);
        }
        assert_int_equal(rows, whole);
        assert_int_equal(l.damaged, 0);
        lines_free(&l);
    }
    free(text);
}

/* A line of 1 MB, a zero byte, more fields than are read. */
static void odd(void **state) {
    (void)state;
    struct lines l = {0};
    FILE *f = fopen(at("odd"), "w");
    fprintf(f, "{\"step\":1,\"x\":\"%0*d\"}\n", 1 << 20, 0);
    fwrite("{\"step\":2}\0\n", 1, 12, f);
    fprintf(f, "{\"step\":3");
    for (int i = 0; i < 2000; i++) fprintf(f, ",\"f%d\":1", i);
    fprintf(f, "}\n{\"step\":4}\n");
    fclose(f);
    assert_int_equal(lines_open(&l, at("odd")), TRI_OK);
    for (int step = 1; step <= 4; step += 1 + (step == 1)) {
        assert_true(lines_next(&l));
        assert_int_equal((int)l.value[LINES_STEP], step);
    }
    assert_false(lines_next(&l));
    assert_int_equal(l.damaged, 1);
    assert_true(l.n <= 1000);
    lines_free(&l);
    assert_int_not_equal(lines_open(&l, at("none")), TRI_OK);
    assert_message("No such file");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(scanned), cmocka_unit_test(written),
                                       cmocka_unit_test(odd)};
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
