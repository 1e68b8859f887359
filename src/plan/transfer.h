/* SPDX-License-Identifier: Apache-2.0
 * What moves between hosts in a step, as data. Each host computes an interval of the lanes. An
 * *operand* is a node of the lanes' tree that one host can compute from its own lanes, while its
 * parent needs lanes of two hosts, or is left to the step's program; so operands are few, and all
 * hosts compute the sums above them alike, in the tree's order. Every operand of every bucket goes
 * to every other host.
 *
 * Whoever executes a schedule sends a transfer when the sender has the node. A host may send on
 * what it has received. Any schedule is right that gives each host each operand once
 * (tests/unit/transfers.h).
 *
 * When a host has gone in the middle of a step, the rest is scheduled anew, from what the others
 * have. An operand's owner sends it, if it is alive; else the first that has it; else all lanes
 * below it are computed again, by one host. The operands stay those of the step as it was dealt. */
#ifndef PLAN_TRANSFER_H
#define PLAN_TRANSFER_H

#include "plan/lane_tree.h"

/* How the numbers of a node travel; chosen for each level of the tree, counted from the root. */
enum transfer_format {
    TRANSFER_F32, /* the bytes of the slot */
    TRANSFER_FORMATS
};

struct transfer {
    int from, to; /* hosts */
    int bucket, node;
    enum transfer_format format;
};

struct transfers {
    int hosts, buckets;
    int n_operands, *operand; /* nodes, from left to right */
    int n;
    struct transfer *all;     /* by sender; of each, in the order in which it has the nodes */
    int *first;               /* by host: the index of its first; first[hosts] is n */
    int *again; /* by lane: the host that computes it again; -1: none does */
};

/* Who computes what: host h the lanes from begin[h] to begin[h + 1] - 1, which may be none. */
struct transfer_share {
    int hosts;
    const int *begin; /* hosts + 1 numbers that ascend from 0 to the number of lanes */
    int buckets;      /* in the order in which a lane completes them */
    const enum transfer_format *format; /* by level; null: TRANSFER_F32 */
    const bool *alive;  /* by host; null: all are, and what follows is not read */
    const int *weight;  /* by host: shares of what is computed again; one that is alive has some */
    const uint8_t *has; /* by host, bucket and operand: it has the node; null: nobody has any */
    const int *again;   /* nullable: of the phase before. The same host takes the same lanes. */
};

/* Nodes of a tree: 0 to n_nodes - 1, tops and those below them only. */
tri_status transfers_make(const struct lane_tree *tree, const struct transfer_share *share,
                          struct transfers *out);
void transfers_free(struct transfers *t);
/* The operands alone. Returns how many; operand (nullable): from left to right; is (nullable): by
 * node, 1 for these, and 0. */
int transfers_operands(const struct lane_tree *tree, int hosts, const int *begin, int *operand,
                       uint8_t *is);

#endif
