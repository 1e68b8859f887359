/* SPDX-License-Identifier: Apache-2.0
 * Trials of an operator: its examples as graphs that run, and their values compared. */
#ifndef CHECK_TRIAL_H
#define CHECK_TRIAL_H

#include "run/run.h"

#define MAX_INPUTS 16

/* One example of a row, "f32[2,3]@0.5:2, i64[4]@0:9 {axis=1}", taken apart. */
struct example {
    const tri_op *op;
    const char *text;  /* as in the row */
    const char *attrs; /* "{axis=1}" or "" */
    int n;
    tri_spec spec[MAX_INPUTS];
    double low[MAX_INPUTS], high[MAX_INPUTS];
    uint64_t seed; /* of its runs: 1 */
};

tri_status example_read(const tri_op *op, const char *text, struct example *out);
/* A failure that names operator and example. */
tri_status example_differs(const struct example *e, const char *fmt, ...) TRI_PRINTF(2, 3);

/* The contents of several tensors as doubles, each array of its own. */
struct values {
    int n;
    tri_spec spec[2 * MAX_INPUTS];
    double *at[2 * MAX_INPUTS];
};
void values_free(struct values *v);
double *values_add(struct values *v, const tri_spec *spec); /* zeros; null: no memory or room */
/* Draws the inputs of an example: what the types can hold, so that all see the same numbers. */
bool values_draw(const struct example *e, struct values *v);

struct trial {
    struct example e; /* with the shapes of this trial */
    tri_graph *g;
    tri_tensor *in[MAX_INPUTS];
    tri_node *node;
    struct store store;
    struct machine machine;
};

/* The graph of an example: its inputs are states, so that they can be written. Ended by trial_free
 * in any case. */
tri_status trial_begin(const struct example *e, int64_t lanes, struct trial *t);
tri_status trial_compile(struct trial *t, const struct dev *dev, struct team *team);
/* Runs on these inputs; adds every output of the graph to `out`. */
tri_status trial_run(struct trial *t, const struct values *in, struct values *out);
void trial_free(struct trial *t);
void trial_outputs(tri_tensor *const *outs, int n); /* y0, y1, ... */

/* The example's outputs on a device, from begin to end. */
tri_status trial_plain(const struct example *e, const struct dev *dev, int64_t lanes, int threads,
                       const struct values *in, struct values *out);

/* Whether b equals a in every bit. */
tri_status values_same(const struct example *e, const char *what, const struct values *a,
                       const struct values *b);
/* Whether b equals a, but for `tolerance` of the largest of a; coarse types get more, others
 * none. */
tri_status values_compare(const struct example *e, const char *what, const struct values *a,
                          const struct values *b, double tolerance);

#endif
