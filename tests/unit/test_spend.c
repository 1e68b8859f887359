/* SPDX-License-Identifier: Apache-2.0
 * What threads spend their time on: it adds up to their age, whoever looks, and whatever happens to
 * the thread. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "run/own_time.h"

static int64_t sum_of(const int64_t time[SPENTS]) {
    int64_t sum = 0;
    for (int i = 0; i < SPENTS; i++) sum += time[i];
    return sum;
}

/* To the nanosecond, as it was when the thread went on to what it does now. */
static void adds_up(const struct spending *s) {
    int64_t sum = 0;
    for (int i = 0; i < SPENTS; i++) sum += atomic_load(&s->time[i]);
    assert_int_equal(sum, atomic_load(&s->since) - atomic_load(&s->born));
}

static void rows_are_named(void **state) {
    (void)state;
    for (int i = 0; i < SPENTS; i++) {
        assert_non_null(spent_rows[i].name);
        for (int k = 0; k < i; k++) assert_string_not_equal(spent_rows[i].name, spent_rows[k].name);
        assert_int_equal(spent_rows[i].group == SPENT_WAITS, i >= SPENT_WAIT_SAMPLES);
    }
}

static void every_change_adds_up(void **state) {
    struct spending s = {0};
    struct spender me = {.to = &s};
    (void)state;
    assert_int_equal(spend(SPENT_SAVE), SPENT_COMPUTE); /* nothing is counted */
    assert_null(spend_owner());
    spend_into(&me, SPENT_START);
    assert_non_null(spend_owner());
    int was = SPENT_START;
    for (int i = 1; i < 1000; i++) {
        assert_int_equal(spend((enum spent)(i % SPENTS)), was);
        was = i % SPENTS;
        assert_int_equal(spent_now(), was);
        adds_up(&s);
    }
    int64_t now = base_now(), before = atomic_load(&s.time[was]), time[SPENTS];
    int64_t all = spending_read(&s, now + 1000, time);
    assert_int_equal(all, now + 1000 - atomic_load(&s.born));
    assert_int_equal(all, sum_of(time));
    assert_int_equal(time[was] - before, now + 1000 - atomic_load(&s.since));
    spend_into(NULL, SPENT_UNKNOWN);
    assert_int_equal(spend(SPENT_SAVE), SPENT_COMPUTE);
}

/* The time in which nobody had the place is nobody's. */
static void a_place_is_used_again(void **state) {
    struct spending s = {0};
    struct spender me = {.to = &s};
    int64_t time[SPENTS];
    (void)state;
    spend_into(&me, SPENT_START);
    spend(SPENT_COMPUTE);
    spend_into(NULL, SPENT_UNKNOWN);
    int64_t all = spending_read(&s, base_now(), time);
    assert_int_equal(atomic_load(&s.since), 0);
    assert_int_equal(spending_read(&s, base_now() + 1000000000, time), all);
    spend_into(&me, SPENT_START);
    adds_up(&s);
    assert_true(atomic_load(&s.since) - atomic_load(&s.born) == all);
    spending_end(&s, atomic_load(&s.since) + 5); /* by another, after its death */
    assert_int_equal(spending_read(&s, base_now(), time), all + 5);
    spend_into(NULL, SPENT_UNKNOWN);
}

/* ---- a look while the thread goes on ---- */

static atomic_bool ends;

static void *change_always(void *arg) {
    struct spender me = {.to = arg};
    spend_into(&me, SPENT_START);
    for (int i = 0; !atomic_load(&ends); i++) spend((enum spent)(i % SPENTS));
    spend_into(NULL, SPENT_UNKNOWN);
    return NULL;
}

#define LOOKS 200000

static void a_look_adds_up(void **state) {
    static struct spending s;
    pthread_t thread;
    int wrong = 0;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, change_always, &s), 0);
    while (!atomic_load(&s.since)) continue;
    for (int i = 0; i < LOOKS; i++) {
        int64_t time[SPENTS], now = base_now(), born = atomic_load(&s.born);
        int64_t all = spending_read(&s, now, time);
        assert_int_equal(all, sum_of(time));
        wrong += all < now - born || all > base_now() - born;
    }
    atomic_store(&ends, true);
    pthread_join(thread, NULL);
    assert_in_range(wrong, 0, LOOKS / 50); /* a reader gives up after some tries */
}

