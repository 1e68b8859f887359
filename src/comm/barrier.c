/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/barrier.h"

/* A rank that has arrived `wanted` times. */
struct arrival {
    const struct barrier_line *line;
    unsigned wanted;
};

/* Counts are at most one apart, so they may overflow. */
static bool has_arrived(void *arg) {
    const struct arrival *a = arg;
    unsigned arrived = atomic_load_explicit(&a->line->arrived, memory_order_acquire);
    return (int)(arrived - a->wanted) >= 0;
}

void barrier_wait(struct barrier *b) {
    enum wait_kind kind = b->crowded ? WAIT_CROWDED : WAIT_APART;
    struct barrier_line *own = &b->line[b->rank];
    atomic_store(&own->arrived, ++b->arrived);
    wait_wake(&own->queue);
    for (int r = 0; r < b->ranks; r++) {
        struct arrival a = {&b->line[r], b->arrived};
        wait_until(&b->line[r].queue, kind, has_arrived, &a, INT64_MAX, NULL);
    }
}
