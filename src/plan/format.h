/* SPDX-License-Identifier: Apache-2.0
 * Chooses the format (memory order) of each tensor: the device's preference, with few reorders. */
#ifndef PLAN_FORMAT_H
#define PLAN_FORMAT_H

#include "graph/target.h"

/* Nodes for which the device takes any block follow their neighbours. Where two formats meet, a
 * `reorder` is inserted, one per tensor and format. Inputs and outputs of the graph are plain. A
 * graph in which a tensor is not plain is left as it is. */
tri_status format_choose(tri_graph *g, const struct target *target);

#endif
