/* SPDX-License-Identifier: Apache-2.0 */
#include "ferry/pieces.h"

#include <stdlib.h>
#include <string.h>

static int root(const struct pieces *p) { return p->tree->n_nodes - 1; }

static uint8_t *piece(const struct pieces *p, int node, int chunk) {
    return &p->has[(size_t)node * (size_t)p->chunks + (size_t)chunk];
}

/* ---- begin ---- */

static bool grow(struct pieces *p, size_t nodes, size_t pieces) {
    if (nodes > p->most_nodes) {
        free(p->slot);
        free(p->home);
        free(p->operand);
        p->slot = calloc(nodes, sizeof *p->slot);
        p->home = calloc(nodes, sizeof *p->home);
        p->operand = calloc(nodes, sizeof *p->operand);
        p->most_nodes = p->slot && p->home && p->operand ? nodes : 0;
    }
    if (pieces > p->most_pieces) {
        free(p->has);
        p->has = calloc(pieces, 1);
        p->most_pieces = p->has ? pieces : 0;
    }
    return p->most_nodes >= nodes && p->most_pieces >= pieces;
}

/* Where sums are kept: sets `home` of the nodes that are no operands. Returns that of `node`. */
static int find_homes(struct pieces *p, int node) {
    const struct lane_node *n = &p->tree->node[node];
    if (p->operand[node] || n->left < 0) return p->home[node];
    const int left = find_homes(p, n->left), right = find_homes(p, n->right);
    return p->home[node] = left >= 0 ? left : right;
}

tri_status pieces_begin(struct pieces *p, const struct transfers *all, int bucket) {
    const size_t nodes = (size_t)p->tree->n_nodes;
    p->chunks = all->chunks[bucket];
    if (!grow(p, nodes, nodes * (size_t)p->chunks)) return base_no_memory("sums in chunks");
    p->lacks = p->chunks;
    p->is_over = false;
    p->own = 0;
    memset(p->has, 0, nodes * (size_t)p->chunks);
    memset(p->operand, 0, nodes * sizeof *p->operand);
    for (size_t i = 0; i < nodes; i++) p->slot[i] = p->home[i] = -1;
    for (int k = 0; k < all->n_operands; k++) {
        const int node = all->operand[k];
        p->operand[node] = true;
        if (board_makes(p->sums->board, node)) p->own++;
        else p->home[node] = node;
    }
    find_homes(p, root(p));
    p->home[root(p)] = root(p);
    return TRI_OK;
}

/* ---- sums ---- */

bool pieces_has(const struct pieces *p, int node, int chunk) { return *piece(p, node, chunk); }

char *pieces_slot(struct pieces *p, int node) {
    const int at = p->home[node];
    const bool published = at < 0 || (p->is_over && at == root(p));
    struct board *b = p->sums->board;
    if (!published && p->slot[at] < 0)
        p->slot[at] = board_take(b, (uint32_t)p->key.step, p->owner, at);
    const int slot = published ? board_slot_of(b, node) : p->slot[at];
    return p->sums->slots + p->sums->stride * (size_t)slot;
}

static void add(struct pieces *p, int node, int chunk) {
    const struct lane_node *n = &p->tree->node[node];
    uint64_t first, blocks;
    wire_chunk(p->map, chunk, p->chunks, &first, &blocks);
    char *to = pieces_slot(p, node);
    wire_add(p->map, pieces_slot(p, n->left), pieces_slot(p, n->right), first, blocks, to);
    p->key.node = node;
    if (lane_tree_depth(p->tree, node) <= p->sums->rounds)
        wire_round(p->map, &p->key, first, blocks, to);
}

void pieces_put(struct pieces *p, int node, int chunk) {
    for (;;) {
        const struct lane_node *n = &p->tree->node[node];
        *piece(p, node, chunk) = true;
        p->lacks -= node == root(p);
        if (n->parent < 0 || !pieces_has(p, n->sibling, chunk)) return;
        if (pieces_has(p, node = n->parent, chunk)) return; /* it has come back whole already */
        add(p, node, chunk);
    }
}

/* The next operand that threads have published since the last look. */
static int published(const struct pieces *p, int node) {
    for (; p->own && node < p->tree->n_nodes && !p->is_over; node++)
        if (p->operand[node] && p->home[node] < 0 &&
            board_is_done(p->sums->board, (uint32_t)p->key.step, node))
            return node;
    return -1;
}

bool pieces_wants(const struct pieces *p) { return published(p, 0) >= 0; }

void pieces_look(struct pieces *p) {
    for (int node = -1; (node = published(p, node + 1)) >= 0;) {
        p->operand[node] = false;
        p->own--;
        for (int c = 0; c < p->chunks; c++) pieces_put(p, node, c);
    }
}

/* ---- end ---- */

void pieces_publish(struct pieces *p) {
    const int node = root(p), slot = p->slot[node];
    CHECK(!p->lacks && slot >= 0);
    p->slot[node] = -1;
    p->is_over = true;
    board_publish_whole(p->sums->board, (uint32_t)p->key.step, p->owner, node, slot);
}

void pieces_drop(struct pieces *p) {
    for (int node = 0; p->tree && node < p->tree->n_nodes; node++) {
        if (p->slot[node] < 0) continue;
        board_drop(p->sums->board, (uint32_t)p->key.step, p->owner, node, p->slot[node]);
        p->slot[node] = -1;
    }
}

void pieces_free(struct pieces *p) {
    free(p->slot);
    free(p->home);
    free(p->has);
    free(p->operand);
    *p = (struct pieces){0};
}
