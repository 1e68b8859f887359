/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/transfers.h"

#include <stdlib.h>

void transfers_print(const struct transfers *t, struct text *to) {
    for (int i = 0; i < t->n; i++)
        text_add(to, "%d > %d  bucket %d  node %d\n", t->all[i].from, t->all[i].to,
                 t->all[i].bucket, t->all[i].node);
}

struct sets {
    const struct lane_tree *tree;
    int buckets;
    bool *has; /* [host][bucket][node] */
};

static bool *of(const struct sets *s, int host, int bucket) {
    return s->has + ((size_t)host * (size_t)s->buckets + (size_t)bucket) *
                        (size_t)s->tree->n_nodes;
}

/* Sums are made as soon as both operands are there. */
static void add_sums(const struct lane_tree *tree, bool *has) {
    for (int i = tree->lanes; i < tree->n_nodes; i++)
        has[i] |= has[tree->node[i].left] && has[tree->node[i].right];
}

static tri_status execute(const struct sets *s, const struct transfers *t, int *at) {
    for (bool moved = true; moved;) {
        moved = false;
        for (int h = 0; h < t->hosts; h++)
            for (; at[h] < t->first[h + 1]; at[h]++, moved = true) {
                const struct transfer *x = &t->all[at[h]];
                if (!of(s, h, x->bucket)[x->node]) break;
                bool *has = of(s, x->to, x->bucket);
                if (has[x->node])
                    return base_fail(TRI_FAILED, "host %d gets node %d of bucket %d twice", x->to,
                                     x->node, x->bucket);
                has[x->node] = true;
                add_sums(s->tree, has);
            }
    }
    for (int h = 0; h < t->hosts; h++)
        if (at[h] < t->first[h + 1])
            return base_fail(TRI_FAILED, "host %d waits forever for node %d of bucket %d", h,
                             t->all[at[h]].node, t->all[at[h]].bucket);
    return TRI_OK;
}

static bool is_alive(const struct transfer_share *share, int host) {
    return !share->alive || share->alive[host];
}

static tri_status check_all(const struct sets *s, const struct transfer_share *share,
                            const struct transfers *t) {
    for (int h = 0; h < t->hosts; h++)
        for (int b = 0; b < t->buckets && is_alive(share, h); b++)
            for (int i = 0; i < s->tree->n_tops; i++)
                if (!of(s, h, b)[s->tree->top[i]])
                    return base_fail(TRI_FAILED, "host %d lacks node %d of bucket %d", h,
                                     s->tree->top[i], b);
    for (int i = 0; i < t->n; i++)
        for (int end = 0; end < 2; end++) {
            const int h = end ? t->all[i].to : t->all[i].from;
            if (!is_alive(share, h))
                return base_fail(TRI_FAILED, "host %d, which is not alive, takes part", h);
        }
    return TRI_OK;
}

static bool has(const struct transfer_share *share, const struct transfers *t, int host, int bucket,
                int k) {
    const size_t i = (size_t)host * (size_t)share->buckets + (size_t)bucket;
    return share->alive && share->has && share->has[i * (size_t)t->n_operands + (size_t)k];
}

/* What a host has at the begin or will compute. */
static void begin_of(const struct sets *s, const struct transfer_share *share,
                     const struct transfers *t, int h) {
    for (int b = 0; b < t->buckets && is_alive(share, h); b++) {
        bool *is = of(s, h, b);
        for (int lane = 0; lane < s->tree->lanes; lane++)
            is[lane] = (share->begin[h] <= lane && lane < share->begin[h + 1]) ||
                       (t->again && t->again[lane] == h);
        for (int k = 0; k < t->n_operands; k++)
            if (has(share, t, h, b, k)) is[t->operand[k]] = true;
        add_sums(s->tree, is);
    }
}

tri_status transfers_check(const struct lane_tree *tree, const struct transfer_share *share,
                           const struct transfers *t) {
    const size_t nodes = (size_t)tree->n_nodes, hosts = (size_t)t->hosts;
    struct sets s = {tree, t->buckets, calloc(hosts * (size_t)t->buckets * nodes + 1, 1)};
    int *at = calloc(hosts + 1, sizeof *at);
    tri_status status = s.has && at ? TRI_OK : base_no_memory("a schedule of transfers");
    for (int h = 0; h < t->hosts && !status; h++) {
        at[h] = t->first[h];
        begin_of(&s, share, t, h);
    }
    if (!status) status = execute(&s, t, at);
    if (!status) status = check_all(&s, share, t);
    free(s.has);
    free(at);
    return status;
}
