/* SPDX-License-Identifier: Apache-2.0
 * Where things lie in the store's file, for those who know its head alone. */
#ifndef CREW_LAYOUT_H
#define CREW_LAYOUT_H

#include "crew/head.h"
#include "machine/sweep.h"

#define CREW_PAGE 4096

/* What is counted from the store's begin lies so many bytes behind the file's. */
static inline size_t crew_head_bytes(void) {
    return (sizeof(struct crew_head) + CREW_PAGE - 1) / CREW_PAGE * CREW_PAGE;
}

static inline struct undo *crew_undo(const struct crew_head *h, char *base, int thread) {
    return (struct undo *)(base + h->undo + h->undo_bytes * (uint64_t)thread);
}

#define AUDIT_MOST 4096 /* results of a lane */

/* Audits: a word for each lane, who audits it; then for each hand and lane audit_roots sums, of the bytes of
 * each result. */
static inline uint64_t crew_audit_bytes(int lanes, int all_threads, int roots) {
    return sizeof(uint64_t) * (uint64_t)lanes * (1 + (uint64_t)all_threads * (uint64_t)roots);
}

static inline board_cell *crew_audit_word(const struct crew_head *h, char *base, int lane) {
    return (board_cell *)(base + h->audits) + lane;
}

static inline uint64_t *crew_audit_sums(const struct crew_head *h, char *base, int thread, int lane) {
    return (uint64_t *)(base + h->audits) + h->lanes +
           ((size_t)thread * (size_t)h->lanes + (size_t)lane) * (size_t)h->audit_roots;
}

#endif
