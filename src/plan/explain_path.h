/* SPDX-License-Identifier: Apache-2.0
 * The schedule of one bucket by a path, as a table for users. */
#ifndef PLAN_EXPLAIN_PATH_H
#define PLAN_EXPLAIN_PATH_H

#include "plan/transfer.h"

/* Adds, round by round, who sends which sums of which chunks to whom, and how much each host sends
 * and receives. begin: hosts + 1 numbers, as of transfer_share. */
tri_status explain_path(const struct lane_tree *tree, int hosts, const int *begin, enum path path,
                        struct text *out);

#endif
