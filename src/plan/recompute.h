/* SPDX-License-Identifier: Apache-2.0
 * Recomputes values in the backward pass instead of keeping them until then. */
#ifndef PLAN_RECOMPUTE_H
#define PLAN_RECOMPUTE_H

#include "graph/graph.h"

/* Patterns, separated by commas, and those of the graph's settings name parts of the forward pass:
 * a node's part is the shortest scope that matches a pattern, or the operator alone. Values of a
 * part that the backward pass uses are computed again from the part's inputs, as late as possible.
 * Outputs of a scope are kept. All results keep their bits. Null: those of the settings; "none":
 * nothing. */
tri_status recompute(tri_graph *g, const char *patterns);

/* Whether it is full or fit, which src/run/fit.c replaces by patterns; null: no. */
bool recompute_is_word(const char *patterns);

/* Whether the network asks for recomputation. */
bool recompute_is_asked(const tri_graph *g);

/* Drops what the network asks for, with its networks for shorter samples. */
void recompute_forget(tri_graph *g);

/* Whether each pattern matches a scope or an operator. */
tri_status recompute_check(const tri_graph *g, const char *patterns);

#endif
