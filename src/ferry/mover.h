/* SPDX-License-Identifier: Apache-2.0
 * Executes the transfers of a step (plan/transfer.h) for one host: it sends operands from the slots
 * in which the host's threads have published them, and publishes what arrives as a thread would, on
 * the same boards (crew/board.h). Sums above it are left to the threads. So other hosts are one
 * more owner on the board. By paths other than the exchange it makes the sums itself (pieces.h),
 * and publishes the roots.
 *
 * What is rounded is coded into a few buffers of its own, and decoded when all of a message is
 * there; other messages go from slot to slot.
 *
 * The operands' slots must be kept (board.keeps) until the step is over: a link borrows them. */
#ifndef FERRY_MOVER_H
#define FERRY_MOVER_H

#include "crew/view.h"
#include "link/link.h"
#include "plan/transfer.h"

/* The phases of a step: counts, lanes. What is pointed to must live until the next step begins. */
struct mover_step {
    uint32_t epoch;
    uint64_t step, seed;
    struct mover_phase {
        const struct lane_tree *tree; /* null: there is no such phase */
        const struct transfers *plan;
        const struct view_sums *sums; /* of plan->buckets buckets */
    } phase[2];
};

struct mover_moved {
    int host, phase, bucket, node, chunk, chunks;
    bool sent;
    double part; /* what it took on the link, of the most that it can take */
    int64_t began;
};

/* Since the mover was opened: of messages that have been sent, or have arrived. */
struct mover_bytes {
    uint64_t sent, received; /* on the link, without headers and tags */
    uint64_t whole[2];       /* what these were in the slots: sent, received */
};

#define MOVER_CODED WIRE_CODED

struct mover;
/* owner: the mover's number on the boards. */
tri_status mover_open(int self, int hosts, int owner, struct mover **m);
void mover_close(struct mover *m); /* nullable; after the link */
void mover_bind(struct mover *m, struct link *l);
/* From the next step on, `moved` is called when a sum has been sent (to this host, which has it) or
 * has arrived (from it), which began at that time of base_now. Null: no more. */
void mover_watch(struct mover *m, void (*moved)(void *user, const struct mover_moved *is),
                 void *user);
/* From now on nothing of a phase is sent before the host has all its own operands of it. */
void mover_send_late(struct mover *m);
/* The link's `where` of sums; its user is the mover. */
link_where mover_where;

/* Begins a step, after the one before is over, or anew after mover_stop. What peers have sent of
 * it before is taken from now on. */
tri_status mover_begin(struct mover *m, const struct mover_step *step);
/* Adds up what is there, and sends it to peers that have joined. Call it after threads have
 * published, and after mover_take. *published: as there. */
tri_status mover_send(struct mover *m, bool *published);
bool mover_can_send(struct mover *m); /* whether that would do something */
/* All events of sessions and sums are for the mover. *published: it has published a sum, and
 * threads should look. Fails if the peer has sent what no peer sends: end the session. */
tri_status mover_take(struct mover *m, const struct link_event *event, bool *published);
/* A peer that has announced a sum of the step that is not expected of it, since the last call; -1:
 * none has. It is dropped; end the session. */
int mover_wrong(struct mover *m);
struct mover_bytes mover_bytes(const struct mover *m);
/* All sessions have been ended: a new epoch begins. */
void mover_stop(struct mover *m);

/* Whether the host has all operands. */
bool mover_has_all(struct mover *m);
/* Whether it has sent everything, and the link reads no slot any more. */
bool mover_has_sent(const struct mover *m);
/* What the host has: a bit by phase, bucket and operand, and after the operands the root, from the
 * lowest of has[0] on. Returns how many; has (nullable) begins as zeros. */
uint32_t mover_report(const struct mover_step *step, uint8_t *has);

#endif
