/* SPDX-License-Identifier: Apache-2.0
 * Copies a network for another batch, another number of lanes, or an evaluation; chooses the
 * default number of lanes. */
#ifndef PLAN_REBATCH_H
#define PLAN_REBATCH_H

#include "graph/graph.h"

/* A copy of the graph. With `evaluation` attributes "training" become 0, and updates and the nodes
 * that only they need are left out. Null with a message. */
tri_graph *graph_rebatch(const tri_graph *g, int64_t batch, int64_t lanes, bool evaluation);

/* The network with all that belongs to it: the numbers in names, the specification, networks for
 * shorter samples, which keep their batch. Null with a message. */
tri_graph *graph_duplicate(const tri_graph *g, int64_t batch);

/* Whether each group of a batch norm has at least two values, of which training takes the variance.
 * A network that only runs forward needs none. TRI_USAGE: a group has fewer. */
tri_status rebatch_check_groups(const tri_graph *g);

/* The largest power of two up to 8 with which
 *   - a lane has at least 16 samples (1, if samples are sequences),
 *   - the matmuls that do half of the arithmetic or more keep at least 64 rows,
 *   - parameters that do not fit in a cache are each used in about 2000 multiplications per lane,
 *   - and the graph can be divided;
 * else 1. It depends on model and batch alone. 0: memory is out. */
int64_t lanes_default(const tri_graph *g);

/* The sample of the batch to which an element of the tensor belongs, by the element's position in
 * memory; -1: none, or unknown. */
int64_t rebatch_sample(const tri_tensor *t, int64_t element);

#endif
