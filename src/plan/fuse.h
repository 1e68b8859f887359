/* SPDX-License-Identifier: Apache-2.0
 * Combines nodes that the device can run as one kernel into units. */
#ifndef PLAN_FUSE_H
#define PLAN_FUSE_H

#include "graph/target.h"

/* Forms units as far as the target (nullable) fuses nodes. */
tri_status fuse(tri_graph *g, const struct target *target);

#endif
