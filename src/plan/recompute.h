/* SPDX-License-Identifier: Apache-2.0
 * What is computed again in the backward pass instead of being kept until then. */
#ifndef PLAN_RECOMPUTE_H
#define PLAN_RECOMPUTE_H

#include "graph/graph.h"

/* Patterns (with commas between them; null: none) besides those of the graph's settings name parts
 * of the forward pass: of each node the shortest scope that matches one is its part, or the operator
 * alone. What the backward pass uses of a part is made again, late, from what the part was given;
 * what a scope hands on to others is kept. Every result keeps its bits. */
tri_status recompute(tri_graph *g, const char *patterns);

/* Whether each pattern matches something. */
tri_status recompute_check(const tri_graph *g, const char *patterns);

#endif
