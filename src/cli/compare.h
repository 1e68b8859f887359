/* SPDX-License-Identifier: Apache-2.0
 * What the two ways of `trireme compare` share: the first difference of two runs or checkpoints. */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "base/base.h"
#include "run/run.h"

/* How values are compared. tolerance: relative to the tensor's largest value; below 0: bit for
 * bit. */
struct compare_values {
    double tolerance;
    bool same;  /* result: all bits are the same */
    int64_t at; /* the first element that differs too much */
    double a, b, largest;
};
/* Whether n values of one type are the same, or near enough. A value that is not finite is near
 * nothing. */
bool compare_equal(struct compare_values *v, tri_type type, const void *a, const void *b,
                   int64_t n);
/* "element 17: 0.25 and 0.125" */
void compare_print(const struct compare_values *v, struct text *out);
bool compare_same_spec(const tri_spec *a, const tri_spec *b);
/* Why two tensors are not compared: "only in the second". which: the one that has it, or 0. */
const char *compare_unlike(bool both, int which);

/* Makes the next step of both runs, which were opened with one thread and without passes that fuse
 * nodes, and compares what their operators compute. Describes the first difference in `out`, which
 * stays empty if there is none. Adds to *compared how many results were compared. */
tri_status compare_step(tri_run *const run[2], double tolerance, size_t *compared,
                        struct text *out);
/* Compares the parameters, states and outputs of both runs. */
tri_status compare_stores(tri_run *const run[2], double tolerance, struct text *out);
/* Names the parameters and states that compare_stores leaves out, as the other run has none of
 * this shape and type. */
void compare_skipped(tri_run *const run[2], struct text *out);

#endif
