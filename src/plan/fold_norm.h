/* SPDX-License-Identifier: Apache-2.0
 * Batch norm of an evaluation taken into the convolution before it. */
#ifndef PLAN_FOLD_NORM_H
#define PLAN_FOLD_NORM_H

#include "graph/graph.h"

/* conv2d, then batch_norm with training=0, is a conv2d with another weight and bias, which follow
 * from parameters and states alone. Not bit for bit: a weight is rounded where an output was. */
tri_status fold_norm(tri_graph *g);

#endif
