/* SPDX-License-Identifier: Apache-2.0
 * What moves between hosts in a step, as data. Each host computes an interval of the lanes. An
 * *operand* is a node of the lanes' tree that one host can compute from its own lanes, while its
 * parent needs lanes of two hosts, or is left to the step's program; so operands are few. By which
 * *path* the sums above them are made is chosen for each bucket:
 *
 *  exchange   every operand goes to every other host, and all compute the sums above alike
 *  ring       a bucket is cut into a chunk for each host, or several. What is known of chunk c goes
 *             around from host c + 1 to host c; each host adds what are siblings and sends the rest
 *             on, side by side. Then the root of the chunk goes around
 *  butterfly  of a power of two hosts: in each round pairs halve what they still have, and each
 *             sends the other its operands of the other half; then the roots go back the same way
 *  root       every operand goes to the first host, and the root from there to all
 *
 * Whoever executes a schedule sends a transfer when the sender has the node's chunk. It has what it
 * has made of its own lanes, what has arrived, and, but in an exchange, the sum of any two siblings
 * that it has in a chunk and that are above the operands. All paths but the exchange need a tree
 * whose one top is the root. A schedule is right if in the end each host has each operand, or the
 * root, of each bucket (tests/unit/transfers.h). Beside the root, and its own operands, no host
 * sends a chunk of a node that it adds to another, or gets one twice.
 *
 * When a host has gone in the middle of a step, the rest is scheduled anew, by exchange, from what
 * the others have. If any has a bucket's root, the first of these sends it to those that lack it.
 * Else an operand's owner sends it, if it is alive; else the first that has it; else all lanes
 * below it are computed again, by one host. The operands stay those of the step as it was dealt. */
#ifndef PLAN_TRANSFER_H
#define PLAN_TRANSFER_H

#include "plan/lane_tree.h"

enum path { PATH_EXCHANGE, PATH_RING, PATH_BUTTERFLY, PATH_ROOT, PATHS };
/* What option --path takes: "auto", then the paths; null. */
extern const char *const path_words[PATHS + 2];
static inline const char *path_name(enum path path) { return path_words[1 + path]; }
/* Whether so many hosts can take this path. */
bool path_allows(enum path path, int hosts);

struct transfer {
    int from, to; /* hosts */
    int bucket, node;
    int chunk;    /* of the node; 0 if the bucket has one */
};

struct transfers {
    int hosts, buckets;
    int n_operands, *operand; /* nodes, from left to right */
    enum path *path; /* by bucket */
    int *chunks;     /* by bucket: into how many its nodes are cut; 1: they move whole */
    int n;
    struct transfer *all; /* by sender; of each, in about the order in which it has the nodes */
    int *first;               /* by host: the index of its first; first[hosts] is n */
    int *again; /* by lane: the host that computes it again; -1: none does */
};

/* Who computes what: host h the lanes from begin[h] to begin[h + 1] - 1, which may be none. */
struct transfer_share {
    int hosts;
    const int *begin; /* hosts + 1 numbers that ascend from 0 to the number of lanes */
    int buckets;      /* in the order in which a lane completes them */
    const enum path *path; /* by bucket: PATH_EXCHANGE if `has` is given, or the hosts that are
                            * alive do not allow another; null: all exchange */
    const int *multiple; /* by bucket: into how many each chunk of its path is cut, if there are
                          * several, so that one moves while the other is added; null: 1 */
    const bool *alive;  /* by host; null: all are, and what follows is not read */
    const int *weight;  /* by host: shares of what is computed again; one that is alive has some */
    const uint8_t *has; /* by host, bucket and operand, and after these the root: it has the node;
                         * null: nobody has any */
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
