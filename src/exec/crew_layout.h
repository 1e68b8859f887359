/* SPDX-License-Identifier: Apache-2.0
 * Where things lie in the store's file, for those who know its head alone. */
#ifndef EXEC_CREW_LAYOUT_H
#define EXEC_CREW_LAYOUT_H

#include "exec/crew_shared.h"
#include "exec/sweep.h"

#define CREW_PAGE 4096

/* What is counted from the store's begin lies so many bytes behind the file's. */
static inline size_t crew_head_bytes(void) {
    return (sizeof(struct crew_head) + CREW_PAGE - 1) / CREW_PAGE * CREW_PAGE;
}

static inline struct undo *crew_undo(const struct crew_head *h, char *base, int hand) {
    return (struct undo *)(base + h->undo + h->undo_bytes * (uint64_t)hand);
}

#define AUDIT_MOST 4096 /* results of a lane */

/* What who computed a lane has left for another to compare. */
struct audit {
    board_cell word;       /* who audits it */
    _Atomic uint64_t made; /* step and hand of who computed it */
    uint64_t sum[];        /* head->audit_roots: of the bytes of each result */
};

static inline struct audit *crew_audit_record(const struct crew_head *h, char *base, int lane) {
    return (struct audit *)(base + h->audits + h->audit_bytes * (uint64_t)lane);
}

#endif
