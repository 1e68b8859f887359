/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/transfer.h"

#include <stdlib.h>
#include <string.h>

#include "plan/paths.h"

static void lanes_below(const struct lane_tree *tree, int node, int *first, int *last) {
    *first = lane_tree_first(tree, node);
    *last = lane_tree_last(tree, node);
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

static bool is_alive(const struct transfer_share *share, int host) {
    return !share->alive || share->alive[host];
}

static bool has(const struct transfer_share *share, const struct transfers *t, int host, int bucket,
                int k) {
    const size_t i = (size_t)host * (size_t)share->buckets + (size_t)bucket;
    return share->alive && share->has && share->has[i * ((size_t)t->n_operands + 1) + (size_t)k];
}

/* Whether the root is a sum that slots have, of operands. */
static bool has_root_above(const struct lane_tree *tree, const struct transfers *t) {
    return tree->n_tops == 1 && t->n_operands > 1;
}

/* The first host that has a bucket's root; -1: none has. */
static int root_sender(const struct lane_tree *tree, const struct transfer_share *share,
                       const struct transfers *t, int bucket) {
    if (!share->has || !has_root_above(tree, t)) return -1;
    for (int host = 0; host < share->hosts; host++)
        if (is_alive(share, host) && has(share, t, host, bucket, t->n_operands)) return host;
    return -1;
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
            for (int b = 0; b < share->buckets; b++)
                lacks |= sender(tree, share, t, b, k) < 0 && root_sender(tree, share, t, b) < 0;
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

/* ---- who sends what ---- */

/* The host that will have operand k first. */
static int maker(const struct lane_tree *tree, const struct transfer_share *share,
                 const struct transfers *t, int bucket, int k) {
    const int is = sender(tree, share, t, bucket, k);
    int first, last;
    lanes_below(tree, t->operand[k], &first, &last);
    return is < 0 ? t->again[first] : is;
}

/* To all that lack item k of `has`. Each host begins with another receiver, so that not all send to
 * the same one. */
static void add_to_all(const struct transfer_share *share, int from, int bucket, int node, int k,
                       int again, struct transfers *t) {
    for (int i = 1; i < share->hosts; i++) {
        const int to = (from + i) % share->hosts;
        if (is_alive(share, to) && !has(share, t, to, bucket, k) && to != again)
            t->all[t->n++] = (struct transfer){.from = from, .to = to, .bucket = bucket,
                                               .node = node};
    }
}

/* By exchange. A host computes its lanes from left to right, and of each the buckets in their
 * order. So it has the last node of a bucket when its last lane's part is done. */
static void add_exchanged(const struct lane_tree *tree, const struct transfer_share *share,
                          int from, struct transfers *t) {
    for (int b = 0; b < share->buckets; b++)
        if (root_sender(tree, share, t, b) == from)
            add_to_all(share, from, b, tree->n_nodes - 1, t->n_operands, -1, t);
    for (int k = 0; k < t->n_operands; k++)
        for (int b = 0; b < share->buckets; b++) {
            const int node = t->operand[k];
            int first, last;
            lanes_below(tree, node, &first, &last);
            if (t->path[b] == PATH_EXCHANGE && root_sender(tree, share, t, b) < 0 &&
                maker(tree, share, t, b, k) == from)
                add_to_all(share, from, b, node, k, t->again[first], t);
        }
}

static void add_routed(const struct route *route, int from, struct transfers *t) {
    for (int b = 0; b < t->buckets; b++) {
        const struct route *r = &route[t->path[b]];
        const int n = r->n ? t->chunks[b] / r->chunks : 0;
        for (int i = 0; i < r->n; i++)
            for (int k = 0; k < n && r->all[i].from == from; k++) {
                struct transfer *x = &t->all[t->n++];
                *x = r->all[i];
                x->bucket = b;
                x->chunk = n * x->chunk + k;
            }
    }
}

/* The routes of the paths that are taken, and how many transfers there will be at most. */
static tri_status make_routes(const struct lane_tree *tree, const struct transfer_share *share,
                              const struct transfers *t, struct route *route, size_t *n) {
    int *host = malloc((size_t)(share->hosts + t->n_operands) * sizeof *host), hosts = 0;
    tri_status status = host ? TRI_OK : base_no_memory("a schedule of transfers");
    for (int h = 0; h < share->hosts && !status; h++)
        if (is_alive(share, h)) host[hosts++] = h;
    for (int k = 0; k < t->n_operands && !status; k++)
        host[share->hosts + k] = maker(tree, share, t, 0, k);
    *n = 0;
    for (int b = 0; b < t->buckets && !status; b++) {
        const enum path asked = share->path ? share->path[b] : PATH_EXCHANGE;
        CHECK(asked == PATH_EXCHANGE || (!share->has && path_allows(asked, hosts)));
        t->path[b] = has_root_above(tree, t) ? asked : PATH_EXCHANGE;
        struct route *r = &route[t->path[b]];
        if (t->path[b] != PATH_EXCHANGE && !r->all)
            status = route_make(tree, t, host + share->hosts, t->path[b], host, hosts, r);
        const int by = r->all && r->chunks > 1 && share->multiple ? share->multiple[b] : 1;
        t->chunks[b] = r->all ? by * r->chunks : 1;
        *n += r->all ? (size_t)by * (size_t)r->n
                     : (size_t)t->n_operands * (size_t)(share->hosts - 1);
    }
    free(host);
    return status;
}

static tri_status make_transfers(const struct lane_tree *tree, const struct transfer_share *share,
                                 struct transfers *t) {
    struct route route[PATHS] = {0};
    size_t n;
    tri_status status = make_routes(tree, share, t, route, &n);
    t->all = status ? NULL : calloc(n + 1, sizeof *t->all);
    if (!status && !t->all) status = base_no_memory("a schedule of transfers");
    for (int h = 0; h < share->hosts && !status; h++) {
        t->first[h] = t->n;
        add_exchanged(tree, share, h, t);
        add_routed(route, h, t);
    }
    t->first[share->hosts] = t->n;
    for (int p = 0; p < PATHS; p++) route_free(&route[p]);
    return status;
}

tri_status transfers_make(const struct lane_tree *tree, const struct transfer_share *share,
                          struct transfers *t) {
    const size_t hosts = (size_t)share->hosts, buckets = (size_t)share->buckets;
    CHECK(!share->begin[0] && share->begin[hosts] == tree->lanes);
    *t = (struct transfers){.hosts = share->hosts, .buckets = share->buckets};
    t->operand = calloc((size_t)tree->n_nodes, sizeof *t->operand);
    t->path = calloc(buckets + 1, sizeof *t->path);
    t->chunks = calloc(buckets + 1, sizeof *t->chunks);
    t->first = calloc(hosts + 1, sizeof *t->first);
    t->again = malloc((size_t)tree->lanes * sizeof *t->again);
    tri_status status = TRI_OK;
    if (!t->operand || !t->path || !t->chunks || !t->first || !t->again)
        status = base_no_memory("a schedule of transfers");
    for (int i = 0; i < tree->lanes && !status; i++) t->again[i] = -1;
    if (!status) {
        t->n_operands = transfers_operands(tree, share->hosts, share->begin, t->operand, NULL);
        if (share->alive) deal_again(tree, share, t);
        status = make_transfers(tree, share, t);
    }
    if (status) transfers_free(t);
    return status;
}

void transfers_free(struct transfers *t) {
    free(t->operand);
    free(t->path);
    free(t->chunks);
    free(t->all);
    free(t->first);
    free(t->again);
    *t = (struct transfers){0};
}
