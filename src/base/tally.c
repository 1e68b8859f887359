/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tally.h"

#include "base/base.h"

bool tally_add(struct tally *t, int64_t number) {
    size_t first = base_hash(&number, sizeof number, 0) % TALLY_PLACES;
    for (size_t i = 0; i < TALLY_PLACES; i++) {
        uint64_t there = 0, mine = (uint64_t)number + 1;
        if (atomic_compare_exchange_strong(&t->place[(first + i) % TALLY_PLACES], &there, mine))
            return true;
        if (there == mine) return false;
    }
    atomic_fetch_add(&t->more, 1);
    return true;
}

/* Counts again each time, so that no crash can leave a wrong sum. */
int64_t tally_count(const struct tally *t) {
    int64_t n = atomic_load(&t->more);
    for (size_t i = 0; i < TALLY_PLACES; i++) n += atomic_load(&t->place[i]) != 0;
    return n;
}
