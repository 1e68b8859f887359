/* SPDX-License-Identifier: Apache-2.0
 * Scaled dot-product attention: what its three rows and the kernels of the backends share. */
#ifndef OPS_ATTENTION_H
#define OPS_ATTENTION_H

#include "ops/op.h"

/* Matrices [batch, heads, rows, width] inside of a tensor: offset and strides in elements; the last
 * dimension is contiguous. */
struct attention_view {
    int tensor; /* which input, or output, it lies in */
    int64_t offset, batch, head, row;
};

struct attention {
    int64_t batch, heads, queries, keys;
    int64_t size, value_size; /* width of q and k; of v and y */
    struct attention_view q, k, v; /* of the inputs; in attention_dx of the outputs as well */
    struct attention_view y;       /* of output 0; in the derivatives, of dy and y */
    int first;                     /* the input that q lies in */
    int mask;                      /* the input; -1: none */
    int64_t mask_stride[4];        /* by batch, head, query, key; 0: broadcast */
    bool causal;
    double scale, dropout; /* dropout: 0 in evaluation */
    const char *key;       /* of its numbers */
};

/* Of a node of one of the three rows. */
void attention_of(const tri_node *n, struct attention *out);

/* Keys that query i attends to: the first so many. */
static inline int64_t attention_reach(const struct attention *a, int64_t i) {
    return a->causal && i + 1 < a->keys ? i + 1 : a->keys;
}

/* The number that the dropout draws for query i of head h of sample b, and key 0; key k's is k
 * further: its place in [batch, heads, queries, keys] of the whole batch. first: see tri_call. */
uint64_t attention_draw(const tri_node *n, const struct attention *a, int64_t first, int64_t b,
                        int64_t h, int64_t i);

/* ---- for the rows ---- */

/* key: what keys the dropout's numbers; of the derivatives as of the forward node. */
#define ATTENTION \
    "head:int=0 scale:float causal:int=0 dropout:float=0 training:int=1 key:text="
#define ATTENTION_BEFORE 3 /* inputs of the derivatives before q: dy, y and lse */

/* q, k, v and mask, which are the inputs from `first` on, fit. */
bool attention_check(const tri_node *n, int first);
/* The same for a derivative, with dy, y and lse. */
bool attention_check_dx(const tri_node *n);
tri_spec attention_y(const struct attention *a, const tri_node *n);
tri_spec attention_lse(const struct attention *a);
/* The letters of the inputs, which the factor string begins with, and of some operands alone. */
struct attention_letters {
    char inputs[96], q[12], k[12], v[12], y[12], mask[8];
};
void attention_letters(const tri_node *n, struct attention_letters *out);
/* Arithmetic of `a` products of rows of q or k, and `b` of rows of v. */
double attention_flops(const tri_node *n, double a, double b);

#endif
