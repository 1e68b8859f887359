/* SPDX-License-Identifier: Apache-2.0
 * Tails: a chain of elementwise operators after another kernel, the head of the unit. The head
 * passes on its output piece by piece, while it is in the cache. If nobody else uses that output,
 * it is never stored as a whole. */
#ifndef DEV_CPU_TAIL_H
#define DEV_CPU_TAIL_H

#include "dev/cpu/cpu.h"

struct tail;

#define TAIL_PIECE 4096 /* elements to pass on at once: they stay in the first-level cache */

/* Whether these nodes are a head and its tail. */
bool tail_fits(const tri_node *const *node, int n);
/* Prepares a unit for which tail_fits holds. */
tri_status tail_unit(const struct unit *u, struct kernel *out);

/* For the head: whether output 0 must be stored; if not, call->out[0] is null. */
bool tail_stores(const struct tail *t);
/* Elements [first, first + n) of output 0 are at `made`. */
void tail_run(const struct tail *t, const void *made, int64_t first, int64_t n);

#endif
