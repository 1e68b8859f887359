/* SPDX-License-Identifier: Apache-2.0
 * Reads factor strings: which factor each dimension of an operand carries, and which split of the
 * outputs follows from that of the inputs. */
#ifndef PLAN_FACTORS_H
#define PLAN_FACTORS_H

#include "graph/graph.h"

/* How a tensor is divided over the lanes or along one axis of a mesh: whole, split along a
 * dimension, or partial results. A mesh may also split the inner places of a dimension: these are
 * `outer` blocks of `extent` equal parts, and each seat has some of the parts of every block. */
struct split {
    enum { WHOLE, SPLIT, PARTIAL } kind;
    int dim;               /* of SPLIT */
    int partial;           /* of PARTIAL: tri_op.partial */
    int64_t outer, extent; /* of SPLIT on a mesh */
    /* A node's need of windows: the seats divide `places`, as `extent` parts, and need what these
     * concern. over 0: no windows. */
    tri_reach reach;
    int64_t places;
};

#define MAX_COMPOUND TRI_MAX_RANK

struct factor_dim {
    int n;                   /* 0: no factor, the dimension has length 1 */
    uint8_t f[MAX_COMPOUND]; /* outer factor first */
    bool windows;            /* of the factor: see tri_op.reach */
};

struct factor_operand {
    int rank;
    struct factor_dim dim[TRI_MAX_RANK];
};

#define MAX_FACTORS 256
#define FACTOR_ELLIPSIS 128 /* and above: dimensions of "..." */

struct factors {
    int n_in, n_out;
    struct factor_operand *in, *out; /* one allocation, freed by factors_free */
    int64_t extent[MAX_FACTORS];     /* 0: unknown */
    bool fixed[MAX_FACTORS];         /* may not be split */
    tri_reach reach['z' + 1];        /* by factor of windows; over 0: there are none */
    int64_t length['z' + 1];         /* of the dimension that has the windows */
};

/* The places [*from, *to) of a dimension of this length that places [begin, end) concern; there may
 * be none. */
void reach_range(const tri_reach *r, int64_t begin, int64_t end, int64_t length, int64_t *from,
                 int64_t *to);

/* Whether the row says how its nodes may be split. */
static inline bool op_has_factors(const tri_op *op) {
    return op->factors || op->factor_fn || op->samplewise;
}

/* False with a message that names the node, if the row has no factor string, the string is wrong,
 * or memory is out. */
bool factors_of(const tri_node *n, struct factors *out);
void factors_free(struct factors *f);

/* Finds the splits of the outputs from those of the inputs, of which at least one is SPLIT and none
 * PARTIAL. Returns null, or why the node cannot be split: a static text. With `lenient` dimensions
 * that may not be split are split as well. FACTORS_NO_MEMORY is possible in both cases. */
extern const char FACTORS_NO_MEMORY[];
const char *factors_carry(const tri_node *n, const struct split *in, struct split *out,
                          bool lenient);

/* Copies the node's attributes for a graph of `batch` samples: if the output is split, so is a
 * shape among them. False: that is impossible, and `to` fails with the reason. */
bool factors_rebatch(const tri_node *n, struct split out, int64_t batch, tri_graph *to,
                     tri_attr *attrs);

/* The product of the output's dimensions that input 1 does not have: the rows of a matmul. */
int64_t factors_rows(const tri_node *n);

#endif
