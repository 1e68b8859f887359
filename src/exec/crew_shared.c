/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/crew_shared.h"

#include <sched.h>
#include <time.h>

#include "base/futex.h"
#include "base/relax.h"
#include "exec/team.h"

#define SPIN 2000             /* turns: some 50 to 100 us */
#define YIELDS 64
#define BEAT (200 * 1000000L) /* nanoseconds that one sleeps at most: it tells that it lives */

const char *crew_at_name(enum crew_at at) {
    static const char *const names[CREW_ATS] = {"start",  "compile", "data",     "lane", "sum",
                                                "update", "wait",    "callback", "save", "leave",
                                                "rest"};
    return (unsigned)at < CREW_ATS ? names[at] : "?";
}

static int most_of(const struct crew_shape *s) { return s->most > s->workers ? s->most : s->workers; }

tri_status crew_check(const struct crew_shape *s) {
    int most = most_of(s);
    if (s->workers < 1 || most + s->spares > CREW_MOST_WORKERS)
        return base_fail(TRI_USAGE, "%d workers and %d spares; there can be 1 to %d in all", most,
                         s->spares, CREW_MOST_WORKERS);
    if (s->audit > 0 && s->workers + s->spares < 2)
        return base_fail(TRI_USAGE, "an audit takes another worker to compute lanes again: -n 2, or "
                         "--spares 1");
    if ((most + s->spares) * s->threads > CREW_MOST_HANDS)
        return base_fail(TRI_USAGE, "%d workers and spares with %d threads each; there can be %d threads "
                         "in all", most + s->spares, s->threads, CREW_MOST_HANDS);
    return TRI_OK;
}

void crew_head_begin(struct crew_head *h, const struct crew_shape *s) {
    *h = (struct crew_head){.magic = CREW_MAGIC, .bytes = sizeof *h, .workers = s->workers,
                            .spares = s->spares, .most = most_of(s), .threads = s->threads,
                            .cores = team_cores(), .audit = s->audit};
    h->places = h->most + h->spares;
    atomic_store(&h->ranks, s->workers);
    for (int i = 0; i < h->places; i++) atomic_store(&h->worker[i].rank, i < s->workers ? i : -1);
}

bool crew_begun(const struct crew_head *h) { return atomic_load(&h->opened) > atomic_load(&h->base); }

int64_t crew_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Who goes to sleep says so first and looks once more; who changes something looks for sleepers
 * afterwards: one of them sees the other. */
void crew_notify(struct crew_head *h) {
    uint32_t event = atomic_load(&h->event);
    while (event & 1)
        if (atomic_compare_exchange_weak(&h->event, &event, event + 1)) { /* takes the bit away, counts */
            base_futex_wake(&h->event);
            return;
        }
}

static bool crowded(const struct crew_head *h) {
    return atomic_load_explicit(&h->ranks, memory_order_relaxed) * h->threads > h->cores;
}

void crew_until(struct crew_head *h, bool (*holds)(void *arg), void *arg, _Atomic uint64_t *turns) {
    crew_until_or(h, holds, arg, INT64_MAX, turns);
}

static struct timespec at_most(int64_t when) {
    int64_t left = when == INT64_MAX ? BEAT : when - crew_now();
    return (struct timespec){.tv_nsec = left > BEAT ? BEAT : left < 1000 ? 1000 : left};
}

void crew_until_or(struct crew_head *h, bool (*holds)(void *arg), void *arg, int64_t when,
                   _Atomic uint64_t *turns) {
    int spin = crowded(h) ? 0 : SPIN;
    for (int i = 0; i < spin; i++) {
        if (holds(arg)) return;
        base_relax();
    }
    for (int i = 0; i < YIELDS; i++) {
        if (holds(arg)) return;
        sched_yield();
    }
    for (;;) {
        uint32_t seen = atomic_fetch_or(&h->event, 1) | 1;
        if (holds(arg)) return;
        struct timespec most = at_most(when);
        base_futex_sleep(&h->event, seen, &most);
        if (turns) atomic_fetch_add_explicit(turns, 1, memory_order_relaxed);
    }
}
