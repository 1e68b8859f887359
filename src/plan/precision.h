/* SPDX-License-Identifier: Apache-2.0
 * Mixed precision: which values of the network are f32, and which of a half type. What an operator
 * wants stands in its row (tri_op.precision); the level says what is made of it. */
#ifndef PLAN_PRECISION_H
#define PLAN_PRECISION_H

#include "graph/target.h"

/* tri_options.amp and amp_type read; level 0 for null, bf16 for null. */
struct precision {
    int level;
    tri_type half;
};
tri_status precision_read(const tri_options *o, struct precision *out);

/* Lowers the network, which has no gradients yet, in place: every tensor that is used in another
 * type than its own is cast once for each type. Parameters, states, outputs and values of updates
 * keep their types. *half becomes the type that something was lowered to (else TRI_F32), *note what the
 * target lacks for it: then nothing is lowered. */
tri_status precision_lower(tri_graph *g, const tri_options *o, const struct target *target,
                           tri_type *half, const char **note);

#endif
