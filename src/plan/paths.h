/* SPDX-License-Identifier: Apache-2.0
 * The transfers of one bucket by a path other than the exchange. */
#ifndef PLAN_PATHS_H
#define PLAN_PATHS_H

#include "plan/transfer.h"

struct route {
    int n, chunks;
    struct transfer *all; /* by sender; first those whose chunks have the longest way before them */
};

/* t: its operands. maker: by operand, the host that makes it. host: those that are alive, in
 * ascending order; the path allows so many. Chunk c of a ring or a butterfly is complete first at
 * host[c]. */
tri_status route_make(const struct lane_tree *tree, const struct transfers *t, const int *maker,
                      enum path path, const int *host, int hosts, struct route *out);
void route_free(struct route *r);

#endif
