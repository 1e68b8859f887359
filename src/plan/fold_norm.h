/* SPDX-License-Identifier: Apache-2.0
 * In an evaluation, folds batch norms into the convolutions before them. */
#ifndef PLAN_FOLD_NORM_H
#define PLAN_FOLD_NORM_H

#include "graph/graph.h"

/* Replaces conv2d and batch_norm with training=0 by a conv2d with another weight and bias, which
 * depend on parameters and states alone. Bits change: weights are rounded instead of outputs. */
tri_status fold_norm(tri_graph *g);

#endif
