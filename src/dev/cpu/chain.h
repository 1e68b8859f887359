/* SPDX-License-Identifier: Apache-2.0
 * Chains: elementwise operators over one shape, run tile by tile. Intermediate values stay in the
 * first-level cache; only values used outside are stored. A single operator is a chain of one. A
 * chain may follow another kernel that produces its first operand piece by piece. */
#ifndef DEV_CPU_CHAIN_H
#define DEV_CPU_CHAIN_H

#include "dev/cpu/cpu.h"

struct chain;

/* The tensors of a chain. made: the output of the kernel before it, from element `made_first` of
 * the tensor. */
struct chain_io {
    const void *const *in;
    void *const *out;
    const void *made;
    int64_t made_first;
};

/* Whether the operator can be a member of a chain. */
bool chain_takes(const tri_node *n);
/* Whether these nodes, in the graph's order, can run as a chain. made: a tensor of the same shape
 * from the kernel before; null: none. */
bool chain_fits(const tri_node *const *node, int n, const tri_tensor *made);
/* Makes the chain of a unit's nodes except the head, whose output is `made` (head null: all
 * nodes). */
tri_status chain_make(const struct unit *u, const tri_node *head, const tri_tensor *made,
                      struct chain **out);
/* Computes n elements of the outputs from element `first`. */
void chain_run(const struct chain *c, const struct chain_io *io, int64_t first, int64_t n);
/* Elements of an output. */
int64_t chain_count(const struct chain *c);
/* As in struct kernel, with the numbers of the unit. */
bool chain_shares(const struct chain *c, int out, int in);

#endif
