/* SPDX-License-Identifier: Apache-2.0
 * Executes a schedule of transfers (plan/transfer.h) for one host: it sends operands from the slots
 * in which the host's threads have published them, and publishes what arrives as a thread would, on
 * the same boards (crew/board.h). Sums above it are left to the threads. So a remote host is one
 * more owner on the board: the lanes of others are claimed by it from the step's begin.
 *
 * The operands' slots must be kept (board.keeps) until the step is over: a link borrows them. */
#ifndef FERRY_MOVER_H
#define FERRY_MOVER_H

#include "crew/board.h"
#include "link/link.h"
#include "plan/transfer.h"

struct mover_bucket {
    struct board *board;
    char *slots;
    size_t stride, bytes; /* from slot to slot; of a node */
};

struct mover_place {
    int self, owner; /* owner: its number on the boards */
    const struct lane_tree *tree;
    const struct transfers *plan;
    const int *begin; /* of the hosts' lanes, see struct transfer_share */
    const struct mover_bucket *bucket; /* plan->buckets of them; all borrowed */
};

struct mover;
tri_status mover_open(const struct mover_place *place, struct mover **m);
void mover_close(struct mover *m); /* nullable; after the link */
void mover_bind(struct mover *m, struct link *l);
/* The link's `where`; its user is the mover. */
link_where mover_where;

/* Begins a step, or a new epoch of it: claims the lanes of others. Nothing of an earlier step or
 * epoch is taken any more; what peers have sent of this one, before, is. Before a step's threads
 * begin; and after the step before is over. */
tri_status mover_begin(struct mover *m, uint32_t epoch, uint32_t step);
/* Sends to peers that have joined what is there and has not been sent. Call it after threads have
 * published. */
tri_status mover_send(struct mover *m);
/* All events but REFUSED and ARRIVED of other kinds are for the mover. *published: threads should
 * look. */
tri_status mover_take(struct mover *m, const struct link_event *event, bool *published);
/* The same as ENDED, after link_end. What the peer had may be lost: a new epoch must follow. */
void mover_lose(struct mover *m, int host);
/* Whether the host has all operands. */
bool mover_has_all(const struct mover *m);
/* Whether also all that it has to send is sent, so that slots may be cleared. */
bool mover_is_over(const struct mover *m);

#endif
