/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/barrier.h"

#include <sched.h>

#include "base/futex.h"
#include "base/relax.h"

#define SPIN 500    /* turns, some 10 us: longer than ranks are apart that each have a core */
#define YIELDS 1000 /* turns more, some 300 us where nobody else wants the core */
#define FEW 2       /* of them, where ranks exceed cores: each costs a share of the core */

/* Counts are at most one apart, so that they may overflow. */
static bool behind(unsigned arrived, unsigned wanted) { return (int)(arrived - wanted) < 0; }

/* Who comes counts first and looks for sleepers then; who sleeps is counted first and looks for the
 * other's count then, as the kernel does once more: one of them sees the other. */
static void come(struct barrier *b) {
    struct barrier_line *own = &b->line[b->rank];
    atomic_store(&own->arrived, ++b->arrived);
    if (atomic_load(&own->sleepers)) base_futex_wake(&own->arrived);
}

static void sleep_on(struct barrier_line *line, unsigned wanted) {
    atomic_fetch_add(&line->sleepers, 1);
    unsigned seen = atomic_load(&line->arrived);
    if (behind(seen, wanted)) base_futex_sleep(&line->arrived, seen, NULL);
    atomic_fetch_sub(&line->sleepers, 1);
}

void barrier_wait(struct barrier *b) {
    come(b);
    for (int r = 0; r < b->ranks; r++) {
        struct barrier_line *line = &b->line[r];
        unsigned turn = b->crowded ? SPIN + YIELDS - FEW : 0;
        while (behind(atomic_load_explicit(&line->arrived, memory_order_acquire), b->arrived)) {
            if (turn < SPIN)
                base_relax();
            else if (turn < SPIN + YIELDS)
                sched_yield();
            else
                sleep_on(line, b->arrived);
            turn++;
        }
    }
}
