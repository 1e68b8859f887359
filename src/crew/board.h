/* SPDX-License-Identifier: Apache-2.0
 * The lane board: which thread computes which lane and which sum, and which slot holds the
 * result. Threads of one or of several processes share its words (crew/claim.h). A thread may
 * die between any two instructions; board_recover then frees what it had claimed, and nothing
 * else needs repair, because
 *
 *   1. a lane or a sum is computed into a slot that its thread holds, never into an operand;
 *   2. one compare-and-swap publishes it (board_publish), and from then on it never changes;
 *   3. the slots of two operands are released only after their sum is published;
 *   4. a thread that computes a node again, which it published before it died, holds the slot in
 *      another way than the result's (board_take).
 *
 * The word of a node (a lane or a sum) has the slot as its value once it is done. The word of a
 * slot is free or taken; its value is the node that the slot is held for. */
#ifndef CREW_BOARD_H
#define CREW_BOARD_H

#include "crew/claim.h"
#include "plan/lane_tree.h"

#define BOARD_MOST_HOLES 512 /* threads that the number of slots depends on */
enum { BOARD_OTHERS, BOARD_MINE, BOARD_AGAIN };
#define CREW_MOST_SHAPES 8   /* of a run's steps: each has boards of its own */

/* The words of all boards that share their slots, in one array for the nodes and one for the slots.
 * A held slot's value is its node's index in the first. */
struct board_words {
    claim_word *all, *slot; /* shared; zeros, or what other processes have made of them */
    int n_all, n_slots;
};

/* Where the words of a board and its slots are, for processes that have no tree. */
struct crew_board {
    int first, slot, slots; /* nodes, slots: index of the first; slots: how many */
    int leg;                /* whose lanes are claimed here; -1: none */
    bool summed;            /* else its results are handed from leg to leg */
    uint64_t at, stride, bytes; /* of the slots' memory in its region; bytes: of a result */
    int part, parts;            /* how it travels: the first of its parts, and how many */
    bool adds;                  /* it is all numbers of f32, which are added */
};

/* Boards for steps of several shapes, each with a tree of its own, share slots: a late thread may
 * still hold some when a step of another shape has begun. So do the boards of several buckets, of
 * which one is where lanes are claimed: the thread takes its slot there and, while it holds it,
 * takes, publishes and sums what it computes of the lane for the others, one after the other. */
struct board {
    const struct lane_tree *tree; /* in this process's own memory */
    int n_slots, n_all;
    int first; /* where the tree's nodes begin in `all` */
    int chunk; /* neighbouring lanes that one thread computes, if others find enough elsewhere */
    claim_word *node, *all, *slot; /* shared. node: those of the tree, in all */
    /* By node, nullable: a sum of it does not release its slot, but board_clear, as other hosts
     * read it or have sent it. Each such node needs a slot beyond those that suffice. */
    const uint8_t *keeps;
    /* By lane, nullable: whether this host computes it. BOARD_AGAIN: another host was to, and has
     * gone; such lanes come after all others, and those below one node that is kept together. */
    const _Atomic uint8_t *mine;
    /* How many lanes, and how many sums, are over from the first on: 32 bits of step, 1 that a lane
     * has failed, 31 of the number. What is over stays over in its step, so the threads of this
     * process tell each other where to begin to look. */
    _Atomic uint64_t over[2];
};

/* first: see struct board. threads: of all processes. */
void board_bind(struct board *b, const struct lane_tree *tree, const struct board_words *words,
                int first, int threads);

/* How many slots suffice in any order of threads and with any deaths, if threads compute orphaned
 * sums before they claim lanes. Of each board, at most board_waiting results wait to be summed:
 * lanes are claimed in ascending order, and a thread finishes a chunk that it has begun, so that at
 * most so many chunks as there are threads are begun and not done, or have a lane that a death has
 * freed. Beside them, threads hold at most board_held slots of all boards together, if each
 * computes the results of `open` boards at a time: as many as are open, and one for a sum. Without
 * sums, all lanes of the board where they are claimed wait only if one thread has just published
 * the last and holds nothing of it; of other boards also while a lane that died there is computed
 * again. Tests try all orders for small numbers. claims: one of these boards is where lanes are
 * claimed. */
