/* SPDX-License-Identifier: Apache-2.0
 * Tails: a chain of elementwise operators behind another kernel, the head of the unit. The head tells
 * what it has made, piece by piece, while that lies in the cache; where nobody else needs its output,
 * a piece is all of it that there ever is. */
#ifndef DEV_CPU_TAIL_H
#define DEV_CPU_TAIL_H

#include "dev/cpu/cpu.h"

struct tail;

/* Whether these nodes are a head and its tail. */
bool tail_fits(const tri_node *const *node, int n);
/* The kernel of a unit that tail_fits. */
tri_status tail_unit(const struct unit *u, struct kernel *out);

/* For the head: whether its output 0 is to be stored; if not, call->out[0] is null. */
bool tail_stores(const struct tail *t);
/* Elements [first, first + n) of output 0 lie at `made`. */
void tail_run(const struct tail *t, const void *made, int64_t first, int64_t n);

#endif
