/* SPDX-License-Identifier: Apache-2.0
 * Units with a head: an operator that is none of a chain, with what may follow piece by piece on what
 * it makes. */
#ifndef PLAN_FOLLOW_H
#define PLAN_FOLLOW_H

#include "graph/target.h"

/* Behind each node that the target takes for a head come those that fuse with it, as soon as what they
 * need is there; they get a unit number. */
tri_status follow(tri_graph *g, const struct target *target);

#endif
