/* SPDX-License-Identifier: Apache-2.0
 * Walking several tensors together: the dimensions of one iteration space and, for each tensor,
 * how far an element of each dimension lies apart. Built when a node is prepared, simplified to the
 * fewest and longest dimensions, then walked in row-major order with running offsets. */
#ifndef DEV_CPU_WALK_H
#define DEV_CPU_WALK_H

#include "graph/graph.h"

#define WALK_MAX 16
#define WALK_RANK (TRI_MAX_RANK + 1) /* a block is a dimension of its own */

/* Strides are in elements; 0 repeats. rank 0: one place. */
struct walk {
    int rank, n; /* n tensors */
    int64_t dim[WALK_RANK];
    int64_t stride[WALK_MAX][WALK_RANK];
};

/* Where a walk stands; starts as zeros. */
struct place {
    int64_t index[WALK_RANK];
    int64_t offset[WALK_MAX];
};

/* The space of `shape` with n tensors, whose strides are still to be set. */
struct walk walk_over(const tri_shape *shape, int n);
/* The same in the order in which t lies: [n, c / block, ..., block] where it has a block. */
struct walk walk_of(const tri_tensor *t, int n);
/* Strides of `in`, broadcast to `to`, over walk_of(to). Where it has a block that is `to`'s; a plain
 * one may stand beside a block, as a vector of the channels does. */
void walk_operand(struct walk *w, int k, const tri_tensor *in, const tri_tensor *to);
/* Strides of a contiguous tensor of this shape, aligned at the last dimension and repeated where it
 * has length 1 or no dimension. */
void walk_broadcast(struct walk *w, int k, const tri_shape *shape);
/* Strides of the walk's own dimensions, lying contiguously. */
void walk_dense(struct walk *w, int k);
/* Strides of a contiguous tensor that lacks the dimensions in the mask, or has them with length 1:
 * what a reduction of the walk's space gives. */
void walk_reduced(struct walk *w, int k, unsigned mask);
/* Drops dimensions of length 1 and joins neighbours that are evenly spaced in every tensor. */
void walk_simplify(struct walk *w);
bool walk_is_dense(const struct walk *w, int k);
int64_t walk_count(const struct walk *w);
/* Takes dimension d out of the walk, for a loop of its own. */
void walk_remove(struct walk *w, int d);

/* Goes to element `number` of the walk, counted in its order. */
void walk_seek(const struct walk *w, int64_t number, struct place *p);
/* One step over the first `levels` dimensions; wraps to zero behind the end. */
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
