/* SPDX-License-Identifier: Apache-2.0
 * What the agent's meter writes of a made-up head, on a made-up system. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <sched.h>
#include <time.h>

#include "launch/meter.h"
#include "run/own_series.h"
#include "unit/false_root.h"

#define SECOND 1000000000
#define MS 1000000

static int64_t now;
static int64_t false_clock(void) { return now; }

static struct crew_head *head_of(int workers, int threads) {
    const struct crew_size size = {.workers = workers, .threads = threads};
    struct crew_head *h = aligned_alloc(CREW_PAGE, crew_head_bytes());
    assert_non_null(h);
    memset(h, 0, crew_head_bytes());
    crew_head_begin(h, &size);
    now = 100ll * SECOND;
    return h;
}

static void step(struct crew_head *h, uint64_t number, int64_t took) {
    atomic_store(&h->course.opened, number);
    atomic_store(&h->course.committed, number);
    crew_note_slow(&h->course, number, took);
}

/* Of a thread that is between two activities: what it has spent so far. */
static void spent(struct crew_head *h, int thread, enum spent on, int64_t time) {
    atomic_store(&h->thread[thread].spending.time[on], time);
}

static const char *series_path(void) {
    static char path[128];
    base_format(path, sizeof path, "%s/workers.series", root);
    return path;
}

static void open_series(struct series *s, int64_t frames) {
    assert_int_equal(series_open(s, series_path()), TRI_OK);
    assert_int_equal(s->n, frames);
}

static double value(const struct series *s, int place, const char *name) {
    const int column = series_column(s, name);
    assert_in_range(column, 0, s->layout.n);
    return series_value(s, place, column);
}

static void assert_near(double is, double right) {
    if (!(fabs(is - right) < 2e-5)) fail_msg("%g is not %g", is, right);
}

static void frames(void **state) {
    (void)state;
    struct series s;
    struct crew_head *h = head_of(2, 2);
    struct meter *m = meter_make(root, h, root, false_clock);
    meter_turn(m);
    assert_int_equal(access(series_path(), F_OK), -1); /* no step has been opened */
    now += SECOND;
    step(h, 1, 70 * MS);
    step(h, 2, 30 * MS);
    for (int t = 0; t < 4; t++) spent(h, t, SPENT_START, SECOND / 2);
    spent(h, 2, SPENT_COMPUTE, SECOND / 2);
    atomic_store(&h->thread[2].lanes_done, 3);
    atomic_store(&h->thread[3].lanes_lost, 2);
    atomic_store(&h->worker[1].peak, 5 << 20);
    atomic_store(&h->hosts.sent, 3000);
    meter_turn(m);
    atomic_store(&h->hosts.sent, 9000);
    atomic_store(&h->hosts.received, 5 << 10);
    atomic_store(&h->hosts.sent_whole, 9 << 10);
    now += 49 * MS;
    step(h, 3, 20 * MS);
    meter_turn(m); /* too soon */
    now += MS;
    spent(h, 0, SPENT_WAIT_LANES, 50 * MS);
    spent(h, 1, SPENT_WAIT_LANES, 25 * MS);
    atomic_store(&h->thread[2].lanes_done, 4);
    meter_turn(m);
    now += 9 * (int64_t)SECOND;
    meter_turn(m); /* no step is done */
    open_series(&s, 2);
    assert_true(series_read(&s, 0));
    assert_int_equal(s.frame.step, 2);
    assert_int_equal(s.frame.steps, 2);
    assert_int_equal(s.frame.covers, SECOND);
    assert_int_equal(s.frame.time, SECOND);
    assert_int_equal(s.frame.slowest, 70 * MS);
    assert_int_equal(s.frame.slowest_step, 1);
    assert_near(value(&s, 0, "start"), 0.5);
    assert_near(value(&s, 0, "compute"), 0);
    assert_near(value(&s, 1, "compute"), 0.25);
    assert_true(value(&s, 1, "lanes-done") == 3 && value(&s, 1, "lanes-lost") == 2);
    assert_true(value(&s, 1, "memory-kib") == 5 << 10);
    assert_true(value(&s, 0, "sent-kib") == 2 && value(&s, 1, "sent-kib") == 0);
    assert_true(series_read(&s, 1));
    assert_int_equal(s.frame.steps, 1);
    assert_int_equal(s.frame.slowest_step, 3);
    assert_near(value(&s, 0, "start"), 0);
    assert_true(value(&s, 0, "sent-kib") == 6 && value(&s, 0, "received-kib") == 5);
    assert_true(value(&s, 0, "sent-whole-kib") == 9 && value(&s, 1, "sent-whole-kib") == 0);
    assert_near(value(&s, 0, "lanes"), 0.75);
    assert_true(value(&s, 1, "lanes-done") == 1 && value(&s, 1, "lanes-lost") == 0);
    series_close(&s);
    now += 2 * (int64_t)SECOND; /* a step that takes long is seen before it ends */
    meter_turn(m);
    open_series(&s, 3);
    series_close(&s);
    meter_last(m);
    meter_end(m);
    open_series(&s, 3);
    series_close(&s);
    /* A resumed run goes on, a new one does not. */
    for (int base = 3; base >= 0; base -= 3) {
        step(h, 4, MS);
        atomic_store(&h->course.base, (uint64_t)base);
        m = meter_make(root, h, root, false_clock);
        now += MS;
        meter_turn(m);
        meter_last(m);
        meter_end(m);
        open_series(&s, base ? 4 : 1);
        assert_true(series_read(&s, s.n - 1));
        assert_int_equal(s.frame.steps, base ? 1 : 4);
        series_close(&s);
    }
    free(h);
}

