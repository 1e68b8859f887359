/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/transfer.h"

#include <stdlib.h>
#include <string.h>

/* The lanes below a node are neighbours: the first and the last. */
static void lanes_below(const struct lane_tree *tree, int node, int *first, int *last) {
    for (*first = node; tree->node[*first].left >= 0;) *first = tree->node[*first].left;
    for (*last = node; tree->node[*last].right >= 0;) *last = tree->node[*last].right;
}

static int host_of(const struct transfer_share *share, int lane) {
    int host = 0;
    while (share->begin[host + 1] <= lane) host++;
    return host;
}

/* The host that has all lanes below the node; -1: several have some. */
static int owner(const struct lane_tree *tree, const struct transfer_share *share, int node) {
    int first, last;
    lanes_below(tree, node, &first, &last);
    int host = host_of(share, first);
    return last < share->begin[host + 1] ? host : -1;
}

/* below: the node is a top, or below one. Adds to the n that were found. */
static int find_operands(const struct lane_tree *tree, const struct transfer_share *share, int node,
                         bool below, int n, int *operand, uint8_t *is) {
    const struct lane_node *of = &tree->node[node];
    below |= of->top >= 0;
    if (below && owner(tree, share, node) >= 0) {
        if (operand) operand[n] = node;
        if (is) is[node] = true;
        return n + 1;
    }
    n = find_operands(tree, share, of->left, below, n, operand, is);
    return find_operands(tree, share, of->right, below, n, operand, is);
}

int transfers_operands(const struct lane_tree *tree, int hosts, const int *begin, int *operand,
                       uint8_t *is) {
    const struct transfer_share share = {.hosts = hosts, .begin = begin};
    if (is) memset(is, 0, (size_t)tree->n_nodes);
    return find_operands(tree, &share, tree->n_nodes - 1, false, 0, operand, is);
}

static int level(const struct lane_tree *tree, int node) {
    int n = 0;
    while ((node = tree->node[node].parent) >= 0) n++;
    return n;
}

static enum transfer_format format_of(const struct lane_tree *tree,
                                      const struct transfer_share *share, int node) {
    return share->format ? share->format[level(tree, node)] : TRANSFER_F32;
}

static bool is_alive(const struct transfer_share *share, int host) {
    return !share->alive || share->alive[host];
}

static bool has(const struct transfer_share *share, const struct transfers *t, int host, int bucket,
                int k) {
    const size_t i = (size_t)host * (size_t)share->buckets + (size_t)bucket;
    return share->alive && share->has && share->has[i * (size_t)t->n_operands + (size_t)k];
}

/* The host that sends operand k of a bucket; -1: nobody has it, or will by the step's deal. */
static int sender(const struct lane_tree *tree, const struct transfer_share *share,
                  const struct transfers *t, int bucket, int k) {
    int host = owner(tree, share, t->operand[k]);
    if (is_alive(share, host)) return host;
    for (host = 0; host < share->hosts; host++)
        if (is_alive(share, host) && has(share, t, host, bucket, k)) return host;
    return -1;
}

/* The host at a place of what is dealt by weight; at and all: in half lanes, at the middle. */
static int host_at(const struct transfer_share *share, int64_t at, int64_t all) {
    int64_t weights = 0, sum = 0;
    int host = -1;
    for (int h = 0; h < share->hosts; h++)
        if (is_alive(share, h)) weights += share->weight[h];
    CHECK(weights > 0);
    while (sum * all <= at * weights)
        if (is_alive(share, ++host)) sum += share->weight[host];
    return host;
}

/* Deals the operands of which nobody has some bucket. */
static void deal_again(const struct lane_tree *tree, const struct transfer_share *share,
                       struct transfers *t) {
    int first, last;
    int64_t all = 0, at = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < t->n_operands; k++) {
            bool lacks = false;
            for (int b = 0; b < share->buckets; b++) lacks |= sender(tree, share, t, b, k) < 0;
            if (!lacks) continue;
            lanes_below(tree, t->operand[k], &first, &last);
            const int lanes = last - first + 1;
            if (pass == 0) all += 2 * lanes;
            if (pass == 0) continue;
            const int given = share->again ? share->again[first] : -1;
            const int host = given >= 0 ? given : host_at(share, at + lanes, all);
            for (int i = first; i <= last; i++) t->again[i] = host;
            at += 2 * lanes;
        }
}

/* A host computes its lanes from left to right, and of each the buckets in their order. So it has
 * the last node of a bucket when its last lane's part is done. Each host begins with another
 * receiver, so that not all send to the same one. */
static void add_of(const struct lane_tree *tree, const struct transfer_share *share, int from,
                   struct transfers *t) {
    const int hosts = share->hosts;
    for (int k = 0; k < t->n_operands; k++)
        for (int b = 0; b < share->buckets; b++) {
            const int node = t->operand[k], is = sender(tree, share, t, b, k);
            int first, last;
            lanes_below(tree, node, &first, &last);
            if ((is < 0 ? t->again[first] : is) != from) continue;
            for (int i = 1; i < hosts; i++) {
                const int to = (from + i) % hosts;
                if (!is_alive(share, to) || has(share, t, to, b, k) || to == t->again[first])
                    continue;
                t->all[t->n++] = (struct transfer){.from = from, .to = to, .bucket = b,
                                                   .node = node,
                                                   .format = format_of(tree, share, node)};
            }
        }
}

tri_status transfers_make(const struct lane_tree *tree, const struct transfer_share *share,
                          struct transfers *t) {
    const size_t nodes = (size_t)tree->n_nodes, hosts = (size_t)share->hosts;
    CHECK(!share->begin[0] && share->begin[hosts] == tree->lanes);
    *t = (struct transfers){.hosts = share->hosts, .buckets = share->buckets};
    t->operand = calloc(nodes, sizeof *t->operand);
    t->first = calloc(hosts + 1, sizeof *t->first);
    t->again = malloc((size_t)tree->lanes * sizeof *t->again);
    if (t->operand && t->first && t->again) {
        t->n_operands = transfers_operands(tree, share->hosts, share->begin, t->operand, NULL);
        size_t n = (size_t)t->n_operands * (size_t)share->buckets * (hosts - 1);
        t->all = calloc(n + 1, sizeof *t->all);
    }
    if (!t->all) {
        transfers_free(t);
        return base_no_memory("a schedule of transfers");
    }
    for (int i = 0; i < tree->lanes; i++) t->again[i] = -1;
    if (share->alive) deal_again(tree, share, t);
    for (int h = 0; h < share->hosts; h++) {
        t->first[h] = t->n;
        add_of(tree, share, h, t);
    }
    t->first[share->hosts] = t->n;
    return TRI_OK;
}

void transfers_free(struct transfers *t) {
    free(t->operand);
    free(t->all);
    free(t->first);
    free(t->again);
    *t = (struct transfers){0};
}
