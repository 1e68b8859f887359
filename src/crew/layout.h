/* SPDX-License-Identifier: Apache-2.0
 * Offsets in the store's file, for code that knows only its head. */
#ifndef CREW_LAYOUT_H
#define CREW_LAYOUT_H

#include "crew/head.h"
#include "crew/tasks.h"

#define CREW_PAGE 4096

/* The store begins so many bytes after the begin of the file. */
static inline size_t crew_head_bytes(void) {
    return (sizeof(struct crew_head) + CREW_PAGE - 1) / CREW_PAGE * CREW_PAGE;
}

static inline struct undo *crew_undo(const struct crew_head *h, char *base, int thread) {
    return (struct undo *)(base + h->layout.undo + h->layout.undo_bytes * (uint64_t)thread);
}

static inline struct group crew_group(struct crew_head *h, char *base, int number) {
    char *at = base + h->layout.groups + h->layout.group_bytes * (uint64_t)number;
    return (struct group){(struct crew_group *)at, number, &h->event, h->place, h->size.places};
}

/* By output: its value in the step, if it is a single number. */
static inline double *crew_results(const struct crew_head *h, char *base, uint64_t step) {
    return (double *)(base + h->layout.results) + step % 2 * (uint64_t)h->layout.n_results;
}

/* Audits: a word for each leg of each lane says who audits it; after them, for each thread and
 * lane, audit_roots checksums, one for each result of the lane. */
static inline uint64_t crew_audit_bytes(int lanes, int legs, int all_threads, int roots) {
    return sizeof(uint64_t) * (uint64_t)lanes *
           ((uint64_t)legs + (uint64_t)all_threads * (uint64_t)roots);
}

static inline claim_word *crew_audit_word(const struct crew_head *h, char *base, int leg,
                                          int lane) {
    return (claim_word *)(base + h->layout.audits) + leg * h->layout.lanes + lane;
}

static inline uint64_t *crew_audit_sums(const struct crew_head *h, char *base, int thread,
                                        int lane) {
    const struct crew_layout *l = &h->layout;
    return (uint64_t *)(base + l->audits) + l->audit_legs * l->lanes +
           ((size_t)thread * (size_t)l->lanes + (size_t)lane) * (size_t)l->audit_roots;
}

#endif
