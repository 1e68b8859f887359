/* SPDX-License-Identifier: Apache-2.0
 * Mixed precision: which values of the network are f32, and which have a 16-bit type ("half"). It
 * follows from the operator's row (tri_op.precision) and the level. */
#ifndef PLAN_PRECISION_H
#define PLAN_PRECISION_H

#include "graph/target.h"

/* Reads tri_options.amp (null: level 0) and amp_type (null: bf16). */
struct precision {
    int level;
    tri_type half;
};

/* Lowers the network, which has no gradients yet, in place: inserts one cast per tensor and type.
 * Parameters, states, outputs and values of updates keep their types. Sets *half to the type that
 * tensors were lowered to (else TRI_F32). If the target lacks instructions for it, nothing is
 * lowered and *note says what it lacks. */
tri_status precision_lower(tri_graph *g, const tri_options *o, const struct target *target,
                           tri_type *half, const char **note);

#endif
