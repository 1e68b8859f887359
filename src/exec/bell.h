/* SPDX-License-Identifier: Apache-2.0
 * A word that threads of one or several processes sleep on until something that they wait for holds. Bit 0:
 * somebody sleeps, or has died asleep; who rings takes it away, counts, and wakes all. */
#ifndef EXEC_BELL_H
#define EXEC_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic uint32_t bell;

#define BELL_SPIN 2000 /* turns: some 50 to 100 us */

int64_t bell_now(void); /* nanoseconds, CLOCK_MONOTONIC */

/* From then on who began something now counts as late with it, and others do it, too: `slowest` nanoseconds are the most
 * that the like has taken here. */
int64_t bell_late(int64_t slowest);

/* Whoever waits looks again. */
void bell_ring(bell *b);
/* Waits until the condition holds: spins for so many turns, then yields, then sleeps. It is looked at again at
 * the latest at a time of bell_now (INT64_MAX: only when it rings). turns (nullable) grows with each look. */
void bell_wait(bell *b, int spin, bool (*holds)(void *arg), void *arg, int64_t when, _Atomic uint64_t *turns);

#endif
