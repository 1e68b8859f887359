/* SPDX-License-Identifier: Apache-2.0
 * The lane board: who computes which lane, who sums which two, and where the sums lie. A few words of
 * memory that hands (threads that compute) of one or of several processes share, each changed by
 * one compare-and-swap. So a hand may die between any two of its instructions: what it had claimed
 * is given back by board_recover, and nothing else has to be repaired, because
 *
 *   1. a lane or a sum is computed into a slot of the pool that its hand holds, never into an operand;
 *   2. it is there from the one swap on that publishes it (board_publish), and then never changes;
 *   3. the slots of two operands are given back only after their sum has been published.
 *
 * A word carries the number of the step it speaks of; one that speaks of an earlier step is free. So
 * nothing has to be cleared when a step begins, and who comes too late changes nothing. */
#ifndef CREW_BOARD_H
#define CREW_BOARD_H

#include <stdatomic.h>

#include "plan/lane_tree.h"

#define BOARD_MOST_THREADS 8191
#define BOARD_MOST_SLOTS 65535

enum board_state {
    BOARD_FREE,
    BOARD_CLAIMED, /* by a hand: nodes; held by a hand: slots */
    BOARD_DONE,    /* nodes: the sum lies in the slot */
    BOARD_FAILED,  /* lanes: an operator refused the data; see what the hand says of it */
};

/* One word. argument: a done node's slot, a held slot's node (among those of all shapes); of a task (sweep.h) the part to be
 * done next. */
struct board_word {
    uint32_t step;
    enum board_state state;
    int thread;
    int argument;
};
typedef _Atomic uint64_t board_cell;
uint64_t board_pack(struct board_word w);
struct board_word board_unpack(uint64_t packed);
/* As one that works on `step` sees it: free if it speaks of an earlier step. `late` is set if it
 * speaks of a later one. */
struct board_word board_read(board_cell *cell, uint32_t step, uint64_t *packed, bool *late);

/* Steps of several shapes, each with a tree of its own, share the slots: late hands of one step may hold some when
 * a step of another shape has begun. The words of nodes of all shapes lie one behind the other, and a held slot's
 * argument is its node's place among them all. */
struct board {
    const struct lane_tree *tree; /* this process's own */
    int n_slots;
    int first, n_all; /* the tree's nodes among those of all shapes */
    board_cell *node, *all, *slot; /* shared: 8 bytes each; node: of the tree, in all */
};

size_t board_bytes(int nodes, int slots); /* nodes: of all shapes */
/* memory: board_bytes of zeros, or what other processes have made of them. */
void board_bind(struct board *b, const struct lane_tree *tree, int slots, void *memory);
/* The same, where the tree's nodes lie behind `first` of others, `nodes` in all. */
void board_bind_shape(struct board *b, const struct lane_tree *tree, int first, int nodes, int slots, void *memory);

/* How many slots are enough, whatever the hands do. */
int board_slots(const struct lane_tree *tree, int threads);

/* Claims a lane for the hand, that of `rank` of `ranks`: the next of its own block of lanes, else the
 * last of the block that has most left. -1: there is none. */
int board_draw(struct board *b, uint32_t step, int thread, int rank, int ranks);
/* How many lanes nobody has drawn yet. */
int board_left(struct board *b, uint32_t step);
/* Claims a sum whose operands are there and which nobody makes: one that a hand left that died. */
int board_orphan(struct board *b, uint32_t step, int thread);
bool board_has_orphan(struct board *b, uint32_t step);
/* Claims the sum of `node` and its sibling, if that is there too. -1: not, or nothing to be summed. */
int board_meet(struct board *b, uint32_t step, int thread, int node);

/* A free slot, from now on held by the hand for a node. */
int board_take(struct board *b, uint32_t step, int thread, int node);
/* The slot that is kept for lanes that are computed twice; -1: another has it. */
int board_spare(struct board *b, uint32_t step, int thread, int node);
void board_drop(struct board *b, uint32_t step, int thread, int node, int slot);
/* What the hand has computed of a node is there: in the slot, or it failed. False: another was first;
 * the slot has been given back. The slots of its operands are free then. */
bool board_publish(struct board *b, uint32_t step, int thread, int node, int slot);
void board_fail(struct board *b, uint32_t step, int thread, int node);
/* As board_publish, of a lane that another hand has claimed (`claimed`) and not published. */
bool board_publish_for(struct board *b, uint32_t step, int thread, int node, int slot);

/* Whether another has published the lane, or taken it: what this hand computes of it is in vain. */
bool board_lost(struct board *b, uint32_t step, int thread, int node);
/* Whether the lane is another hand's, who is computing it; *owner. */
bool board_in_flight(struct board *b, uint32_t step, int thread, int node, int *owner);

/* Whether the step's lanes have all been computed and summed up to the tops; failed: the first lane
 * that failed, if none is missing any more; else -1. */
bool board_complete(struct board *b, uint32_t step, int *failed);
/* Where a node's sum lies. */
int board_slot_of(struct board *b, int node);
/* Gives back what is published, between two steps: nobody may be using it. */
void board_clear(struct board *b);

/* What a hand that is dead for certain had claimed and held is free again. May run beside hands that
 * are alive, and again if it was broken off. */
void board_recover(struct board *b, uint32_t step, int thread);

/* Tests kill hands here: behind every write of the protocol. Only where the build says so. */
#ifdef TRIREME_POINTS
extern void (*board_point)(const char *where);
#define BOARD_POINT(where) \
    do {                   \
        if (board_point) board_point(where); \
    } while (0)
#else
#define BOARD_POINT(where) ((void)0)
#endif

#endif
