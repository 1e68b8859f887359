/* SPDX-License-Identifier: Apache-2.0
 * Trials of an operator: builds its examples as graphs, runs them and compares the results. */
#ifndef CHECK_TRIAL_H
#define CHECK_TRIAL_H

#include "run/run.h"

#define MAX_INPUTS 16

/* A parsed example of a row: "f32[2,3]@0.5:2, i64[4]@0:9 {axis=1}". */
struct example {
    const tri_op *op;
    const char *text;  /* as in the row */
    const char *attrs; /* "{axis=1}" or "" */
    int n;
    tri_spec spec[MAX_INPUTS];
    double low[MAX_INPUTS], high[MAX_INPUTS];
    uint64_t seed; /* of its runs; 1 by default */
};

tri_status example_read(const tri_op *op, const char *text, struct example *out);
/* Fails with a message that names operator and example. */
tri_status example_differs(const struct example *e, const char *fmt, ...) TRI_PRINTF(2, 3);

/* The contents of several tensors as doubles, one array per tensor. */
struct values {
    int n;
    tri_spec spec[2 * MAX_INPUTS];
    double *at[2 * MAX_INPUTS];
};
void values_free(struct values *v);
double *values_add(struct values *v, const tri_spec *spec); /* zeros; null: no memory, or full */
/* Draws random inputs for an example, rounded to their types so that all runs use equal values. */
bool values_draw(const struct example *e, struct values *v);

struct trial {
    struct example e; /* with the shapes of this trial */
    tri_graph *g;
    tri_tensor *in[MAX_INPUTS];
    tri_node *node;
    struct store store;
    struct machine machine;
};

/* Builds the graph of an example. Its inputs are states, so that trial_run can write them. Call
 * trial_free also after a failure. */
tri_status trial_begin(const struct example *e, int64_t lanes, struct trial *t);
tri_status trial_compile(struct trial *t, struct dev *dev, struct team *team);
/* Runs one step on the inputs `in`; adds every output of the graph to `out`. */
tri_status trial_run(struct trial *t, const struct values *in, struct values *out);
void trial_free(struct trial *t);
void trial_outputs(tri_tensor *const *outs, int n); /* named y0, y1, ... */

/* Builds, compiles and runs the example on a device; adds its outputs to `out`. */
tri_status trial_plain(const struct example *e, struct dev *dev, int64_t lanes, int threads,
                       const struct values *in, struct values *out);

/* Fails unless b equals a bit for bit. */
tri_status values_same(const struct example *e, const char *what, const struct values *a,
                       const struct values *b);
/* Fails unless b is near a. The tolerance is relative to the largest value of each tensor in a;
 * bf16 and f16 have a larger tolerance, integers and bool none. */
tri_status values_compare(const struct example *e, const char *what, const struct values *a,
                          const struct values *b, double tolerance);

#endif
