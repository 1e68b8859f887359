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

#endif
