/* SPDX-License-Identifier: Apache-2.0
 * Repeats tri_grad after the types of a network have changed, so that a step that a program has
 * composed of gradients gets those of the network as it is now. */
#ifndef PLAN_REPLAY_H
#define PLAN_REPLAY_H

#include "graph/graph.h"

/* Replaces all nodes that tri_grad made by what the recorded calls (tri_graph.gradient) make now,
 * in the same places. Derivatives keep their types. */
tri_status replay_gradients(tri_graph *g);

#endif
