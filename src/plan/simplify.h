/* SPDX-License-Identifier: Apache-2.0
 * Passes that leave out what need not be computed; every result keeps its bits. */
#ifndef PLAN_SIMPLIFY_H
#define PLAN_SIMPLIFY_H

#include "graph/graph.h"

/* Operators whose result is an input, or a number that is known. */
tri_status simplify_fold(tri_graph *g);
/* What is computed twice is computed once; what is random never. */
tri_status simplify_cse(tri_graph *g);
/* What no result needs; sources that are told by their names stay. */
tri_status simplify_dead(tri_graph *g);

#endif
