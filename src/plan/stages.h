/* SPDX-License-Identifier: Apache-2.0
 * The stages of a pipeline: which part of the network each operator belongs to. */
#ifndef PLAN_STAGES_H
#define PLAN_STAGES_H

#include "graph/graph.h"

/* Sets the stage of each node that runs: of a forward node the one that tri_stage or --stages asks
 * for, else the latest of its inputs; of a backward node its forward node's. *stages: how many
 * there are; 0: none were asked for. */
tri_status stages_assign(tri_graph *g, const tri_options *o, int *stages);

/* What a forward node costs, in operations: those of its arithmetic, and of reading and writing. */
double stages_work(const tri_node *n);

#endif
