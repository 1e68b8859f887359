/* SPDX-License-Identifier: Apache-2.0
 * Progress lines, with times given by the test. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "unit/observed.h"

/* ---- progress ---- */

static void begin(struct paper *paper, struct progress *p, bool terminal) {
    paper_open(paper);
    assert_int_equal(progress_open(p, paper->file, terminal, 2, 0), TRI_OK);
}

static void durations(void **state) {
    (void)state;
    char text[DURATION_TEXT];
    assert_string_equal(progress_duration(0, text), "0:00");
    assert_string_equal(progress_duration(7.4, text), "0:07");
    assert_string_equal(progress_duration(59.6, text), "1:00");
    assert_string_equal(progress_duration(754, text), "12:34");
    assert_string_equal(progress_duration(10921, text), "3:02:01");
    assert_string_equal(progress_duration(183845, text), "2d 03:04:05");
    progress_duration(1e300, text);
}

static void heads(void **state) {
    (void)state;
    struct paper paper;
    struct progress p;
    begin(&paper, &p, false);
    struct progress_head h = {.model = "mlp", .device = "ref (plain C)", .data = "synthetic",
                              .parameters = 1234, .lanes = 4, .batch = 10,
                              .workers = 1, .threads = 1};
    progress_begin(&p, &h);
    assert_string_equal(paper.text, "mlp: 1234 parameters, 4 lanes x 2-3 samples of synthetic, "
                                    "device ref (plain C), 1 thread\n");
    h.lanes = 1;
    h.threads = 2;
    progress_begin(&p, &h);
    assert_non_null(strstr(paper.text, "1 lane x 10 samples"));
    assert_non_null(strstr(paper.text, "(plain C), 2 threads\n"));
    h.workers = 4;
    progress_begin(&p, &h);
    assert_non_null(strstr(paper.text, "(plain C), 4 workers of 2 threads\n"));
    h.seats = 2;
    h.stages = 3;
    progress_begin(&p, &h);
    assert_non_null(strstr(paper.text, "of synthetic, mesh of 2 seats, 3 stages, device ref"));
    progress_close(&p);
    paper_close(&paper);
}

/* Ten steps a second: a line for the first step, about one a second, and one for the last. */
static void plain_lines(void **state) {
    (void)state;
    struct paper paper;
    struct progress p;
    begin(&paper, &p, false);
    for (int i = 1; i <= 100; i++) {
        double value[] = {(double)i, 0.5};
        struct observed o = at_step(i, 100, 0.1 * i, value);
        progress_step(&p, &o);
    }
    progress_close(&p);
    fflush(paper.file);
    assert_in_range(count_lines(paper.text), 10, 12);
    assert_int_equal(strncmp(paper.text, "step 1/100  loss 1.000  top1 0.5000", 35), 0);
    const char *last = strstr(paper.text, "step 100/100");
    assert_non_null(last);
    assert_non_null(strstr(last, "160 samples/s"));
    assert_null(strstr(last, "ETA"));
    /* The second line has the mean of steps 2 to 11, and the time left at ten steps a second. */
    const char *second = strchr(paper.text, '\n') + 1;
    assert_int_equal(strncmp(second, "step 11/100  loss 6.500  ", 25), 0);
    assert_non_null(strstr(second, "ETA 0:09\n"));
    paper_close(&paper);
}

/* Every second step has a quarter of the samples: steps are weighted by their samples in means and
 * in the rate. */
static void smaller_steps(void **state) {
    (void)state;
    struct paper paper;
    struct progress p;
    begin(&paper, &p, false);
    for (int i = 1; i <= 100; i++) {
        double value[] = {i % 2 ? 1 : 2, 0.5};
        struct observed o = at_step(i, 100, 0.1 * i, value);
        if (i % 2) o.samples = 4;
        progress_step(&p, &o);
    }
    progress_close(&p);
    fflush(paper.file);
    /* Steps 2 to 11: five of 16 samples with 2, five of 4 with 1; 104 samples in 1.1 s so far. */
    const char *second = strchr(paper.text, '\n') + 1;
    assert_int_equal(strncmp(second, "step 11/100  loss 1.800  top1 0.5000  94.5 samples/s", 52),
                     0);
    paper_close(&paper);
}

