/* SPDX-License-Identifier: Apache-2.0
 * Factor strings read: which dimension of which operand carries which factor, and how a split of the
 * inputs carries over to the outputs. Nothing here knows an operator by name. */
#ifndef PLAN_FACTORS_H
#define PLAN_FACTORS_H

#include "graph/graph.h"

/* How a tensor lies on one axis (the lanes): whole, cut along a dimension, or as a partial sum. */
struct split {
    enum { WHOLE, SPLIT, PARTIAL } kind;
    int dim; /* of SPLIT */
};

#define MAX_COMPOUND TRI_MAX_RANK

struct factor_dim {
    int n;                   /* 0: no factor, a dimension of length 1 */
    uint8_t f[MAX_COMPOUND]; /* outer factor first */
};

struct factor_operand {
    int rank;
    struct factor_dim dim[TRI_MAX_RANK];
};

#define MAX_FACTORS 256

struct factors {
    int n_in, n_out;
    struct factor_operand *in, *out; /* one block, freed by factors_free */
    int64_t extent[MAX_FACTORS];     /* 0: unknown */
    bool fixed[MAX_FACTORS];         /* may not be split */
};

/* False with a message (that names the node) if there is no rule, its text is bad, or memory is
 * out. */
bool factors_of(const tri_node *n, struct factors *out);
void factors_free(struct factors *f);

/* The layouts of the outputs from those of the inputs, of which at least one is SPLIT and none
 * PARTIAL. Null if it can be, else the reason why not, a static text. With `lenient` it always
 * can: what may not be split is carried over all the same. FACTORS_NO_MEMORY whatever is asked. */
extern const char FACTORS_NO_MEMORY[];
const char *factors_carry(const tri_node *n, const struct split *in, struct split *out,
                          bool lenient);

/* Copies the node's attributes; a shape whose output is split over the samples is made for `batch` of
 * them instead of its graph's. False: it cannot be, which sticks to `to`. */
bool factors_rebatch(const tri_node *n, struct split out, int64_t batch, tri_graph *to,
                     tri_attr *attrs);

/* Length of the output without the dimensions that input 1 has: the rows of a matmul. */
int64_t factors_rows(const tri_node *n);

#endif
