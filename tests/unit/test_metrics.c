/* SPDX-License-Identifier: Apache-2.0
 * metrics.jsonl and logs, with times given by the test. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <sys/stat.h>

#include "observe/log.h"
#include "observe/metrics.h"
#include "unit/observed.h"
#include "unit/scratch.h"

/* ---- metrics ---- */

/* Line `i` of the file as an object. */
static json_t *line_of(const char *path, int i) {
    char *text;
    size_t bytes;
    assert_int_equal(base_read_file(path, &text, &bytes), TRI_OK);
    char *p = text;
    for (int k = 0; k < i; k++) p = strchr(p, '\n') + 1;
    p[strcspn(p, "\n")] = 0;
    json_error_t error;
    json_t *object = json_loads(p, 0, &error);
    if (!object) fail_msg("line %d, \"%s\": %s", i, p, error.text);
    free(text);
    return object;
}

static int lines_in(const char *path) {
    char *text;
    size_t bytes;
    assert_int_equal(base_read_file(path, &text, &bytes), TRI_OK);
    int n = count_lines(text);
    free(text);
    return n;
}

static void rows(void **state) {
    (void)state;
    struct metrics m;
    assert_int_equal(metrics_open(&m, at("a/b"), 2, names), TRI_OK);
    for (int i = 1; i <= 5; i++) {
        double value[] = {i == 2 ? (double)NAN : i, i == 3 ? (double)INFINITY : (double)0.1f};
        struct observed o = at_step(i, 5, i, value);
        metrics_step(&m, &o);
    }
    assert_int_equal(metrics_close(&m), TRI_OK);
    assert_int_equal(lines_in(at("a/b/metrics.jsonl")), 5);
    json_t *row = line_of(at("a/b/metrics.jsonl"), 0);
    assert_int_equal(json_integer_value(json_object_get(row, "step")), 1);
    assert_int_equal(json_integer_value(json_object_get(row, "epoch")), 3);
    assert_true(json_real_value(json_object_get(row, "loss")) == 1);
    assert_true((float)json_real_value(json_object_get(row, "top1")) == 0.1f);
    assert_true(json_real_value(json_object_get(row, "lr")) == 0.5);
    assert_true(json_real_value(json_object_get(row, "seconds")) == 1);
    assert_int_equal(json_integer_value(json_object_get(row, "samples")), 16);
    assert_null(json_object_get(row, "steps"));
    json_decref(row);
    row = line_of(at("a/b/metrics.jsonl"), 1);
    assert_true(json_is_null(json_object_get(row, "loss")));
    json_decref(row);
    row = line_of(at("a/b/metrics.jsonl"), 2);
    assert_true(json_is_null(json_object_get(row, "top1")));
    json_decref(row);
}

/* A thousand steps a second for a second; the run ends early. */
/* What has been added since the line before, or since the file was opened. */
static void between_hosts(void **state) {
    (void)state;
    struct metrics m;
    const double value[] = {1, 2};
    struct observed_hosts now = {5, 6, 7, 1};
    const char *const path = at("h/metrics.jsonl");
    assert_int_equal(metrics_open(&m, at("h"), 2, names), TRI_OK);
    m.before = now;
    m.every = 2;
    for (int i = 1; i <= 4; i++) {
        struct observed o = at_step(i, 4, i, value);
        o.hosts = &now;
        now = (struct observed_hosts){now.sent + 100, now.received + 10, now.sent_whole + 200 * i,
                                      now.exposed + 0.25};
        metrics_step(&m, &o);
    }
    assert_int_equal(metrics_close(&m), TRI_OK);
    assert_int_equal(lines_in(path), 2);
    for (int i = 0; i < 2; i++) {
        json_t *row = line_of(path, i);
        assert_int_equal(json_integer_value(json_object_get(row, "sent")), 200);
        assert_int_equal(json_integer_value(json_object_get(row, "received")), 20);
        assert_int_equal(json_integer_value(json_object_get(row, "sent_whole")), i ? 1400 : 600);
        assert_true(json_real_value(json_object_get(row, "exposed")) == 0.5);
        json_decref(row);
    }
}

static void aggregated(void **state) {
    (void)state;
    struct metrics m;
    assert_int_equal(metrics_open(&m, directory, 2, names), TRI_OK);
    for (int i = 1; i <= 1005; i++) {
        double value[] = {(double)i, 1};
        struct observed o = at_step(i, 5000, 0.001 * i, value);
        metrics_step(&m, &o);
    }
    assert_int_equal(metrics_close(&m), TRI_OK);
    int n = lines_in(at("metrics.jsonl"));
    assert_in_range(n, 90, 103);
    int64_t sum = 0, before = 0;
    for (int i = 0; i < n; i++) {
        json_t *row = line_of(at("metrics.jsonl"), i);
        json_t *steps = json_object_get(row, "steps");
        int64_t here = steps ? json_integer_value(steps) : 1;
        int64_t last = json_integer_value(json_object_get(row, "step"));
        double mean = (double)(before + 1 + last) / 2;
        assert_int_equal(last, before + here);
        assert_int_equal(json_integer_value(json_object_get(row, "samples")), 16 * here);
        assert_true(fabs(json_real_value(json_object_get(row, "loss")) - mean) < 1e-5);
        before = last;
        sum += here;
        json_decref(row);
    }
    assert_int_equal(sum, 1005);
}

