/* SPDX-License-Identifier: Apache-2.0
 * tri_op_check with a report of what it has checked. */
#ifndef CHECK_OPCHECK_H
#define CHECK_OPCHECK_H

#include "check/trial.h"

struct opcheck_report {
    int examples;
    int derivatives[2]; /* examples whose first and second derivatives were compared */
    int splits;         /* factors along which an example was split */
    int forms;          /* examples whose split form was compared */
    int blocks;         /* block sizes with which an example was run */
    int shards;         /* factors and numbers of seats over which an example was split */
};

tri_status opcheck_run(const tri_op *op, const char *device, struct opcheck_report *report);

/* Checks the first or second derivative of one example on the reference device. *given: whether the
 * operator has it. */
tri_status opcheck_derivative(const struct example *e, struct values *in, int order, bool *given);
/* Whether the example is itself a part of something, of a table or a random tensor; such an example
 * is not split again. */
bool opcheck_is_part(const tri_node *n);
/* Splits the example along each factor that may be split and is the outermost of its dimensions.
 * Adds the number of these factors to *splits. */
tri_status opcheck_splits(const struct example *e, const struct values *in, int *splits);
/* Compares the results of the row's split form, if there is one for this example, with its own.
 * Adds 1 to *forms. */
tri_status opcheck_form(const struct example *e, const struct values *in, int *forms);
/* Compares the device's results for each block size that divides the channels with `plain`, its
 * results in the plain format. Adds the number of block sizes to *tried. */
tri_status opcheck_blocks(const struct example *e, struct dev *dev, const struct values *in,
                          const struct values *plain, int *tried);

/* The scalar sum over all elements of n tensors, each times a weight of its own. Null: no
 * memory. */
tri_tensor *opcheck_project(tri_graph *g, tri_tensor *const *of, int n);
/* Splits the example over meshes of 2, 3 and 4 seats, along each factor that may be split. Adds the
 * number of these meshes to *shards. */
tri_status opcheck_shards(const struct example *e, struct dev *dev, const struct values *in,
                          int *shards);

#endif
