/* SPDX-License-Identifier: Apache-2.0
 * The fixed binary tree over the lanes through which everything goes that a lane yields. Leaves come
 * in their order; two neighbours of equal size are summed as soon as both are there, and what is
 * left at the end from the right: V = 6 gives ((0+1)+(2+3))+(4+5). A sum never goes into one of its
 * operands. */
#ifndef EXEC_TREE_H
#define EXEC_TREE_H

#include "exec/program.h"

#define TREE_DEPTH 32
#define TREE_NONE SIZE_MAX

struct tree {
    struct program merge; /* left given 2N, right 2N + 1, sum "=N" */
    const tri_graph *g;
    size_t *offset;       /* within a slot, by number in the whole graph; TREE_NONE: no root */
    int n_offsets;
    size_t slot_bytes;
    char *slots;
    int n_slots;
    bool *used;
    struct {
        char *slot;
        int64_t leaves;
    } stack[TREE_DEPTH];
    int depth;
};

tri_status tree_make(const tri_graph *merge, const struct dev *dev, int64_t lanes,
                     struct tree *out);
void tree_free(struct tree *t);

void tree_begin(struct tree *t);
char *tree_slot(struct tree *t); /* a free one for the next lane's sums */
bool tree_put(struct tree *t, char *slot, const struct program_step *step);
/* The sums of all lanes; they stay until tree_begin. */
char *tree_end(struct tree *t, const struct program_step *step);

/* Binds the program's outputs "=N" to a slot, or its givens N to one. */
void tree_bind_outputs(const struct tree *t, struct program *p, char *slot);
void tree_bind_givens(const struct tree *t, struct program *p, char *slot);

#endif
