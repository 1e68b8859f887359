/* SPDX-License-Identifier: Apache-2.0
 * tamper DIR [TIMES]: corrupts the store of the run in DIR: claims lane 0 of a step in the name of
 * a spare, which does not know about it, so that all workers wait for a lane that nobody computes.
 * When the agent has freed the lane, claims it again, until it has TIMES in one step. For
 * stalls.py. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "launch/look.h"
#include "crew/view.h"

/* The place of a worker that takes no part; -1: there is none. */
static int find_spare(const struct crew_head *h) {
    for (int i = 0; i < h->size.places; i++)
        if (atomic_load(&h->worker[i].state) == CREW_READY && atomic_load(&h->worker[i].rank) < 0)
            return i;
    return -1;
}

/* Fails if a worker claims the lane first, which is likely. */
static bool claim(const struct crew_head *h, struct board *b, int hand) {
    uint32_t step = (uint32_t)atomic_load(&h->course.opened);
    struct claim c = claim_look(&b->node[0], step);
    return c.state == CLAIM_FREE && atomic_load(&h->course.committed) < step &&
           claim_try(&b->node[0], &c, hand);
}

int main(int argc, char **argv) {
    struct look l;
    if (argc < 2 || look_open(argv[1], true, &l)) {
        fprintf(stderr, "%s\n", argc > 1 ? tri_message() : "usage: tamper DIR [TIMES]");
        return 2;
    }
    struct view v = {.head = l.head, .fd = l.store};
    int spare;
    while (((spare = find_spare(l.head)) < 0 || !crew_begun(l.head)) &&
           !atomic_load(&l.head->course.ending))
        usleep(1000);
    if (view_map(&v) || !v.base) {
        fprintf(stderr, "%s\n", tri_message());
        return 1;
    }
    int times = argc > 2 ? atoi(argv[2]) : 1, left = times;
    uint64_t step = 0;
    while (left && !atomic_load(&l.head->course.ending)) {
        if (!claim(l.head, v.board[0][1], spare * l.head->size.threads)) continue;
        left = atomic_load(&l.head->course.opened) == step ? left - 1 : times - 1;
        step = atomic_load(&l.head->course.opened);
    }
    view_unmap(&v);
    look_close(&l);
    return left > 0;
}
