/* SPDX-License-Identifier: Apache-2.0 */
#include "crew/claim.h"

#ifdef TRIREME_POINTS
void (*claim_point)(const char *where);
#endif

static uint64_t pack(uint32_t step, enum claim_state state, int owner, int value) {
    return (uint64_t)step << 32 | (uint64_t)state << CLAIM_STATE_SHIFT |
           (uint64_t)(unsigned)owner << CLAIM_OWNER_SHIFT | (uint64_t)(unsigned)value;
}

static bool swap(claim_word *word, uint64_t from, uint64_t to, const char *where) {
    bool done = atomic_compare_exchange_strong(word, &from, to);
    if (done) CLAIM_POINT(where);
    (void)where;
    return done;
}

bool claim_try(claim_word *word, struct claim *c, int owner) {
    uint64_t taken = pack(c->step, CLAIM_TAKEN, owner, c->value);
    if (!swap(word, c->seen, taken, "claim")) return false;
    *c = claim_unpack(taken);
    return true;
}

bool claim_publish(claim_word *word, const struct claim *held, enum claim_state state, int owner,
                   int value) {
    uint64_t from = pack(held->step, CLAIM_TAKEN, held->owner, held->value);
    return swap(word, from, pack(held->step, state, owner, value), "publish");
}

bool claim_replace(claim_word *word, const struct claim *c, enum claim_state state, int owner,
                   int value) {
    return swap(word, c->seen, pack(c->step, state, owner, value), "publish");
}

void claim_forget(claim_word *word, int64_t n, int owner) {
    for (int64_t i = 0; i < n; i++) {
        struct claim c = claim_read(&word[i]);
        if (c.state == CLAIM_TAKEN && c.owner == owner)
            swap(&word[i], c.seen, pack(c.step, CLAIM_FREE, 0, c.value), "forget");
    }
}
