/* SPDX-License-Identifier: Apache-2.0
 * Moves nodes that do not depend on the data from the graph of a lane to `pre`, which runs once per
 * step: the reorders of weights. */
#ifndef PLAN_HOIST_H
#define PLAN_HOIST_H

#include "plan/lanes.h"

struct hoist {
    const tri_graph *whole; /* outputs of `pre` get numbers above those of its tensors */
    tri_graph *pre;         /* made if it is missing */
};

tri_status hoist(struct hoist *h, tri_graph *lane);

#endif
