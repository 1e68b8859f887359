/* SPDX-License-Identifier: Apache-2.0
 * A ring of spans. One thread puts them in, and one thread, perhaps of another process, takes them
 * out: neither waits for the other. A full ring drops what is put in, and counts it. If the thread
 * that puts dies, what it has put in remains, and another thread can go on with the ring. */
#ifndef CREW_RING_H
#define CREW_RING_H

#include <stdatomic.h>
#include <string.h>

#include "crew/spans.h"

#define RING_SPANS 16384 /* the usual capacity */

/* Aligned to 64 bytes; it has no pointers. The numbers of spans only grow. */
struct ring {
    _Alignas(64) _Atomic uint64_t head; /* put in */
    _Atomic uint64_t dropped;
    uint64_t seen;     /* of those taken out, as far as the thread that puts has looked */
    uint64_t capacity; /* a power of two */
    _Alignas(64) _Atomic uint64_t tail; /* taken out */
    _Alignas(64) struct span span[];
};

static inline size_t ring_bytes(uint64_t capacity) {
    return sizeof(struct ring) + (size_t)capacity * sizeof(struct span);
}

static inline void ring_make(struct ring *r, uint64_t capacity) {
    memset(r, 0, sizeof *r);
    r->capacity = capacity;
}

/* It copies field by field: loads of 16 bytes that follow stores of 2 and 4 would wait for them. */
static inline void ring_put(struct ring *r, const struct span *s) {
    const uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    if (head - r->seen >= r->capacity) {
        r->seen = atomic_load_explicit(&r->tail, memory_order_acquire);
        if (head - r->seen >= r->capacity) {
            const uint64_t dropped = atomic_load_explicit(&r->dropped, memory_order_relaxed);
            atomic_store_explicit(&r->dropped, dropped + 1, memory_order_relaxed);
            return;
        }
    }
    struct span *to = &r->span[head & (r->capacity - 1)];
    to->begin = s->begin;
    to->end = s->end;
    to->item = s->item;
    to->step = s->step;
    to->lane = s->lane;
    to->whom = s->whom;
    to->kind = s->kind;
    to->leg = s->leg;
    to->part = s->part;
    atomic_store_explicit(&r->head, head + 1, memory_order_release);
}

/* False: it is empty. For the one thread that takes out. */
static inline bool ring_take(struct ring *r, struct span *out) {
    const uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    if (atomic_load_explicit(&r->head, memory_order_acquire) == tail) return false;
    *out = r->span[tail & (r->capacity - 1)];
    atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
    return true;
}

#endif
