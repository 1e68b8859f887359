/* SPDX-License-Identifier: Apache-2.0 */
#include "base/wait.h"

#include <sched.h>
#include <time.h>

#include "base/base.h"
#include "base/futex.h"
#include "base/relax.h"

#define CHANGE 2 /* what a change adds to a queue */
#define SPINS 2000 /* some 50 to 100 us: longer than a short operator */
#define LONGEST 1000000 /* nanoseconds of yields, reached only if other threads run meanwhile */
/* Nanoseconds after which a yield counts as slow: it gave the core to a process that keeps it. The
 * scheduler takes each yield for a wish to give that process a slice of some milliseconds, so that
 * a wait of microseconds would take a slice, too. */
#define SLOW_YIELD 1000000
#define NO_YIELDS 20000000 /* nanoseconds after a slow one */
#define LATE 50000000 /* nanoseconds, plus */
#define LATE_TIMES 4  /* times the slowest */
/* nanoseconds: the longest sleep, so that a waiting thread regularly shows that it lives */
#define BEAT (200 * 1000000L)
#define AGAIN 1000000L /* nanoseconds between two looks after the time asked for */

int64_t wait_late(int64_t slowest) { return base_now() + LATE + LATE_TIMES * slowest; }

#ifdef TRIREME_POINTS
bool (*wait_loses)(void);

static bool never(void *arg) {
    (void)arg;
    return false;
}
#define MAY_LOSE(holds) ((holds) = wait_loses && wait_loses() ? never : (holds))
#define WATCHES (!wait_loses) /* a test that loses a wake-up needs sleeps */
#else
#define MAY_LOSE(holds) ((void)0)
#define WATCHES true
#endif

/* A thread that changes something counts the change afterwards. A thread that waits reads the count
 * before it looks, so it looks again after every change; to sleep, it also sets bit 0 first. */
void wait_wake(wait_queue *b) {
    if (!(atomic_fetch_add(b, CHANGE) & 1)) return;
    atomic_fetch_and(b, ~1U); /* nobody falls asleep on the old value */
    base_futex_wake(b);
}

void wait_wake_after_death(wait_queue *b) {
    atomic_fetch_or(b, 1);
    wait_wake(b);
}

static bool has_changed(wait_queue *b, uint32_t *seen) {
    const uint32_t before = *seen;
    *seen = atomic_load(b);
    return (before ^ *seen) >= CHANGE;
}

static struct timespec at_most(int64_t when) {
    int64_t left = when == INT64_MAX ? BEAT : when - base_now();
    return (struct timespec){.tv_nsec = left > BEAT ? BEAT : left > 0 ? left : AGAIN};
}

static const struct {
    int spins, yields;
} turns_of[] = {
    [WAIT_CROWDED] = {0, 2},
    [WAIT_APART] = {SPINS, 64},
    [WAIT_TOGETHER] = {SPINS, 2000},
};

static _Thread_local int64_t no_yields_until;

/* Whether the condition holds before it is time to sleep. */
static bool watch(wait_queue *b, enum wait_kind kind, bool (*holds)(void *arg), void *arg,
                  int64_t when) {
    uint32_t seen = atomic_load(b);
    if (holds(arg)) return true;
    for (int i = 0; i < turns_of[kind].spins; i++) {
        base_relax();
        if (has_changed(b, &seen) && holds(arg)) return true;
    }
    int64_t now = base_now(), until = now + LONGEST;
    if (now < no_yields_until) return false;
    for (int i = 0; i < turns_of[kind].yields && now < until; i++) {
        int64_t before = now;
        sched_yield();
        now = base_now();
        if (now - before > SLOW_YIELD) no_yields_until = now + NO_YIELDS;
        if (!has_changed(b, &seen) && now < when) continue;
        if (holds(arg)) return true;
        if (now >= when) when = now + AGAIN;
    }
    return false;
}

void wait_until(wait_queue *b, enum wait_kind kind, bool (*holds)(void *arg), void *arg,
                int64_t when, _Atomic uint64_t *heartbeat) {
    if (WATCHES && watch(b, kind, holds, arg, when)) return;
    for (;;) {
        uint32_t seen = atomic_fetch_or(b, 1) | 1;
        if (holds(arg)) return;
        struct timespec most = at_most(when);
        base_futex_sleep(b, seen, &most);
        if (heartbeat) atomic_fetch_add_explicit(heartbeat, 1, memory_order_relaxed);
        MAY_LOSE(holds);
    }
}