/* The step's number in the head has 24 bits, and the time is never 0. */
static void slowest_steps(void **state) {
    (void)state;
    struct crew_head *h = head_of(1, 1);
    uint64_t step_is;
    const uint64_t base[] = {0, (1 << 24) - 2, (uint64_t)1 << 40};
    for (size_t i = 0; i < COUNT(base); i++) {
        assert_int_equal(crew_take_slowest(&h->course, &step_is), 0);
        assert_int_equal(step_is, 0);
        step(h, base[i] + 1, 10);
        step(h, base[i] + 2, 5 * MS);
        step(h, base[i] + 3, 4 * MS);
        step(h, base[i] + 4, 5 * MS - 1);
        assert_int_equal(crew_take_slowest(&h->course, &step_is), 5 * MS);
        assert_int_equal(step_is, base[i] + 2);
    }
    step(h, 7, INT64_MAX);
    assert_true(crew_take_slowest(&h->course, &step_is) > 86400ll * SECOND);
    assert_int_equal(step_is, 7);
    free(h);
}

/* ---- the system ---- */

/* A thread of a process, after so many ticks. */
static void put_thread(int pid, int tid, const char *name, int core, int ticks) {
    char path[64], text[256];
    base_format(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    base_format(text, sizeof text, "%d (%s) R 1 2 3 4 5 6 7 8 9 10 %d %d 11 12 13 14 15 16 17 18 "
                "19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 %d 35 36 37\n", tid, name, ticks / 2,
                ticks - ticks / 2, core);
    put(path, text);
}

static int first_core(void) {
    cpu_set_t set;
    int core = 0;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    while (!CPU_ISSET((size_t)core, &set)) core++;
    return core;
}

/* The system after a number of seconds, in each of which the thread 101 has waited so long, its
 * group was throttled so long, and others have used its core. */
static void put_system(int seconds, double waits, double throttled, int ticks) {
    char text[256];
    base_format(text, sizeof text, "%d %.0f 7\n", seconds * 1000, 1e9 * (5 + waits * seconds));
    put("/proc/101/task/101/schedstat", text);
    put("/proc/100/task/100/schedstat", "1 1000 1\n");
    put_thread(101, 101, "trireme", 1, 500 + 90 * seconds);
    put_thread(100, 100, "trireme", 0, 500 + 90 * seconds);
    put_thread(4411, 4411, "py) th\x1b\xff", 0, 7000);
    put_thread(4411, 4412, "other", 1, 7000 + ticks * seconds);
    put_thread(50, 50, "lazy", 1, 70000 + ticks / 2 * seconds);
    base_format(text, sizeof text, "cpu%d 0 0 0 0 0 0 0 %d\n", first_core(),
                (int)(0.25 * (double)sysconf(_SC_CLK_TCK) * seconds));
    put("/proc/stat", text);
    put("/proc/self/cgroup", "0::/\n");
    base_format(text, sizeof text, "nr_periods %d\nnr_throttled %d\nthrottled_usec %.0f\n",
                10 * seconds, 4 * seconds, 1e6 * throttled * seconds);
    put("/sys/fs/cgroup/cpu.stat", text);
}

/* Returns how many lines the log has after so many seconds. */
static int lines_after(int seconds, double waits, double throttled, int ticks, char line[512]) {
    char path[128];
    struct log log;
    struct crew_head *h = head_of(2, 1);
    int lines = 0;
    base_format(path, sizeof path, "%s/agent.log", root);
    remove(path);
    assert_int_equal(log_open(&log, path, 0), TRI_OK);
    for (int i = 0; i < 2; i++) {
        atomic_store(&h->worker[i].pid, 100 + i);
        atomic_store(&h->thread[i].tid, 100 + i);
    }
    step(h, 1, MS);
    struct meter *m = meter_make(root, h, root, false_clock);
    for (int i = 0; i < seconds; i++, now += SECOND) {
        put_system(i, waits, throttled, ticks);
        step(h, (uint64_t)i + 1, MS);
        meter_turn(m);
        meter_tell(m, &log);
    }
    meter_last(m);
    meter_end(m);
    log_close(&log);
    free(h);
    FILE *f = fopen(path, "r");
    while (fgets(line, 512, f)) lines++;
    fclose(f);
    return lines;
}

static void assert_part(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("%s lacks %s", text, part);
}

static void shared_cores(void **state) {
    (void)state;
    char line[512];
    struct series s;
    const int per_second = (int)sysconf(_SC_CLK_TCK) * 9 / 10;
    put_thread(1, 1, "init", 0, 5);
    assert_int_equal(lines_after(9, 0.31, 0, per_second, line), 1);
    assert_part(line, "\"level\":\"warning\",\"event\":\"shared-core\",\"worker\":1,\"core\":1,"
                      "\"pid\":4411,\"text\":\"worker 1 was ready to run and had no core for 31 % "
                      "of the time; py) th??, pid 4411, ran for 0.9 s of the last second on its "
                      "core, 1\"}\n");
    open_series(&s, 9);
    assert_true(series_read(&s, 5));
    assert_near(value(&s, 0, "no-core"), 0);
    assert_near(value(&s, 1, "no-core"), 0.31);
    assert_near(s.frame.throttled_periods / (double)SERIES_ONE, 0.4);
    assert_true(s.frame.stolen > 0 && s.frame.throttled == 0);
    series_close(&s);
    assert_int_equal(lines_after(3, 0.31, 0, per_second, line), 0); /* not for long */
    assert_int_equal(lines_after(9, 0.09, 0, per_second, line), 0);
    assert_int_equal(lines_after(9, 0.31, 0.28, per_second, line), 0); /* a quota */
    assert_int_equal(lines_after(9, 0.31, 0, 0, line), 1);
    assert_part(line, "\"pid\":0,");
    assert_part(line, "/proc shows no other process that ran on its core, 1");
    put("/proc/1/task/1/stat", "");
    assert_int_equal(lines_after(9, 0.31, 0, 0, line), 1);
    assert_part(line, "/proc shows no processes of other users, and none of this one that ran");
}

static void failures_are_told(void **state) {
    (void)state;
    char path[128], *text;
    struct log log;
    struct crew_head *h = head_of(1, 1);
    base_format(path, sizeof path, "%s/agent.log", root);
    remove(path);
    assert_int_equal(log_open(&log, path, 0), TRI_OK);
    step(h, 1, MS);
    struct meter *m = meter_make("/nowhere", h, root, false_clock);
    for (int i = 0; i < 3; i++, now += SECOND) {
        meter_turn(m);
        meter_tell(m, &log);
    }
    meter_last(m);
    meter_end(m);
    log_close(&log);
    assert_int_equal(base_read_file(path, &text, &(size_t){0}), TRI_OK);
    assert_part(text, "\"event\":\"series\",\"text\":\"cannot write /nowhere/workers.series: ");
    assert_null(strstr(strchr(text, '\n') + 1, "series")); /* once */
    free(text);
    free(h);
}

/* ---- a run of one process ---- */

static void one_process(void **state) {
    (void)state;
    struct series s;
    struct own_series o;
    struct spending spending[2] = {0};
    struct spender spender[2] = {{.tid = gettid()}};
    const struct own_time own = {.spender = spender, .spending = spending, .threads = 2};
    now = base_now();
    remove(series_path());
    for (int i = 0; i < 2; i++) atomic_store(&spending[i].born, now);
    assert_int_equal(own_series_open(&o, root, 100, &own, 4), TRI_OK);
    for (int i = 1; i <= 30; i++) { /* of 10 ms; the first thread computes, the other waits */
        now += 10 * MS;
        atomic_store(&spending[0].time[SPENT_COMPUTE], i * 10 * MS);
        atomic_store(&spending[1].time[SPENT_WAIT_THREADS], i * 10 * MS);
        assert_int_equal(own_series_turn(&o, now, 100 + i, i == 3 ? 11 * MS : 10 * MS), TRI_OK);
    }
    assert_int_equal(own_series_close(&o, 130), TRI_OK);
    open_series(&s, 6);
    for (int64_t i = 0; i < 6; i++) {
        assert_true(series_read(&s, i));
        assert_int_equal(s.frame.steps, i ? 5 : 1);
        assert_int_equal(s.frame.slowest, i == 1 ? 11 * MS : 10 * MS);
        assert_near(value(&s, 0, "compute"), 0.5);
        assert_near(value(&s, 0, "threads"), 0.5);
        assert_true(value(&s, 0, "lanes-done") == 4 * s.frame.steps);
        assert_true(value(&s, 0, "memory-kib") > 500);
    }
    series_close(&s);
    const struct own_time none = {0};
    assert_int_equal(own_series_open(&o, "/nowhere", 0, &none, 4), TRI_OK);
    assert_int_equal(own_series_turn(&o, now, 1, MS), TRI_OK);
    assert_int_equal(own_series_close(&o, 1), TRI_OK);
    assert_int_equal(own_series_open(&o, "/nowhere", 0, &own, 4), TRI_FAILED);
    assert_int_equal(own_series_turn(&o, now, 1, MS), TRI_OK);
    assert_int_equal(own_series_close(&o, 1), TRI_OK);
}

/* ---- its cost ---- */

static double processor_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* 64 workers, 20 times a second, for 10 seconds, with the real /proc. */
static double cost(void) {
    struct crew_head *h = head_of(64, 1);
    for (int i = 0; i < 64; i++) {
        atomic_store(&h->worker[i].pid, (int)getpid());
        atomic_store(&h->thread[i].tid, (int)getpid());
        atomic_store(&h->thread[i].spending.since, now);
    }
    struct meter *m = meter_make(root, h, "", false_clock);
    const double began = processor_time();
    for (int i = 0; i < 200; i++, now += 50 * MS) {
        step(h, (uint64_t)i + 1, MS);
        meter_turn(m);
    }
    const double took = processor_time() - began;
    meter_last(m);
    meter_end(m);
    free(h);
    struct series s;
    open_series(&s, 200);
    series_close(&s);
    return took / 10;
}

static void costs_little(void **state) {
    (void)state;
    double least = INFINITY;
    for (int i = 0; i < 5; i++) least = fmin(least, cost());
    print_message("# 64 workers, 20 times a second: %.2f %% of a core\n", 100 * least);
    if (!getenv("FEW")) assert_true(least < 0.005); /* not under a sanitizer */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames),
        cmocka_unit_test(slowest_steps),
        cmocka_unit_test(shared_cores),
        cmocka_unit_test(failures_are_told),
        cmocka_unit_test(one_process),
        cmocka_unit_test(costs_little),
    };
    return cmocka_run_group_tests_name("meter", tests, make_root, remove_root);
}
