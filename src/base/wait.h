/* SPDX-License-Identifier: Apache-2.0
 * A wait queue: a word on which threads of one or several processes wait until a condition holds.
 * Bit 0: some thread sleeps, or died asleep; the rest counts changes. A waiting thread looks at the
 * word alone, and at its condition only after a change: so a condition may cost as much as it
 * needs. The count itself means nothing. If a thread dies between a change and its count, whoever
 * frees what it had claimed counts another. */
#ifndef BASE_WAIT_H
#define BASE_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic uint32_t wait_queue;

/* Which threads wait for each other, and so how long a thread spins and yields before it sleeps. If
 * each has a core, sleeping costs time; if others need the core, each yield costs the waiting
 * thread its share of it. After a yield that took long, a thread sleeps instead for a while. */
enum wait_kind {
    WAIT_CROWDED,  /* more threads than cores: hardly any spinning */
    WAIT_APART,    /* threads of several processes, each with a core */
    /* threads of a team that shares operators, each with a core: spins about as long as an operator
     * takes */
    WAIT_TOGETHER,
};

/* The time from which work that starts now counts as late, so that others do it too. slowest: the
 * longest that such work has taken here, in nanoseconds. */
int64_t wait_late(int64_t slowest);

#ifdef TRIREME_POINTS
/* For tests: after each sleep, whether the thread shall sleep on for ever. Nullable; if it is set,
 * threads sleep without spinning. */
extern bool (*wait_loses)(void);
#endif

/* To be called after every change that a thread may wait for: all check their conditions again. */
void wait_wake(wait_queue *b);
/* The same after a death: the dead thread may have cleared bit 0 and woken nobody. */
void wait_wake_after_death(wait_queue *b);
/* Waits until the condition holds: spins, then yields, then sleeps. The condition is also checked
 * at time `when` of base_now, once the thread no longer spins, and then every millisecond
 * (INT64_MAX: only after a change). heartbeat (nullable) grows with each sleep. */
void wait_until(wait_queue *b, enum wait_kind kind, bool (*holds)(void *arg), void *arg,
                int64_t when, _Atomic uint64_t *heartbeat);

#endif
