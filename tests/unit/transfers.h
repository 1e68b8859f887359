/* SPDX-License-Identifier: Apache-2.0
 * Schedules of transfers, executed with sets instead of numbers. */
#ifndef TRANSFERS_H
#define TRANSFERS_H

#include "plan/transfer.h"

/* Accepts any schedule that gives each host each operand, or the root, of each bucket and chunk.
 * Fails if a host would wait forever, lacks something in the end, or gets what it has; if it sends
 * a sum that it adds, too, but for the root and, in an exchange, whatever it has; or if a host that
 * is not alive takes part. */
tri_status transfers_check(const struct lane_tree *tree, const struct transfer_share *share,
                           const struct transfers *t);
/* The same, with the transfers in the order of chance: draw(n) is below n. Of those whose nodes are
 * there, any may be next. */
tri_status transfers_check_in(const struct lane_tree *tree, const struct transfer_share *share,
                              const struct transfers *t, int (*draw)(int n));
/* A line for each transfer: "0 > 1  bucket 0  node 8", and "  chunk 1" if there are several. */
void transfers_print(const struct transfers *t, struct text *to);

#endif
