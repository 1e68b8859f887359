/* SPDX-License-Identifier: Apache-2.0
 * Schedules of transfers, executed with sets instead of numbers. */
#ifndef TRANSFERS_H
#define TRANSFERS_H

#include "plan/transfer.h"

/* Accepts any schedule that gives each host each operand once. Fails if a host would wait forever,
 * lacks an operand in the end, or gets one that it has; or if one that is not alive takes part. */
tri_status transfers_check(const struct lane_tree *tree, const struct transfer_share *share,
                           const struct transfers *t);
/* A line for each transfer: "0 > 1  bucket 0  node 8". */
void transfers_print(const struct transfers *t, struct text *to);

#endif
