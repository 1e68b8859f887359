/* SPDX-License-Identifier: Apache-2.0
 * Walks an index space in row-major order, with the offsets of several tensors. */
#ifndef DEV_REF_INDEX_H
#define DEV_REF_INDEX_H

#include "graph/graph.h"

#define WALK_OPERANDS 3

/* offset[k] is the element of operand k at the current index; it changes by the operand's stride.
 * After its end a walk is back at its start. */
struct walk {
    int rank;
    int64_t dim[TRI_MAX_RANK], at[TRI_MAX_RANK];
    int64_t stride[WALK_OPERANDS][TRI_MAX_RANK], offset[WALK_OPERANDS];
};

static inline struct walk walk_over(const tri_shape *space) {
    struct walk w = {.rank = space->rank};
    for (int i = 0; i < space->rank; i++) w.dim[i] = space->dim[i];
    return w;
}

/* Operand k has shape s, aligned with the space at the last dimension. It does not move along
 * dimensions that it lacks or that have length 1; other dimensions may be longer than the
 * space's. */
static inline void walk_operand(struct walk *w, int k, const tri_shape *s) {
    int64_t stride = 1;
    for (int i = 1; i <= s->rank; i++) {
        int64_t length = s->dim[s->rank - i];
        if (i <= w->rank) w->stride[k][w->rank - i] = length == 1 ? 0 : stride;
        stride *= length;
    }
}

/* False after the last index. */
static inline bool walk_next(struct walk *w) {
    for (int d = w->rank - 1; d >= 0; d--) {
        for (int k = 0; k < WALK_OPERANDS; k++) w->offset[k] += w->stride[k][d];
        if (++w->at[d] < w->dim[d]) return true;
        for (int k = 0; k < WALK_OPERANDS; k++) w->offset[k] -= w->stride[k][d] * w->dim[d];
        w->at[d] = 0;
    }
    return false;
}

#endif