/* What the file has is overwritten, unless another run is writing it. */
static void written_again(void **state) {
    (void)state;
    struct metrics m, other;
    double value[] = {1, 1};
    for (int i = 2; i >= 1; i--) {
        assert_int_equal(metrics_open(&m, directory, 2, names), TRI_OK);
        for (int k = 0; k < i; k++) {
            struct observed o = at_step(k + 1, k + 1, 1, value);
            metrics_step(&m, &o);
        }
        assert_int_equal(metrics_close(&m), TRI_OK);
    }
    assert_int_equal(lines_in(at("metrics.jsonl")), 1);
    assert_int_equal(metrics_open(&m, directory, 2, names), TRI_OK);
    struct observed o = at_step(1, 1, 1, value);
    metrics_step(&m, &o);
    assert_int_equal(metrics_open(&other, directory, 2, names), TRI_FAILED);
    assert_non_null(strstr(tri_message(), "written by another run"));
    assert_int_equal(metrics_close(&m), TRI_OK);
    assert_int_equal(lines_in(at("metrics.jsonl")), 1);
}

static void refused(const char *where, tri_status status, const char *message) {
    struct metrics m;
    assert_int_equal(metrics_open(&m, where, 2, names), status);
    if (!strstr(tri_message(), message))
        fail_msg("the message is \"%s\", which lacks \"%s\"", tri_message(), message);
    assert_int_equal(metrics_close(&m), TRI_OK);
}

static void refusals(void **state) {
    (void)state;
    FILE *f = fopen(at("file"), "w");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    refused("", TRI_USAGE, "empty name");
    refused(at("file"), TRI_FAILED, "/file");
    refused(at("file/under"), TRI_FAILED, "--out");
    static const char *const taken[] = {"loss", "seconds"};
    struct metrics m;
    assert_int_equal(metrics_open(&m, directory, 2, taken), TRI_USAGE);
    assert_non_null(strstr(tri_message(), "\"seconds\""));
    assert_int_equal(metrics_open(&m, NULL, 2, names), TRI_OK);
    double value[] = {1, 1};
    struct observed o = at_step(1, 1, 1, value);
    metrics_step(&m, &o);
    assert_int_equal(metrics_close(&m), TRI_OK);
}

/* A device that is always full. */
static void full_disk(void **state) {
    (void)state;
    struct metrics m;
    assert_int_equal(metrics_open(&m, directory, 2, names), TRI_OK);
    m.file = freopen("/dev/full", "w", m.file);
    assert_non_null(m.file);
    double value[] = {1, 1};
    for (int i = 1; i <= 3; i++) {
        struct observed o = at_step(i, 10, 2 * i, value);
        metrics_step(&m, &o);
    }
    assert_int_equal(metrics_close(&m), TRI_FAILED);
    assert_non_null(strstr(tri_message(), "No space left"));
    assert_non_null(strstr(tri_message(), "metrics.jsonl"));
}

/* ---- a writer that dies, and its successor ---- */

