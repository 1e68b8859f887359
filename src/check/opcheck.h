/* SPDX-License-Identifier: Apache-2.0
 * What tri_op_check does, with an account of it. */
#ifndef CHECK_OPCHECK_H
#define CHECK_OPCHECK_H

#include "check/trial.h"

struct opcheck_report {
    int examples;
    int derivatives[2]; /* examples whose first, second derivatives were compared */
    int splits;         /* factors along which an example was split */
    int blocks;         /* blocks in which an example was tried */
};

tri_status opcheck_run(const tri_op *op, const char *device, struct opcheck_report *report);

/* One example on the reference device. given: whether the row provides this derivative at all. */
tri_status opcheck_derivative(const struct example *e, struct values *in, int order, bool *given);
/* Every factor that may be split and leads all its dimensions; *splits counts them. */
tri_status opcheck_splits(const struct example *e, const struct values *in, int *splits);
/* The device's results with every block that its channels can have, against those without. */
tri_status opcheck_blocks(const struct example *e, const struct dev *dev, const struct values *in,
                          const struct values *plain, int *tried);

#endif
