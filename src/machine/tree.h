/* SPDX-License-Identifier: Apache-2.0
 * What the lanes yield on its way to the step: each lane's sums lie in a slot, and who publishes the
 * second of two siblings sums them, out of place (plan/lane_tree.h has the shape, board.h who does
 * what). Lanes may end in any order, on any thread of any process. */
#ifndef MACHINE_TREE_H
#define MACHINE_TREE_H

#include "crew/board.h"
#include "machine/program.h"

#define TREE_NONE SIZE_MAX

struct tree {
    const tri_graph *g;    /* left given 2N, right 2N + 1, sum "=N" */
    struct program *merge; /* one for each thread of this process */
    int threads;
    struct lane_tree shape;
    struct board board;
    int first, nodes; /* its nodes among those of all shapes, see board.h; nodes 0: there are no others */
    size_t *offset; /* within a slot, by number in the whole graph; TREE_NONE: no root */
    int n_offsets;
    size_t slot_bytes;
    int n_slots;
    char *slots; /* not owned */
};

/* Which step a hand works on, and who it is. */
struct tree_thread {
    uint32_t step;
    int thread; /* among all workers' */
    int local;  /* of this process */
};

/* threads: how many of this process put lanes at the same time; hands: of all processes. levels: of
 * sums that are left to the step. */
tri_status tree_make(const tri_graph *merge, const struct dev *dev, int64_t lanes, int levels,
                     int threads, int all_threads, struct tree *out);
size_t tree_bytes(const struct tree *t);       /* of all slots */
size_t tree_board_bytes(const struct tree *t); /* of its board */
void tree_place(struct tree *t, void *slots, void *board);
/* Trees of shapes whose steps take turns: the same slots serve all. */
void tree_join(struct tree *const *t, int n);
void tree_free(struct tree *t);

/* Memory of a lane's sums, held by the hand until tree_put. */
char *tree_slot(struct tree *t, const struct tree_thread *h, int lane);
/* As tree_slot, of a lane that another hand is computing; null: there is no memory to spare. */
char *tree_spare_slot(struct tree *t, const struct tree_thread *h, int lane);
/* As tree_put, of such a lane. False: the other was first. */
bool tree_put_for(struct tree *t, const struct tree_thread *h, int lane, const char *slot,
                  const struct program_step *step);
void tree_drop(struct tree *t, const struct tree_thread *h, int lane, const char *slot);
/* The lane failed: its slot is free again. */
void tree_fail(struct tree *t, const struct tree_thread *h, int lane, const char *slot);
/* The lane's sums are there. False: an operator failed, see the step's fault. */
bool tree_put(struct tree *t, const struct tree_thread *h, int lane, const char *slot,
              const struct program_step *step);
/* The same, but whatever can be summed now is left to others. */
void tree_leave(struct tree *t, const struct tree_thread *h, int lane, const char *slot);
/* Makes the sum of a node that the hand has claimed, and what is above it. */
bool tree_sum(struct tree *t, const struct tree_thread *h, int node, const struct program_step *step);

/* Binds the program's outputs "=N" to a slot; its givens to the tops' sums, which are there. */
void tree_bind_outputs(const struct tree *t, struct program *p, char *slot);
void tree_bind_tops(struct tree *t, struct program *p);

#endif