static void write_text(const char *path, const char *mode, const char *text) {
    FILE *f = fopen(path, mode);
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static int64_t whole(json_t *row, const char *name) {
    return json_integer_value(json_object_get(row, name));
}

/* For a writer that may die. */
static void at_once(void **state) {
    (void)state;
    struct metrics m;
    double value[] = {1, 1};
    assert_int_equal(metrics_open(&m, directory, 2, names), TRI_OK);
    m.at_once = true;
    for (int i = 1; i <= 2; i++) {
        struct observed o = at_step(i, 5, i * 0.02, value);
        metrics_step(&m, &o);
        assert_int_equal(lines_in(at("metrics.jsonl")), i);
    }
    assert_int_equal(metrics_close(&m), TRI_OK);
}

/* The file ends in the middle of a line, or has no complete line. */
static void goes_on_after(const char *end, int64_t through) {
    struct metrics m;
    double value[] = {1, 1};
    char path[512];
    snprintf(path, sizeof path, "%s", at("metrics.jsonl"));
    write_text(path, "w", through ? "{\"step\":6}\n{\"step\":7}\n" : "");
    write_text(path, "a", end);
    assert_int_equal(metrics_resume(&m, directory, 2, names), TRI_OK);
    int before = through ? 2 : 0;
    assert_int_equal(m.through, through);
    for (int i = 6; i <= 9; i++) {
        struct observed o = at_step(i, 9, i, value);
        metrics_step(&m, &o);
    }
    assert_int_equal(metrics_close(&m), TRI_OK);
    int n = lines_in(path);
    assert_int_equal(n, before + 9 - (through > 5 ? through : 5));
    for (int i = 0, last = 0; i < n; i++) {
        json_t *row = line_of(path, i);
        assert_true(whole(row, "step") > last);
        last = (int)whole(row, "step");
        json_decref(row);
    }
    assert_true(access(at("metrics.1.jsonl"), F_OK));
}

/* Its own row after the row of its step; once, even if another writer repeats that evaluation. */
static void evaluations(void **state) {
    (void)state;
    static const int64_t evaluated[] = {3, 3, 3, 5};
    struct metrics m;
    const double value[] = {0.5, NAN};
    const char *path = at("metrics.jsonl");
    assert_int_equal(metrics_open(&m, directory, 2, names), TRI_OK);
    for (int64_t step = 1; step <= 3; step++) { /* too fast for one row per step */
        struct observed o = at_step(step, 5, 0.001 * (double)step, value);
        metrics_step(&m, &o);
    }
    for (size_t i = 0; i < COUNT(evaluated); i++) {
        struct observed o = at_step(evaluated[i], 5, 0.004, value);
        metrics_evaluation(&m, &o);
        if (i == 1) assert_int_equal(metrics_close(&m), TRI_OK);
        if (i == 1) assert_int_equal(metrics_resume(&m, directory, 2, names), TRI_OK);
    }
    assert_int_equal(metrics_close(&m), TRI_OK);
    assert_int_equal(lines_in(path), 4); /* steps 1, 2 to 3, and two evaluations */
    json_t *row = line_of(path, 1), *eval = line_of(path, 2), *last = line_of(path, 3);
    assert_int_equal(whole(row, "step"), 3);
    assert_int_equal(whole(eval, "step"), 3);
    assert_int_equal(whole(last, "step"), 5);
    assert_null(json_object_get(eval, "loss"));
    assert_true(json_real_value(json_object_get(json_object_get(eval, "eval"), "loss")) == 0.5);
    assert_true(json_is_null(json_object_get(json_object_get(eval, "eval"), "top1")));
    json_decref(row);
    json_decref(eval);
    json_decref(last);
}

static void continued(void **state) {
    (void)state;
    goes_on_after("", 7);
    goes_on_after("{\"step\":8,\"epo", 7);
    goes_on_after("{\"st", 0);
    goes_on_after("", 0);
}

/* ---- logs ---- */

static void check_log(const char *path, int64_t most) {
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size <= most);
    int n = lines_in(path);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        json_t *line = line_of(path, i);
        assert_non_null(json_string_value(json_object_get(line, "time")));
        assert_string_equal(json_string_value(json_object_get(line, "level")), "warning");
        assert_true(json_real_value(json_object_get(line, "seconds")) == 0.25);
        assert_string_equal(json_string_value(json_object_get(line, "text")), "a \"b\"\n\\");
        json_decref(line);
    }
}

/* Far more than the limit: the latest lines stay, at least half of the limit. */
static void rotated(void **state) {
    (void)state;
    struct log l;
    char path[512];
    snprintf(path, sizeof path, "%s", at("some.log"));
    assert_int_equal(log_open(&l, path, 4096), TRI_OK);
    for (int i = 0; i < 500; i++)
        log_event(&l, LOG_WARNING, "test", "worker=%d step=%lld seconds=%g text=%s", 3,
                  (long long)i, 0.25, "a \"b\"\n\\");
    log_close(&l);
    check_log(at("some.log.old"), 2048);
    check_log(path, 2048);
    json_t *last = line_of(path, lines_in(path) - 1);
    assert_int_equal(whole(last, "step"), 499);
    json_decref(last);
}

static void torn_log(void **state) {
    (void)state;
    struct log l;
    char path[512];
    snprintf(path, sizeof path, "%s", at("some.log"));
    write_text(path, "w", "{\"event\":\"a\"}\n{\"event\":\"b");
    assert_int_equal(log_open(&l, path, LOG_BUDGET), TRI_OK);
    log_event(&l, LOG_INFO, "c", "worker=%d", 1);
    log_close(&l);
    assert_int_equal(lines_in(path), 2);
    json_t *line = line_of(path, 1);
    assert_string_equal(json_string_value(json_object_get(line, "event")), "c");
    json_decref(line);
    assert_int_equal(log_open(&l, at("no/such.log"), LOG_BUDGET), TRI_FAILED);
    log_event(&l, LOG_INFO, "nowhere", "worker=%d", 1);
    log_close(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(between_hosts, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(aggregated, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(written_again, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(refusals, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(full_disk, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(at_once, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(continued, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(evaluations, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(rotated, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(torn_log, make_directory, remove_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
