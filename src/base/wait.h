/* SPDX-License-Identifier: Apache-2.0
 * A word that threads of one or several processes sleep on until something that they wait for holds. Bit 0:
 * somebody sleeps, or has died asleep; who rings takes it away, counts, and wakes all. */
#ifndef BASE_WAIT_H
#define BASE_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic uint32_t wait_queue;

/* Which threads wait for each other, and so for how long a thread spins and yields before it
 * sleeps. Where each has a core, sleeping costs time; where others want the core, each yield costs
 * the waiting thread its share of it. */
enum wait_kind {
    WAIT_CROWDED,  /* more threads than cores: hardly */
    WAIT_APART,    /* of several processes, each with a core */
    WAIT_TOGETHER, /* of a team that shares operators, each with a core: as long as an operator */
};

/* From then on who began something now counts as late with it, and others do it, too: `slowest` nanoseconds are the most
 * that the like has taken here. */
int64_t wait_late(int64_t slowest);

/* Whoever waits looks again. */
void wait_wake(wait_queue *b);
/* Waits until the condition holds: spins, then yields, then sleeps. It is checked again at the
 * latest at a time of base_now (INT64_MAX: only when the bell rings). turns (nullable) grows with
 * each check. */
void wait_until(wait_queue *b, enum wait_kind kind, bool (*holds)(void *arg), void *arg, int64_t when,
               _Atomic uint64_t *turns);

#endif
