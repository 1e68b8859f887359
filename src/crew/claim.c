/* SPDX-License-Identifier: Apache-2.0 */
#include "crew/claim.h"

#ifdef TRIREME_POINTS
void (*claim_point)(const char *where);
#endif

/* A word: 32 bits of step, 3 of state, 13 of owner, 16 of value. */
#define STATE_SHIFT 29
#define OWNER_SHIFT 16

static uint64_t pack(uint32_t step, enum claim_state state, int owner, int value) {
    return (uint64_t)step << 32 | (uint64_t)state << STATE_SHIFT |
           (uint64_t)(unsigned)owner << OWNER_SHIFT | (uint64_t)(unsigned)value;
}

static struct claim unpack(uint64_t word) {
    return (struct claim){(uint32_t)(word >> 32), (enum claim_state)(word >> STATE_SHIFT & 7),
                          (int)(word >> OWNER_SHIFT & (CLAIM_MOST_OWNERS - 1)),
                          (int)(word & CLAIM_MOST_VALUE), word};
}

static bool swap(claim_word *word, uint64_t from, uint64_t to, const char *where) {
    bool done = atomic_compare_exchange_strong(word, &from, to);
    if (done) CLAIM_POINT(where);
    (void)where;
    return done;
}

struct claim claim_read(claim_word *word) { return unpack(atomic_load(word)); }

static struct claim look_from(claim_word *word, uint32_t step, bool held) {
    struct claim c = claim_read(word);
    int32_t ahead = (int32_t)(c.step - step);
    if (ahead > 0) c.state = CLAIM_PASSED;
    if (ahead < 0 && !(held && c.state == CLAIM_TAKEN))
        c = (struct claim){.step = step, .seen = c.seen};
    return c;
}

struct claim claim_look(claim_word *word, uint32_t step) { return look_from(word, step, false); }

struct claim claim_look_held(claim_word *word, uint32_t step) {
    return look_from(word, step, true);
}

bool claim_try(claim_word *word, struct claim *c, int owner) {
    uint64_t taken = pack(c->step, CLAIM_TAKEN, owner, c->value);
    if (!swap(word, c->seen, taken, "claim")) return false;
    *c = unpack(taken);
    return true;
}

bool claim_publish(claim_word *word, const struct claim *held, enum claim_state state, int owner,
                   int value) {
    uint64_t from = pack(held->step, CLAIM_TAKEN, held->owner, held->value);
    return swap(word, from, pack(held->step, state, owner, value), "publish");
}

void claim_forget(claim_word *word, int64_t n, int owner) {
    for (int64_t i = 0; i < n; i++) {
        struct claim c = claim_read(&word[i]);
        if (c.state == CLAIM_TAKEN && c.owner == owner)
            swap(&word[i], c.seen, pack(c.step, CLAIM_FREE, 0, c.value), "forget");
    }
}
