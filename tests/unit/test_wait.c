/* SPDX-License-Identifier: Apache-2.0
 * How often a waiting thread looks at its condition, which may cost much: once at the beginning,
 * once after each change, and once before each sleep. The processor, the clock and the kernel are
 * replaced: each turn of the waiting thread calls `turn`, in which others do something. */
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/futex.h"
#include "base/relax.h"

/* Beside those of the library. */
#define wait_late own_late
#define wait_loses own_loses
#define wait_wake own_wait_wake
#define wait_wake_after_death own_wait_wake_after_death
#define wait_until own_wait_until
#include "base/wait.h"

#define MENDED (-1)
enum place { AT_SPIN, AT_YIELD, AT_LOOK, AT_SLEEP };

static struct {
    wait_queue queue;
    bool holds;
    int looks, spins, yields, sleeps, wakes;
    int returns; /* sleeps that ended at once, since the word had changed */
    int64_t now;
    const struct step {
        enum place at;
        int number; /* the first is 1 */
        bool holds; /* from then on */
        int counts; /* changes; MENDED: one after a death that woke nobody */
        int64_t passes; /* nanoseconds, each time */
    } *step;
    int steps;
} w;

static void turn(enum place at, int number) {
    for (int i = 0; i < w.steps; i++) {
        const struct step *s = &w.step[i];
        if (s->at != at) continue;
        w.now += s->passes;
        if (s->number != number) continue;
        w.holds |= s->holds;
        for (int n = 0; n < s->counts; n++) wait_wake(&w.queue);
        if (s->counts != MENDED) continue;
        atomic_store(&w.queue, (w.queue + 2) & ~1U); /* by the dead thread */
        wait_wake_after_death(&w.queue);
    }
}

static bool look(void *arg) {
    bool held = w.holds;
    assert_ptr_equal(arg, &w);
    turn(AT_LOOK, ++w.looks);
    return held;
}

static int64_t own_now(void) { return w.now; }
static void own_relax(void) { turn(AT_SPIN, ++w.spins); }

static int own_yield(void) {
    turn(AT_YIELD, ++w.yields);
    return 0;
}

static void own_sleep(atomic_uint *word, unsigned seen, const struct timespec *most) {
    assert_ptr_equal(word, &w.queue);
    assert_true(seen & 1);
    w.sleeps++;
    if (atomic_load(word) != seen) {
        w.returns++;
        return;
    }
    w.now += most->tv_nsec;
    turn(AT_SLEEP, w.sleeps);
}

static void own_wake(atomic_uint *word) {
    assert_ptr_equal(word, &w.queue);
    assert_false(atomic_load(word) & 1);
    w.wakes++;
}

#define base_now own_now
#define base_relax own_relax
#define sched_yield own_yield
#define base_futex_sleep own_sleep
#define base_futex_wake own_wake
#include "base/wait.c"

#define MS 1000000
#define NEVER INT64_MAX

static const struct row {
    const char *name;
    enum wait_kind kind;
    int64_t when;
    struct step step[4];
    int looks, sleeps, returns, wakes;
} rows[] = {
    {"no change while it spins and yields: a look, and one before the sleep", WAIT_TOGETHER, NEVER,
     {{AT_YIELD, 0, .passes = 1000}, {AT_SLEEP, 1, .holds = true, .counts = 1}}, 3, 1, 0, 1},
    {"spinning: a look after each change", WAIT_APART, NEVER,
     {{AT_SPIN, 7, .counts = 1}, {AT_SPIN, 9, .counts = 1},
      {AT_SPIN, 1999, .holds = true, .counts = 1}}, 4, 0, 0, 0},
    {"yielding: a look after each change", WAIT_APART, NEVER,
     {{AT_YIELD, 2, .counts = 1}, {AT_YIELD, 5, .holds = true, .counts = 1}}, 3, 0, 0, 0},
    {"a change after a look is not missed", WAIT_APART, NEVER,
     {{AT_LOOK, 1, .holds = true, .counts = 1}}, 2, 0, 0, 0},
    {"nor a change between the last look and the sleep", WAIT_CROWDED, NEVER,
     {{AT_LOOK, 2, .holds = true, .counts = 1}}, 3, 1, 1, 1},
    {"a thread that died before its count: the count of its recovery", WAIT_APART, NEVER,
     {{AT_SPIN, 3, .holds = true}, {AT_YIELD, 4, .counts = 1}}, 2, 0, 0, 0},
    {"or, without one, the end of a sleep", WAIT_CROWDED, NEVER,
     {{AT_SLEEP, 2, .holds = true}}, 4, 2, 0, 0},
    {"two changes at once", WAIT_CROWDED, NEVER,
     {{AT_SLEEP, 1, .holds = true, .counts = 2}}, 3, 1, 0, 1},
    {"a thread that died before it woke others", WAIT_CROWDED, NEVER,
     {{AT_SLEEP, 1, .holds = true, .counts = MENDED}}, 3, 1, 0, 1},
    {"the count of a thread that is late means nothing", WAIT_CROWDED, NEVER,
     {{AT_SLEEP, 1, .counts = 1}, {AT_SLEEP, 2, .holds = true, .counts = 1}}, 4, 2, 0, 2},
    {"the time asked for, while it yields", WAIT_APART, MS / 2,
     {{AT_YIELD, 3, .holds = true, .passes = MS / 5}}, 2, 0, 0, 0},
    {"then each millisecond, asleep", WAIT_CROWDED, MS / 2,
     {{AT_YIELD, 0, .passes = MS}, {AT_SLEEP, 3, .holds = true}}, 6, 3, 0, 0},
};

static void looks(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *r = &rows[i];
        const char *word[] = {"looks", "sleeps", "sleeps that end at once", "wake-ups"};
        w = (typeof(w)){.step = r->step, .steps = COUNT(r->step)};
        no_yields_until = 0;
        wait_until(&w.queue, r->kind, look, &w, r->when, NULL);
        const int is[] = {w.looks, w.sleeps, w.returns, w.wakes};
        const int expected[] = {r->looks, r->sleeps, r->returns, r->wakes};
        for (size_t k = 0; k < COUNT(is); k++)
            if (is[k] != expected[k])
                fail_msg("%s: %d %s, not %d", r->name, is[k], word[k], expected[k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(looks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
