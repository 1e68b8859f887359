/* SPDX-License-Identifier: Apache-2.0
 * Walks several tensors together: the dimensions of one iteration space and, for each tensor, the
 * stride of each dimension. Built when a node is prepared, simplified to as few and as long
 * dimensions as possible, then walked in row-major order with running offsets. */
#ifndef DEV_CPU_WALK_H
#define DEV_CPU_WALK_H

#include "graph/pack.h"

#define WALK_MAX 16
#define WALK_RANK (TRI_MAX_RANK + 2 * PACK_BLOCKS) /* blocks are dimensions */

/* Strides are in elements; 0 repeats. rank 0: one place. */
struct walk {
    int rank, n; /* n tensors */
    int64_t dim[WALK_RANK];
    int64_t stride[WALK_MAX][WALK_RANK];
};

/* A position of the walk; starts as zeros. */
struct place {
    int64_t index[WALK_RANK];
    int64_t offset[WALK_MAX];
};

/* The space of `shape` for n tensors, without strides. */
struct walk walk_over(const tri_shape *shape, int n);
/* The same in the memory order of t: [n, c / block, ..., block] if it has a block. */
struct walk walk_of(const tri_tensor *t, int n);
/* Sets the strides of `in`, broadcast to `to`, over walk_of(to). A blocked `in` has the block of
 * `to`; a plain one, such as a vector of the channels, may be combined with a blocked `to`. */
void walk_operand(struct walk *w, int k, const tri_tensor *in, const tri_tensor *to);
/* Sets the strides of a contiguous tensor of this shape, aligned at the last dimension and repeated
 * where its length is 1 or the dimension is missing. */
void walk_broadcast(struct walk *w, int k, const tri_shape *shape);
/* Sets the strides of a contiguous tensor with the walk's own dimensions. */
void walk_dense(struct walk *w, int k);
/* Sets the strides of a contiguous tensor that lacks the dimensions in the mask or has length 1
 * there: the result of a reduction. */
void walk_reduced(struct walk *w, int k, unsigned mask);
/* Drops dimensions of length 1 and joins neighbours that are evenly spaced in every tensor. */
void walk_simplify(struct walk *w);
bool walk_is_dense(const struct walk *w, int k);
int64_t walk_count(const struct walk *w);
/* Removes dimension d from the walk, for a separate loop. */
void walk_remove(struct walk *w, int d);

/* Moves to element `number` in the walk's order. */
void walk_seek(const struct walk *w, int64_t number, struct place *p);
/* One step over the first `levels` dimensions; wraps to zero after the end. */
static inline void walk_next(const struct walk *w, int levels, struct place *p) {
    for (int d = levels - 1; d >= 0; d--) {
        bool wrap = ++p->index[d] == w->dim[d];
        int64_t steps = wrap ? 1 - w->dim[d] : 1;
        for (int k = 0; k < w->n; k++) p->offset[k] += steps * w->stride[k][d];
        if (!wrap) return;
        p->index[d] = 0;
    }
}

#endif
