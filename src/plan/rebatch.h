/* SPDX-License-Identifier: Apache-2.0
 * The same network for another batch, another number of lanes, or for evaluation; and how many lanes
 * a network gets when nobody says. */
#ifndef PLAN_REBATCH_H
#define PLAN_REBATCH_H

#include "graph/graph.h"

/* A copy of the graph. With `evaluation`, what the attribute "training" switches is off, and updates
 * and all that serves them alone are left out. Null with a message. */
tri_graph *graph_rebatch(const tri_graph *g, int64_t batch, int64_t lanes, bool evaluation);

/* Whether each group of a batch norm has two values at least for the variance that training takes of it: a network
 * that runs forward alone needs none. TRI_USAGE: one has not. */
tri_status rebatch_check_groups(const tri_graph *g);

/* The largest power of two up to 8 for which a lane keeps at least 16 samples (one, where samples
 * are sequences), the matmuls that make up most of the arithmetic keep at least 64 rows, parameters
 * too large for a cache are each used in some 2000 multiplications, and the graph can be cut; else 1.
 * A function of model and batch alone; 0: memory is out. */
int64_t lanes_default(const tri_graph *g);

/* The sample of the graph's batch that an element of the tensor belongs to, by its place in memory; -1: none, or not
 * known. */
int64_t rebatch_sample(const tri_tensor *t, int64_t element);

#endif
