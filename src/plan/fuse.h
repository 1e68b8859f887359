/* SPDX-License-Identifier: Apache-2.0
 * Units: what the device can run as one kernel. */
#ifndef PLAN_FUSE_H
#define PLAN_FUSE_H

#include "graph/target.h"

/* Puts nodes together, as far as the target (nullable) fuses them. */
tri_status fuse(tri_graph *g, const struct target *target);

#endif
