/* SPDX-License-Identifier: Apache-2.0
 * The lane board's real code for its tests: board.c is compiled in here a second time, with its names
 * changed; its accesses to the words go through seen_load and seen_swap, its BOARD_POINTs to
 * point_reached. Who includes this says what a broken CHECK does, and what happens besides at accesses
 * that nobody watches. */
#ifndef BOARD_SEEN_H
#define BOARD_SEEN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static uint64_t seen_load(_Atomic uint64_t *cell);
static bool seen_swap(_Atomic uint64_t *cell, uint64_t *from, uint64_t to);
_Noreturn static void broken(const char *what);

#undef atomic_load
#undef atomic_compare_exchange_strong
#undef CHECK
#undef TRIREME_POINTS
#define atomic_load(cell) seen_load(cell)
#define atomic_compare_exchange_strong(cell, from, to) seen_swap(cell, from, to)
#define CHECK(condition) ((condition) ? (void)0 : broken(#condition))
#define TRIREME_POINTS
#include "crew/claim.c"
#include "crew/board.c"

/* ---- a call that can be left ---- */

#define MOST_LOG 120
enum ending { RETURNED, PAUSED, DIED };

static _Thread_local struct call {
    bool watched;  /* false: threads, accesses are just made */
    uint64_t *log; /* what accesses have given; a swap: whether it was done */
    int logged, accesses;
    int pause; /* before this access; 0: not */
    int writes, die; /* behind this write; 0: not */
    jmp_buf out;
} call;

static void shake(void);

/* False: the access is one of the log. */
static bool is_new(void) {
    CHECK(call.accesses < MOST_LOG);
    if (call.accesses < call.logged) return false;
    if (call.pause && call.accesses == call.pause) longjmp(call.out, PAUSED);
    return true;
}

static uint64_t seen_load(_Atomic uint64_t *cell) {
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

static uint64_t mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

/* Larger sizes are tried, for some minutes. */
static bool all(void) { return getenv("BOARD_ALL") != NULL; }

#endif
