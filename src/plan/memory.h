/* SPDX-License-Identifier: Apache-2.0
 * Where the tensors of one program lie in its arena: by lifetime, in the order of the nodes. */
#ifndef PLAN_MEMORY_H
#define PLAN_MEMORY_H

#include "graph/graph.h"

#define MEMORY_ALIGN 64
#define MEMORY_OUTSIDE SIZE_MAX

/* offset (by tensor number): MEMORY_OUTSIDE where it was so on entry, else filled in. Results (named
 * outputs, values and conditions of updates) live to the end. False: out of memory. */
bool memory_plan(const tri_graph *g, size_t *offset, size_t *total);

#endif