/* ---- a run of one process ---- */

static void pauses_are_shared_out(void **state) {
    struct spending s = {0};
    struct spender me = {.to = &s};
    (void)state;
    spend_into(&me, SPENT_OPEN);
    spend_pause();
    assert_int_equal(spend(SPENT_SAVE), SPENT_COMPUTE);
    const int64_t time[SPENTS] = {[SPENT_COMPUTE] = 700, [SPENT_READ] = 200};
    const int64_t before = atomic_load(&s.time[SPENT_UNKNOWN]);
    spend_resume(&me, time, atomic_load(&s.since) + 1000);
    adds_up(&s);
    assert_int_equal(atomic_load(&s.time[SPENT_COMPUTE]), 700);
    assert_int_equal(atomic_load(&s.time[SPENT_READ]), 200);
    assert_int_equal(atomic_load(&s.time[SPENT_UNKNOWN]) - before, 100);
    spend_into(NULL, SPENT_UNKNOWN);
}

static void pass(int64_t ns) {
    for (int64_t until = base_now() + ns; base_now() < until;) continue;
}

#define STEPS 20000

static int64_t processor_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

enum verdict { INTERRUPTED, WRONG, RIGHT };

/* Short steps are timed now and then. A few microseconds without a processor in one that is timed
 * can count for many. */
static enum verdict short_steps(struct own_time *o) {
    int64_t time[SPENTS], timed = 0, began = base_now(), used = processor_time();
    own_time_open(o, NULL);
    assert_int_equal(o->threads, 1);
    for (int i = 0; i < STEPS; i++) {
        own_time_step(o);
        timed += o->on;
        if (o->on) spend(SPENT_COMPUTE);
        pass(2000);
        if (o->on) spend(SPENT_CALLBACK);
    }
    own_time_apart(o);
    assert_true(o->on);
    adds_up(o->spending);
    int64_t all = spending_read(o->spending, base_now(), time), passed = base_now() - began;
    used = processor_time() - used;
    assert_in_range(timed, 2, STEPS / 4);
    if (used < passed - passed / 20) return INTERRUPTED;
    return all <= passed && all >= passed - passed / 20 && time[SPENT_COMPUTE] > all / 2 ? RIGHT
                                                                                        : WRONG;
}

/* ... and yet all time has a name, unless other processes take the processor meanwhile. */
static void short_steps_are_left_out(void **state) {
    struct own_time o = {0};
    (void)state;
    bool wrong = false, right = false;
    for (int tries = 0; !right && tries < 200; tries++) {
        if (tries) own_time_close(&o, NULL);
        const enum verdict is = short_steps(&o);
        wrong |= is == WRONG;
        right = is == RIGHT;
    }
    assert_true(right || !wrong);
    spend(SPENT_SAVE);
    pass(1000000);
    spend(SPENT_CALLBACK);
    assert_true(atomic_load(&o.spending->time[SPENT_SAVE]) >= 1000000);
    own_time_close(&o, NULL);
    assert_null(spend_owner());
}

/* What passes in a step that was left out, and is far too long for it, is not guessed. */
static void the_unusual_is_unexplained(void **state) {
    struct own_time o = {0};
    (void)state;
    own_time_open(&o, NULL);
    assert_non_null(o.spender);
    while (o.left < 4) own_time_step(&o);
    pass(20000000);
    own_time_apart(&o);
    int64_t unknown = atomic_load(&o.spending->time[SPENT_UNKNOWN]);
    assert_true(unknown > 15000000);
    adds_up(o.spending);
    own_time_close(&o, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_named), cmocka_unit_test(every_change_adds_up),
        cmocka_unit_test(a_place_is_used_again), cmocka_unit_test(a_look_adds_up),
        cmocka_unit_test(pauses_are_shared_out), cmocka_unit_test(short_steps_are_left_out),
        cmocka_unit_test(the_unusual_is_unexplained)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