int board_waiting(const struct lane_tree *tree, int threads);
int board_held(const struct lane_tree *tree, int threads, int open, bool claims);

/* Claims a lane: the first free one of a chunk that the thread has begun, else of one that nobody
 * is at work on, else of any. -1: no lane is free. */
int board_claim_lane(struct board *b, uint32_t step, int thread);
/* How many lanes are free; `most` if there are more. */
int board_left(struct board *b, uint32_t step, int most);
/* Claims a sum whose operands are done and which nobody computes, as a thread that died left it. */
int board_orphan(struct board *b, uint32_t step, int thread);
bool board_has_orphan(struct board *b, uint32_t step);
/* Claims the sum of `node` and its sibling. -1: the sibling is not done, or the sum is taken. */
int board_meet(struct board *b, uint32_t step, int thread, int node);

/* A free slot, from now on held by the thread for a node. */
int board_take(struct board *b, uint32_t step, int thread, int node);
/* The same on a board whose lanes are not summed but read by others (board_let_go). -1: no slot is
 * free. repeats: a lane may be computed twice. Then a later lane leaves two slots for the earliest
 * lane that is not over on the board `lanes`, where lanes are claimed: a thread may hold one and be
 * late with the lane, or have died when it had published this and not the lane. What later lanes
 * hold may be let go only after it. Two is enough, so a board needs one slot more than lanes whose
 * results are kept. */
int board_take_handed(struct board *b, struct board *lanes, uint32_t step, int thread, int lane,
                      bool repeats);
void board_drop(struct board *b, uint32_t step, int thread, int node, int slot);
/* Publishes what the thread has computed of a node into the slot, and releases the operands' slots.
 * The node may be claimed by this thread, by another (which is slow with it), or by none. False:
 * another thread was first, or the node has failed; the slot has been released. */
bool board_publish(struct board *b, uint32_t step, int thread, int node, int slot);
/* The same for a node that has come from elsewhere: the nodes below are over, too. */
bool board_publish_whole(struct board *b, uint32_t step, int thread, int node, int slot);
/* The rest of that, if whoever published a node so has died since. The node is done. */
void board_end_below(struct board *b, uint32_t step, int thread, int node);
/* The thread will not compute the lane that it has claimed: another may. */
void board_release(struct board *b, uint32_t step, int thread, int node);
/* An operator refused the lane's data. */
void board_fail(struct board *b, uint32_t step, int thread, int node);

/* Another thread has published the lane: this one need not finish it. */
bool board_lost(struct board *b, uint32_t step, int thread, int node);
/* Another thread (*owner) computes the lane. */
bool board_in_flight(struct board *b, uint32_t step, int thread, int node, int *owner);

/* Whether the lane is done, or has failed. */
bool board_is_over(struct board *b, uint32_t step, int lane);
bool board_is_done(struct board *b, uint32_t step, int lane);
bool board_is_free(struct board *b, uint32_t step, int lane);
bool board_has_failed(struct board *b, uint32_t step, int lane);
bool board_claim(struct board *b, uint32_t step, int thread, int lane);
/* Releases the slots of lanes that are done, and are over on all n boards of those that read them.
 * Several threads may. */
void board_let_go(struct board *b, uint32_t step, struct board *const *reader, int n);

/* Whether the step's lanes have all been computed and summed up to the tops. *failed: the first
 * lane that failed, once all others of this host are computed; else -1. */
bool board_complete(struct board *b, uint32_t step, int *failed);
/* Of several hosts: whether this one computes the lanes below a node, all of which one does;
 * whether it has made all operands of its own lanes. */
bool board_makes(const struct board *b, int node);
bool board_own_are_done(struct board *b, uint32_t step);
/* Whether the node is done, and its result is in a slot of its own. */
bool board_holds(struct board *b, uint32_t step, int node);
/* The slot of a node that is done. */
int board_slot_of(struct board *b, int node);
/* Releases the slots of published nodes of all boards that share them, between two steps: nobody
 * may be using them. */
void board_clear(struct board *b);

/* Frees what a dead thread had claimed and held; to be called for each board of the open step. May
 * run beside living threads, and again if it was interrupted. */
void board_recover(struct board *b, uint32_t step, int thread);

#endif
