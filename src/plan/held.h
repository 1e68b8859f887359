/* SPDX-License-Identifier: Apache-2.0
 * Which nodes of the lanes' tree the hosts have, chunk by chunk, while transfers of one bucket are
 * executed in unit time: in each round, any host sends whatever it had when the round began. */
#ifndef PLAN_HELD_H
#define PLAN_HELD_H

#include <limits.h>

#include "plan/lane_tree.h"

#define HELD_NEVER INT_MAX

struct held {
    const struct lane_tree *tree; /* borrowed */
    int chunks, n;
    int *node;  /* the operands and the nodes above them, in ascending order */
    int *index; /* by node: its index among these; -1: it is below the operands */
    int *since; /* [host][chunk][index]: from which round on the host has it */
};

tri_status held_make(const struct lane_tree *tree, int n_operands, const int *operand, int hosts,
                     int chunks, struct held *out);
void held_free(struct held *h);
int held_since(const struct held *h, int host, int chunk, int node);
/* From this round on, which is none before those of earlier calls, the host has the node, and the
 * sums that it can make with it. */
void held_add(struct held *h, int host, int chunk, int node, int round);

#endif
