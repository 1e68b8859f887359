/* SPDX-License-Identifier: Apache-2.0
 * Passes that remove computations; all results keep their bits. */
#ifndef PLAN_SIMPLIFY_H
#define PLAN_SIMPLIFY_H

#include "graph/graph.h"

/* Replaces nodes whose result equals an input or is a known number. */
tri_status simplify_fold(tri_graph *g);
/* Merges nodes that compute the same. Random nodes are never merged. */
tri_status simplify_cse(tri_graph *g);
/* Removes nodes that no result needs. Sources with a name stay. */
tri_status simplify_dead(tri_graph *g);

#endif
