/* SPDX-License-Identifier: Apache-2.0
 * The ferry's part in a profile: a span for each sum that has moved. */
#ifndef FERRY_SPANS_H
#define FERRY_SPANS_H

#include "ferry/mover.h"

struct ferry_spans {
    struct crew_head *head;
    uint64_t step; /* that the mover is at */
    struct ring *ring; /* null: not mapped */
    bool tried;
};

/* Whether the step is recorded. */
bool ferry_spans_are_wanted(const struct ferry_spans *s);
/* For mover_watch. */
void ferry_spans_note(void *spans, const struct mover_moved *is);

#endif
