/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/transfers.h"

#include <stdlib.h>

void transfers_print(const struct transfers *t, struct text *to) {
    for (int i = 0; i < t->n; i++) {
        const struct transfer *x = &t->all[i];
        text_add(to, "%d > %d  bucket %d  node %d", x->from, x->to, x->bucket, x->node);
        if (t->chunks[x->bucket] > 1) text_add(to, "  chunk %d", x->chunk);
        text_add(to, "\n");
    }
}

/* What a host has done with a chunk of a node, which is its own, has arrived, or is a sum. */
enum { OWN = 1, ARRIVED = 2, SUM = 4, ADDED = 8 /* to its sibling */, SENT = 16 };

struct sets {
    const struct lane_tree *tree;
    const struct transfers *t;
    int chunks;       /* of any bucket, at most */
    uint8_t *has;     /* [host][bucket][chunk][node] */
    uint8_t *operand; /* by node */
};

static uint8_t *of(const struct sets *s, int host, int bucket, int chunk) {
    size_t i = (size_t)host * (size_t)s->t->buckets + (size_t)bucket;
    i = i * (size_t)s->chunks + (size_t)chunk;
    return s->has + i * (size_t)s->tree->n_nodes;
}

/* Sums are made as soon as both operands are there. */
static void add_sums(const struct lane_tree *tree, uint8_t *has) {
    for (int i = tree->lanes; i < tree->n_nodes; i++) {
        uint8_t *left = &has[tree->node[i].left], *right = &has[tree->node[i].right];
        if (has[i] || !*left || !*right) continue;
        has[i] = SUM;
        *left |= ADDED;
        *right |= ADDED;
    }
}

static tri_status move(const struct sets *s, const struct transfer *x) {
    uint8_t *to = of(s, x->to, x->bucket, x->chunk);
    if (to[x->node])
        return base_fail(TRI_FAILED, "host %d gets node %d of bucket %d twice", x->to, x->node,
                         x->bucket);
    of(s, x->from, x->bucket, x->chunk)[x->node] |= SENT;
    to[x->node] = ARRIVED;
    if (s->t->path[x->bucket]) add_sums(s->tree, to);
    return TRI_OK;
}

static bool can_move(const struct sets *s, const struct transfer *x) {
    return of(s, x->from, x->bucket, x->chunk)[x->node];
}

/* todo: the transfers that remain. */
static tri_status execute(const struct sets *s, int (*draw)(int n), int *todo, int n) {
    for (; n; n--) {
        int at = draw ? draw(n) : 0, tries = n;
        while (tries && !can_move(s, &s->t->all[todo[at]])) at = (at + 1) % n, tries--;
        const struct transfer *x = &s->t->all[todo[at]];
        if (!tries)
            return base_fail(TRI_FAILED, "host %d waits forever for node %d of bucket %d", x->from,
                             x->node, x->bucket);
        const tri_status status = move(s, x);
        if (status) return status;
        todo[at] = todo[n - 1];
    }
    return TRI_OK;
}

static bool is_alive(const struct transfer_share *share, int host) {
    return !share->alive || share->alive[host];
}

/* Whether a host has the root, or else all operands, of a chunk in the end. */
static tri_status check_end(const struct sets *s, int h, int b, int c) {
    const uint8_t *has = of(s, h, b, c);
    const int root = s->tree->n_nodes - 1;
    for (int i = 0; i <= root; i++) {
        if (s->operand[i] && !has[i] && !has[root])
            return base_fail(TRI_FAILED, "host %d lacks node %d of bucket %d", h, i, b);
        if (s->t->path[b] && has[i] & SENT && has[i] & ADDED && !(has[i] & OWN))
            return base_fail(TRI_FAILED, "host %d sends and adds node %d of bucket %d", h, i, b);
    }
    return TRI_OK;
}

static tri_status check_all(const struct sets *s, const struct transfer_share *share) {
    tri_status status = TRI_OK;
    for (int h = 0; h < s->t->hosts; h++)
        for (int b = 0; b < s->t->buckets && is_alive(share, h); b++)
            for (int c = 0; c < s->t->chunks[b] && !status; c++) status = check_end(s, h, b, c);
    return status;
}

