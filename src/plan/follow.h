/* SPDX-License-Identifier: Apache-2.0
 * Units with a head: a heavy operator such as a matrix product, followed by elementwise operators
 * that run on each piece of its result. */
#ifndef PLAN_FOLLOW_H
#define PLAN_FOLLOW_H

#include "graph/target.h"

/* Moves nodes that fuse with a head to directly after it, if their inputs are ready by then, and
 * gives them one unit number. The target says which nodes are heads. */
tri_status follow(tri_graph *g, const struct target *target);

#endif
