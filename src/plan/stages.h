/* SPDX-License-Identifier: Apache-2.0
 * The stages of a pipeline: which part of the network each operator belongs to. */
#ifndef PLAN_STAGES_H
#define PLAN_STAGES_H

#include "graph/graph.h"
#include "graph/target.h"

/* Sets the stage of each node that runs: of a forward node the one that tri_stage or --stages asks
 * for, else the latest of its inputs; of a backward node its forward node's. *stages: how many
 * there are; 0: none were asked for. */
tri_status stages_assign(tri_graph *g, const tri_options *o, const struct target *t, int *stages);

/* Where stages of about the same work begin, as --cuts has it. work: by forward node, that of it
 * and of its backward nodes, in any unit; sums of gradients are added. */
tri_status stages_cut(const tri_graph *g, double *work, int stages, struct text *cuts);

/* What a node costs on this target (nullable), in operations: those of its arithmetic, and as many
 * as reading and writing take. */
double stages_work(const tri_node *n, const struct target *t);

#endif
