/* SPDX-License-Identifier: Apache-2.0
 * Scaled dot-product attention: declarations for its three rows and the backends' kernels. */
#ifndef OPS_ATTENTION_H
#define OPS_ATTENTION_H

#include "ops/op.h"

/* Matrices [batch, heads, rows, width] within a tensor. Offset and strides are in elements; the
 * last dimension is contiguous. */
struct attention_view {
    int tensor; /* number of the input or output */
    int64_t offset, batch, head, row;
};

struct attention {
    int64_t batch, heads, queries, keys;
    int64_t size, value_size; /* width of q and k; of v and y */
    struct attention_view q, k, v; /* inputs; for attention_dx also outputs */
    struct attention_view y;       /* output 0; for gradients, dy and y */
    int first;                     /* number of the input that holds q */
    int mask;                      /* number of the input; -1: none */
    int64_t mask_stride[4];        /* batch, head, query, key; 0: broadcast */
    bool causal;
    double scale, dropout; /* dropout is 0 in evaluation */
    const char *key;       /* key of dropout's random numbers */
    int64_t sample_first, samples_all, head_first, heads_all; /* of which the node has a part */
};

/* For a node of any of the three rows. */
void attention_of(const tri_node *n, struct attention *out);

/* How many keys query i attends to, counted from key 0. */
static inline int64_t attention_reach(const struct attention *a, int64_t i) {
    return a->causal && i + 1 < a->keys ? i + 1 : a->keys;
}

/* Index of dropout's random number for query i of head h of sample b and key 0; add k for key k. It
 * is the position in [batch, heads, queries, keys] of the whole batch, of which the node may have
 * a part of the samples and heads. */
static inline uint64_t attention_draw(const tri_call *c, const struct attention *a, int64_t b,
                                      int64_t h, int64_t i) {
    int64_t lane = c->sample * a->samples_all / c->node->graph->batch;
    int64_t row = (lane + a->sample_first + b) * a->heads_all + a->head_first + h;
    return (uint64_t)((row * a->queries + i) * a->keys);
}

/* ---- for the rows ---- */

/* What the rows of attention and its gradients share; each file has its own factors and flops. key:
 * of dropout's random numbers; gradients use that of the forward node. samples_all and heads_all
 * are 0 where the node has all of them. */
#define ATTENTION_ROW \
    .attributes = "head:int=0 scale:float causal:int=0 dropout:float=0 training:int=1 " \
                  "sample_first:int=0 samples_all:int=0 head_first:int=0 heads_all:int=0 " \
                  "key:text=", \
    .follows = "sample_first=begin:b samples_all=extent:b head_first=begin:h heads_all=extent:h", \
    .names = "b:batch h:heads s:seq t:keys d:size e:value_size x:three", .factor_fn = factors, \
    .flops = flops, .precision = TRI_PRECISION_LOW, .random = true

#define ATTENTION_BEFORE 3 /* inputs of the gradients before q: dy, y, lse */

/* Checks q, k, v and mask, and dy, y and lse before them. */
bool attention_check_dx(const tri_node *n);
/* Factor letters: of all inputs, the beginning of the factor string, and of single operands. */
struct attention_letters {
    char inputs[96], q[12], k[12], v[12], y[12], mask[8];
};
void attention_letters(const tri_node *n, struct attention_letters *out);
/* Operations of `a` products over rows of q or k and `b` products over rows of v. */
double attention_flops(const tri_node *n, double a, double b);

#endif
