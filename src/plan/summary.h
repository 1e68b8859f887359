/* SPDX-License-Identifier: Apache-2.0
 * The layers of a network as a table. A layer is a scope, or an operator that is in none. */
#ifndef PLAN_SUMMARY_H
#define PLAN_SUMMARY_H

#include "base/base.h"

/* Of the forward pass of a network as it is written. depth: layers whose names agree in so many
 * words are one; 0: no limit. */
tri_status summary_print(const tri_graph *g, int64_t depth, struct text *out);

#endif
