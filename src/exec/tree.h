/* SPDX-License-Identifier: Apache-2.0
 * The fixed binary tree over the lanes through which everything goes that a lane yields. Its shape
 * follows from the number of lanes: two neighbours of equal size are one node, and what is left at
 * the end is put together from the right: V = 6 gives ((0+1)+(2+3))+(4+5). Lanes may end in any
 * order, on any thread: who ends the second of two siblings sums them. A sum never goes into one
 * of its operands. */
#ifndef EXEC_TREE_H
#define EXEC_TREE_H

#include <pthread.h>

#include "exec/program.h"

#define TREE_NONE SIZE_MAX

struct tree_node {
    int parent, sibling; /* -1: the root */
    bool right;          /* of its parent's two */
    char *slot;          /* what it sums to; null: not there yet */
};

struct tree {
    const tri_graph *g;    /* left given 2N, right 2N + 1, sum "=N" */
    struct program *merge; /* one for each thread */
    int threads;
    struct tree_node *node; /* the lanes, then the sums; the last is the root */
    int n_nodes;
    size_t *offset; /* within a slot, by number in the whole graph; TREE_NONE: no root */
    int n_offsets;
    size_t slot_bytes;
    char *slots;
    int n_slots;
    bool *used;
    pthread_mutex_t mutex; /* of nodes' and slots' state */
};

/* threads: how many put lanes at the same time. */
tri_status tree_make(const tri_graph *merge, const struct dev *dev, int64_t lanes, int threads,
                     struct tree *out);
/* Makes t->node, of the shape that so many lanes have; false: out of memory. */
bool tree_nodes(struct tree *t, int lanes);
/* How many slots are enough, whatever the order in which lanes end. */
int tree_slots(int64_t lanes, int threads);
size_t tree_bytes(const struct tree *t); /* of all slots */
tri_status tree_allocate(struct tree *t);
void tree_free(struct tree *t);

void tree_begin(struct tree *t);
char *tree_slot(struct tree *t); /* a free one for a lane's sums */
bool tree_put(struct tree *t, int64_t lane, char *slot, int thread,
              const struct program_step *step);
/* The sums of all lanes; they stay until tree_begin. */
char *tree_sums(const struct tree *t);

/* Binds the program's outputs "=N" to a slot, or its givens N to one. */
void tree_bind_outputs(const struct tree *t, struct program *p, char *slot);
void tree_bind_givens(const struct tree *t, struct program *p, char *slot);

#endif
