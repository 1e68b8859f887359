/* SPDX-License-Identifier: Apache-2.0
 * The lane board: which thread computes which lane and which sum, and which slot holds the
 * result. Threads of one or of several processes share its words (crew/claim.h). A thread may
 * die between any two instructions; board_recover then frees what it had claimed, and nothing
 * else needs repair, because
 *
 *   1. a lane or a sum is computed into a slot that its thread holds, never into an operand;
 *   2. one compare-and-swap publishes it (board_publish), and from then on it never changes;
 *   3. the slots of two operands are released only after their sum is published.
 *
 * The word of a node (a lane or a sum) has the slot as its value once it is done. The word of a
 * slot is free or taken; its value is the node that the slot is held for. */
#ifndef CREW_BOARD_H
#define CREW_BOARD_H

#include "crew/claim.h"
#include "plan/lane_tree.h"

#define BOARD_MOST_SLOTS CLAIM_MOST_VALUE

/* Steps of several shapes, each with a tree of its own, share the slots: a late thread may still
 * hold some when a step of another shape has begun. The words of all shapes' nodes form one
 * array, and a held slot's value is its node's index in it. */
struct board {
    const struct lane_tree *tree; /* in this process's own memory */
    int n_slots;
    int first, n_all; /* where the tree's nodes begin in the array of all shapes; its length */
    claim_word *node, *all, *slot; /* shared. node: those of the tree, in all */
};

size_t board_bytes(int nodes, int slots); /* nodes: of all shapes */
/* memory: board_bytes of zeros, or what other processes have made of them. */
void board_bind(struct board *b, const struct lane_tree *tree, int slots, void *memory);
/* The same, for one of several shapes: its nodes begin at `first` of `nodes`. */
void board_bind_shape(struct board *b, const struct lane_tree *tree, int first, int nodes,
                      int slots, void *memory);

/* How many slots suffice, whatever the threads do. */
int board_slots(const struct lane_tree *tree, int threads);

/* Claims a lane for the thread, which is number `rank` of `ranks`: the next of its own block of
 * lanes, else the last of the block that has most left. -1: no lane is free. */
int board_claim_lane(struct board *b, uint32_t step, int thread, int rank, int ranks);
/* How many lanes are free. */
int board_left(struct board *b, uint32_t step);
/* Claims a sum whose operands are done and which nobody computes, as a thread that died left it. */
int board_orphan(struct board *b, uint32_t step, int thread);
bool board_has_orphan(struct board *b, uint32_t step);
/* Claims the sum of `node` and its sibling. -1: the sibling is not done, or the sum is taken. */
int board_meet(struct board *b, uint32_t step, int thread, int node);

/* A free slot, from now on held by the thread for a node. */
int board_take(struct board *b, uint32_t step, int thread, int node);
/* The slot that is reserved for lanes that are computed twice. -1: another thread holds it. */
int board_spare(struct board *b, uint32_t step, int thread, int node);
void board_drop(struct board *b, uint32_t step, int thread, int node, int slot);
/* Publishes what the thread has computed of a node into the slot, and releases the operands' slots.
 * False: another thread was first; the slot has been released. */
bool board_publish(struct board *b, uint32_t step, int thread, int node, int slot);
/* An operator refused the lane's data. */
void board_fail(struct board *b, uint32_t step, int thread, int node);
/* As board_publish, of a lane that another thread has claimed and not published. */
bool board_publish_for(struct board *b, uint32_t step, int thread, int node, int slot);

/* Another thread has published the lane: this one need not finish it. */
bool board_lost(struct board *b, uint32_t step, int thread, int node);
/* Another thread (*owner) computes the lane. */
bool board_in_flight(struct board *b, uint32_t step, int thread, int node, int *owner);

/* Whether the step's lanes have all been computed and summed up to the tops. *failed: the first
 * lane that failed, once all others are computed; else -1. */
bool board_complete(struct board *b, uint32_t step, int *failed);
/* The slot of a node that is done. */
int board_slot_of(struct board *b, int node);
/* Releases the slots of published nodes, between two steps: nobody may be using them. */
void board_clear(struct board *b);

/* Frees what a dead thread had claimed and held. May run beside living threads, and again if it was
 * interrupted. */
void board_recover(struct board *b, uint32_t step, int thread);

#endif
