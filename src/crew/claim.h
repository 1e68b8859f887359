/* SPDX-License-Identifier: Apache-2.0
 * Claims: shared words that say who works on something, or that it is done. Threads of one or of
 * several processes change a word by one compare-and-swap each, so a thread may die between any two
 * instructions: claim_forget frees what it had claimed, and nothing else needs repair.
 *
 * A word carries the number of the step that it speaks of. A word of an earlier step is free, so
 * nothing is cleared when a step begins, and a thread that is late for a step changes nothing.
 * Only these functions access the words. */
#ifndef CREW_CLAIM_H
#define CREW_CLAIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLAIM_MOST_OWNERS 1024
#define CLAIM_MOST_VALUE 1048575

typedef _Atomic uint64_t claim_word;

enum claim_state {
    CLAIM_FREE,
    CLAIM_TAKEN,
    CLAIM_DONE,
    CLAIM_FAILED,
    CLAIM_PASSED, /* never in a word: the word speaks of a later step than the one asked about */
};

/* What a word says. The meaning of `value` is the user's; 0 in a word of an earlier step. */
struct claim {
    uint32_t step;
    enum claim_state state;
    int owner, value;
    uint64_t seen; /* the word itself */
};

/* A word: 32 bits of step, 2 of state, 10 of owner, 20 of value. */
#define CLAIM_STATE_SHIFT 30
#define CLAIM_OWNER_SHIFT 20

static inline struct claim claim_unpack(uint64_t word) {
    return (struct claim){(uint32_t)(word >> 32), (enum claim_state)(word >> CLAIM_STATE_SHIFT & 3),
                          (int)(word >> CLAIM_OWNER_SHIFT & (CLAIM_MOST_OWNERS - 1)),
                          (int)(word & CLAIM_MOST_VALUE), word};
}

/* The word as it is, whatever step it speaks of. */
static inline struct claim claim_read(claim_word *word) { return claim_unpack(atomic_load(word)); }

/* The word as seen from `step`: free if it speaks of an earlier step. */
static inline struct claim claim_look(claim_word *word, uint32_t step) {
    struct claim c = claim_read(word);
    int32_t ahead = (int32_t)(c.step - step);
    if (ahead > 0) c.state = CLAIM_PASSED;
    if (ahead < 0) c = (struct claim){.step = step, .seen = c.seen};
    return c;
}

/* The same, but a word that was taken in an earlier step stays taken (and keeps that step): its
 * owner is late, and may still write to what the word stands for. */
static inline struct claim claim_look_held(claim_word *word, uint32_t step) {
    struct claim c = claim_look(word, step), is = claim_unpack(c.seen);
    return is.state == CLAIM_TAKEN && c.state == CLAIM_FREE ? is : c;
}

/* Takes a word that has not changed since it was seen as *c. The value stays: what an owner that
 * died had done counts. On success *c is what the owner holds. */
bool claim_try(claim_word *word, struct claim *c, int owner);
/* Replaces what an owner holds, in the same step. False: it holds it no longer, as another
 * published first or the owner was declared dead; nothing has changed then. */
bool claim_publish(claim_word *word, const struct claim *held, enum claim_state state, int owner,
                   int value);
/* Replaces a word that has not changed since it was seen as *c, whoever holds it. */
bool claim_replace(claim_word *word, const struct claim *c, enum claim_state state, int owner,
                   int value);
/* Frees the words that a dead owner had taken; their values stay. May run beside living owners, and
 * again if it was interrupted. */
void claim_forget(claim_word *word, int64_t n, int owner);

/* After every write of a protocol: tests kill processes here, in builds with -Dpoints=true. */
#ifdef TRIREME_POINTS
extern void (*claim_point)(const char *where);
#define CLAIM_POINT(where) \
    do {                   \
        if (claim_point) claim_point(where); \
    } while (0)
#else
#define CLAIM_POINT(where) ((void)0)
#endif

#endif