/* That numbers are in their ranges, and senders in order; and who takes part. */
static tri_status check_form(const struct lane_tree *tree, const struct transfer_share *share,
                             const struct transfers *t) {
    for (int h = 0; h < t->hosts; h++)
        for (int i = t->first[h]; i < t->first[h + 1]; i++) {
            const struct transfer *x = &t->all[i];
            if (x->from != h || x->to < 0 || x->to >= t->hosts || x->to == h || x->bucket < 0 ||
                x->bucket >= t->buckets || x->node < 0 || x->node >= tree->n_nodes ||
                x->chunk < 0 || x->chunk >= t->chunks[x->bucket])
                return base_fail(TRI_FAILED, "transfer %d is none", i);
            if (!is_alive(share, x->from) || !is_alive(share, x->to))
                return base_fail(TRI_FAILED, "host %d or %d, which is not alive, takes part",
                                 x->from, x->to);
        }
    return TRI_OK;
}

static bool has(const struct transfer_share *share, const struct transfers *t, int host, int bucket,
                int k) {
    const size_t i = (size_t)host * (size_t)share->buckets + (size_t)bucket;
    return share->alive && share->has && share->has[i * ((size_t)t->n_operands + 1) + (size_t)k];
}

/* What a host has at the begin or will compute. */
static void begin_of(const struct sets *s, const struct transfer_share *share, int h, int b,
                     int c) {
    const struct transfers *t = s->t;
    uint8_t *is = of(s, h, b, c);
    for (int lane = 0; lane < s->tree->lanes; lane++)
        is[lane] = (share->begin[h] <= lane && lane < share->begin[h + 1]) ||
                   (t->again && t->again[lane] == h);
    for (int i = s->tree->lanes; i < s->tree->n_nodes; i++) {
        const struct lane_node *n = &s->tree->node[i];
        is[i] = is[n->left] && is[n->right] && !s->operand[n->left] && !s->operand[n->right];
    }
    for (int k = 0; k < t->n_operands; k++)
        if (has(share, t, h, b, k)) is[t->operand[k]] = OWN;
    if (has(share, t, h, b, t->n_operands)) is[s->tree->n_nodes - 1] = OWN;
    if (t->path[b]) add_sums(s->tree, is);
}

tri_status transfers_check_in(const struct lane_tree *tree, const struct transfer_share *share,
                              const struct transfers *t, int (*draw)(int n)) {
    struct sets s = {.tree = tree, .t = t, .chunks = 1};
    for (int b = 0; b < t->buckets; b++)
        if (t->chunks[b] > s.chunks) s.chunks = t->chunks[b];
    const int sets = t->hosts * t->buckets * s.chunks, n = t->first[t->hosts];
    s.has = calloc((size_t)sets * (size_t)tree->n_nodes + 1, 1);
    s.operand = calloc((size_t)tree->n_nodes, 1);
    int *todo = calloc((size_t)n + 1, sizeof *todo);
    tri_status status = s.has && s.operand && todo ? check_form(tree, share, t)
                                                   : base_no_memory("a schedule of transfers");
    if (!status) transfers_operands(tree, share->hosts, share->begin, NULL, s.operand);
    for (int i = 0; i < n && !status; i++) todo[i] = i;
    for (int h = 0; h < t->hosts && !status; h++)
        for (int b = 0; b < t->buckets && is_alive(share, h); b++)
            for (int c = 0; c < t->chunks[b]; c++) begin_of(&s, share, h, b, c);
    if (!status) status = execute(&s, draw, todo, n);
    if (!status) status = check_all(&s, share);
    free(s.has);
    free(s.operand);
    free(todo);
    return status;
}

tri_status transfers_check(const struct lane_tree *tree, const struct transfer_share *share,
                           const struct transfers *t) {
    return transfers_check_in(tree, share, t, NULL);
}