/* Lines become rarer: over ten hours there is at most one per minute, but some. */
static void rare_lines(void **state) {
    (void)state;
    struct paper paper;
    struct progress p;
    begin(&paper, &p, false);
    double value[] = {1, 1};
    for (int i = 1; i <= 36000; i++) {
        struct observed o = at_step(i, 36000, i, value);
        progress_step(&p, &o);
    }
    progress_close(&p);
    fflush(paper.file);
    assert_in_range(count_lines(paper.text), 500, 720);
    paper_close(&paper);
}

static void early_end(void **state) {
    (void)state;
    struct paper paper;
    struct progress p;
    begin(&paper, &p, false);
    double value[] = {1, 1};
    for (int i = 1; i <= 7; i++) {
        struct observed o = at_step(i, 100, 0.01 * i, value);
        progress_step(&p, &o);
    }
    progress_close(&p);
    fflush(paper.file);
    assert_int_equal(count_lines(paper.text), 2);
    assert_non_null(strstr(paper.text, "\nstep 7/100"));
    paper_close(&paper);
}

/* Another worker printed steps 1 to 40 and died at step 50: the next line comes a second later, and
 * the rate is that of the steps since then. */
static void taken_over(void **state) {
    (void)state;
    struct paper paper;
    struct progress p;
    begin(&paper, &p, false);
    double value[] = {1, 1};
    struct observed now = at_step(50, 75, 50, value);
    progress_resume(&p, &now, 40);
    progress_step(&p, &now);
    for (int i = 51; i <= 75; i++) {
        struct observed o = at_step(i, 75, 50 + 0.1 * (i - 50), value);
        progress_step(&p, &o);
        assert_int_equal(p.shown, i < 75 ? 40 : 75);
    }
    progress_close(&p);
    fflush(paper.file);
    assert_string_equal(paper.text, "step 75/75  loss 1.000  top1 1.000  160 samples/s\n");
    paper_close(&paper);
}

/* Ten steps a second, with an evaluation of a minute after every tenth. */
static void evaluations_are_no_steps(void **state) {
    (void)state;
    struct paper paper;
    struct progress p;
    begin(&paper, &p, false);
    double value[] = {1, 1}, aside = 0;
    for (int i = 1; i <= 200; i++) {
        struct observed o = at_step(i, 300, 0.1 * i + aside, value);
        o.aside = aside;
        progress_step(&p, &o);
        if (i % 10 == 0) aside += 60;
    }
    progress_close(&p);
    fflush(paper.file);
    int lines = 0;
    for (char *line = strtok(paper.text, "\n"); line; line = strtok(NULL, "\n")) {
        lines++;
        assert_non_null(strstr(line, "  160 samples/s  ETA 0:"));
    }
    assert_true(lines > 10);
    paper_close(&paper);
}

static void terminal_line(void **state) {
    (void)state;
    struct paper paper;
    struct progress p;
    begin(&paper, &p, true);
    p.width = 32;
    double value[] = {NAN, 0.25};
    for (int i = 1; i <= 3; i++) {
        struct observed o = at_step(i, 3, 0.5 * i, value);
        progress_step(&p, &o);
    }
    fflush(paper.file);
    assert_int_equal(count_lines(paper.text), 0);
    assert_string_equal(paper.text, "\rstep 1/3  loss nan  top1 0.2500\033[K"
                                    "\rstep 2/3  loss nan  top1 0.2500\033[K"
                                    "\rstep 3/3  loss nan  top1 0.2500\033[K");
    progress_close(&p);
    fflush(paper.file);
    assert_int_equal(count_lines(paper.text), 1);
    paper_close(&paper);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations),
        cmocka_unit_test(heads),
        cmocka_unit_test(plain_lines),
        cmocka_unit_test(smaller_steps),
        cmocka_unit_test(rare_lines),
        cmocka_unit_test(early_end),
        cmocka_unit_test(taken_over),
        cmocka_unit_test(evaluations_are_no_steps),
        cmocka_unit_test(terminal_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
