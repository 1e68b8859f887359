/* SPDX-License-Identifier: Apache-2.0
 * The real code of claims for their tests: claim.c is compiled in here, in place of the
 * library's, with its accesses to words going through seen_load and seen_swap, and its
 * CLAIM_POINTs to point_reached. A test that also includes the code of a user of claims sees
 * that code's points.
 *
 * The test defines broken(), which a failed CHECK calls, and shake(), which runs before accesses
 * that no model checker schedules. */
#ifndef ACCESSES_H
#define ACCESSES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

_Noreturn static void broken(const char *what);
static void shake(void);

/* ---- a call that can be left ---- */

#define MOST_LOG 200
enum ending { RETURNED = 0, PAUSED, DIED, LEFT };

static _Thread_local struct call {
    bool watched;  /* false: accesses are just made */
    uint64_t *log; /* what accesses have given; of a swap: whether it was done */
    int logged, accesses;
    int pause;       /* before this access; 0: never */
    int writes, die; /* after this write; 0: never */
    int result;      /* of a call that left */
    jmp_buf out;
} call;

/* Whether the access is made now, and not one of the log. */
static bool is_new(void) {
    if (call.accesses >= MOST_LOG) broken("a call's accesses fit its log");
    if (call.accesses < call.logged) return false;
    if (call.pause && call.accesses == call.pause) longjmp(call.out, PAUSED);
    return true;
}

static uint64_t seen_load(const _Atomic uint64_t *cell) {
    if (!call.watched) shake();
    if (!call.watched) return atomic_load_explicit(cell, memory_order_seq_cst);
    if (is_new()) call.log[call.accesses] = atomic_load_explicit(cell, memory_order_relaxed);
    return call.log[call.accesses++];
}

static bool seen_swap(_Atomic uint64_t *cell, uint64_t *from, uint64_t to) {
    if (!call.watched) shake();
    if (!call.watched)
        return atomic_compare_exchange_strong_explicit(cell, from, to, memory_order_seq_cst,
                                                       memory_order_seq_cst);
    if (is_new()) {
        uint64_t now = atomic_load_explicit(cell, memory_order_relaxed);
        call.log[call.accesses] = now == *from;
        if (now == *from) atomic_store_explicit(cell, to, memory_order_relaxed);
    }
    return call.log[call.accesses++];
}

static void point_reached(const char *where) {
    (void)where;
    if (call.watched && call.accesses <= call.logged) return;
    if (++call.writes == call.die) longjmp(call.out, DIED);
}

/* Larger sizes are tried, for some minutes. */
static bool all(void) { return getenv("SLOW") != NULL; }

static uint64_t mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

#undef atomic_load
#undef atomic_compare_exchange_strong
#undef CHECK
#undef TRIREME_POINTS
#define atomic_load(cell) seen_load(cell)
#define atomic_compare_exchange_strong(cell, from, to) seen_swap(cell, from, to)
#define CHECK(condition) ((condition) ? (void)0 : broken(#condition))
#define TRIREME_POINTS
#include "crew/claim.c"
#undef atomic_load
#undef atomic_compare_exchange_strong
#define atomic_load(at) atomic_load_explicit(at, memory_order_seq_cst)
#define atomic_compare_exchange_strong(at, from, to)                            \
    atomic_compare_exchange_strong_explicit(at, from, to, memory_order_seq_cst, \
                                            memory_order_seq_cst)

#endif
