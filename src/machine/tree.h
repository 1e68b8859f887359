/* SPDX-License-Identifier: Apache-2.0
 * The tree that sums the results of the lanes. Each lane writes its results to a slot. The thread
 * that publishes the second of two siblings sums both into a third slot. Lanes may end in any
 * order, on any thread of any process. plan/lane_tree.h has the tree's shape, crew/board.h the
 * claims. */
#ifndef MACHINE_TREE_H
#define MACHINE_TREE_H

#include "crew/board.h"
#include "machine/program.h"

#define TREE_NONE SIZE_MAX

struct tree {
    const tri_graph *g;    /* sums two slots: given 2N is left, 2N + 1 right, "=N" the sum */
    struct program *merge; /* one per thread of this process */
    int threads;
    struct lane_tree shape;
    struct board board;
    /* Its first node among the nodes of the trees of all shapes, and the number of all these nodes
     * (0: there is one shape). */
    int first, nodes;
    int all_threads; /* of all processes */
    size_t *offset; /* in a slot, by number in the whole graph; TREE_NONE: it is not summed */
    int n_offsets;
    size_t slot_bytes;
    int n_slots;
    char *slots; /* not owned */
};

/* The calling thread, and its step. */
struct tree_thread {
    uint32_t step;
    int thread; /* among the threads of all workers */
    int local;  /* among those of this process */
};

/* threads: of this process, that use the tree at the same time; all_threads: of all processes.
 * levels: of sums that the step makes. */
tri_status tree_make(const tri_graph *merge, const struct dev *dev, int64_t lanes, int levels,
                     int threads, int all_threads, struct tree *out);
size_t tree_bytes(const struct tree *t);       /* of all slots */
size_t tree_board_bytes(const struct tree *t); /* of its board */
void tree_place(struct tree *t, void *slots, void *board);
/* Makes n trees, for steps of several shapes, use the same slots. */
void tree_join(struct tree *const *t, int n);
void tree_free(struct tree *t);

/* Takes a slot for a lane's results. The thread holds it until it calls tree_put. */
char *tree_slot(struct tree *t, const struct tree_thread *h, int lane);
/* Releases the slot without publishing the lane. */
void tree_drop(struct tree *t, const struct tree_thread *h, int lane, const char *slot);
/* Releases the slot and publishes that the lane failed. */
void tree_fail(struct tree *t, const struct tree_thread *h, int lane, const char *slot);
/* Publishes the lane, and makes the sums that are possible then. False: another thread was
 * first. */
bool tree_put(struct tree *t, const struct tree_thread *h, int lane, const char *slot,
              const struct program_step *step);
/* Publishes the lane, and leaves the sums to other threads. */
bool tree_publish(struct tree *t, const struct tree_thread *h, int lane, const char *slot);
/* Makes the sum of a node that the thread has claimed, and the sums above it that are possible
 * then. */
bool tree_sum(struct tree *t, const struct tree_thread *h, int node,
              const struct program_step *step);

/* Binds the program's outputs "=N" to a slot, its givens to the sums of the tops, which must be
 * published. */
void tree_bind_outputs(const struct tree *t, struct program *p, char *slot);
void tree_bind_tops(struct tree *t, struct program *p);

#endif
