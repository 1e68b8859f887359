/* SPDX-License-Identifier: Apache-2.0
 * Chains: elementwise operators over one shape, run tile by tile. What one gives to the next
 * stays in the first-level cache; only what is used outside is stored. A single operator is a chain
 * of one. Chains may stand behind another kernel that makes their first operand piece by piece. */
#ifndef DEV_CPU_CHAIN_H
#define DEV_CPU_CHAIN_H

#include "dev/cpu/cpu.h"

struct chain;

/* Where a chain's tensors lie. made: what the kernel before it has made, from element `made_first`
 * of the tensor on. */
struct chain_io {
    const void *const *in;
    void *const *out;
    const void *made;
    int64_t made_first;
};

/* Whether the operator can be a member of some chain. */
bool chain_takes(const tri_node *n);
/* Whether these nodes, in the graph's order, can run as a chain. made: a tensor of the same shape
 * that comes from the kernel before; null: none. */
bool chain_fits(const tri_node *const *node, int n, const tri_tensor *made);
/* The chain of a unit's nodes but for the head (null: all of them), whose output `made` is. */
tri_status chain_make(const struct unit *u, const tri_node *head, const tri_tensor *made,
                      struct chain **out);
/* Computes n elements of the outputs from element `first` on. */
void chain_run(const struct chain *c, const struct chain_io *io, int64_t first, int64_t n);
/* Elements of an output. */
int64_t chain_count(const struct chain *c);
/* As struct kernel has it, with the numbers of the unit. */
bool chain_shares(const struct chain *c, int out, int in);

#endif
