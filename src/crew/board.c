/* SPDX-License-Identifier: Apache-2.0 */
#include "crew/board.h"

/* ---- making ---- */

size_t board_bytes(int nodes, int slots) {
    return sizeof(claim_word) * ((size_t)nodes + (size_t)slots);
}

void board_bind_shape(struct board *b, const struct lane_tree *tree, int first, int nodes,
                      int slots, void *memory) {
    *b = (struct board){.tree = tree, .n_slots = slots, .first = first, .n_all = nodes,
                        .all = memory};
    b->node = memory ? b->all + first : NULL;
    b->slot = memory ? b->all + nodes : NULL;
}

void board_bind(struct board *b, const struct lane_tree *tree, int slots, void *memory) {
    board_bind_shape(b, tree, 0, tree->n_nodes, slots, memory);
}

/* The longest path from a lane up to its top. */
static int height(const struct lane_tree *tree) {
    int most = 0;
    for (int i = 0; i < tree->lanes; i++) {
        int h = 0, n = i;
        for (; n >= 0 && tree->node[n].top < 0; h++) n = tree->node[n].parent;
        if (n >= 0 && h > most) most = h;
    }
    return most;
}

/* lanes + threads suffice in any order and with any deaths: beside a slot for each lane below
 * it, a thread holds at most one more. Where threads compute orphaned sums before they claim
 * lanes, fewer do: on each level a thread leaves a sum waiting at either end of its block and at
 * the far end of another's. test_board tries all orders for small numbers. The last slot is for
 * lanes that are computed twice. */
int board_slots(const struct lane_tree *tree, int threads) {
    int levels = 0, block = (tree->lanes + threads - 1) / threads, top = height(tree);
    for (int v = block; v > 1; v = (v + 1) / 2) levels++;
    if (levels > top) levels = top;
    int64_t most = (int64_t)threads * (3 * levels + 2) +
                   (tree->n_tops > threads ? tree->n_tops - threads : 0);
    int64_t all = (int64_t)tree->lanes + threads;
    if (most > all) most = all;
    return (int)(most < BOARD_MOST_SLOTS - 1 ? most : BOARD_MOST_SLOTS - 1) + 1;
}

/* ---- claiming ---- */

static struct claim look(struct board *b, uint32_t step, int node) {
    return claim_look(&b->node[node], step);
}

static bool try_claim(struct board *b, uint32_t step, int thread, int node) {
    struct claim c = look(b, step, node);
    return c.state == CLAIM_FREE && claim_try(&b->node[node], &c, thread);
}

static int block_begin(const struct board *b, int rank, int ranks) {
    return (int)((int64_t)b->tree->lanes * rank / ranks);
}

static bool is_free(struct board *b, uint32_t step, int node) {
    return look(b, step, node).state == CLAIM_FREE;
}

/* The block with most lanes left; -1: none has any. */
static int busiest(struct board *b, uint32_t step, int ranks) {
    int best = -1, most = 0;
    for (int r = 0; r < ranks; r++) {
        int left = 0;
        for (int i = block_begin(b, r, ranks); i < block_begin(b, r + 1, ranks); i++)
            left += is_free(b, step, i);
        if (left > most) {
            most = left;
            best = r;
        }
    }
    return best;
}

int board_claim_lane(struct board *b, uint32_t step, int thread, int rank, int ranks) {
    if (rank >= 0 && rank < ranks)
        for (int i = block_begin(b, rank, ranks); i < block_begin(b, rank + 1, ranks); i++)
            if (try_claim(b, step, thread, i)) return i;
    for (int r; (r = busiest(b, step, ranks)) >= 0;)
        for (int i = block_begin(b, r + 1, ranks); i-- > block_begin(b, r, ranks);)
            if (try_claim(b, step, thread, i)) return i;
    return -1;
}

int board_left(struct board *b, uint32_t step) {
    int left = 0;
    for (int i = 0; i < b->tree->lanes; i++) left += is_free(b, step, i);
    return left;
}

/* Once a later step has begun, everything of this one is done. */
static bool is_done(struct board *b, uint32_t step, int node) {
    enum claim_state s = look(b, step, node).state;
    return s == CLAIM_DONE || s == CLAIM_PASSED;
}

/* A sum that lanes make: a top, or below one. The sums above the tops are the step's. */
static bool is_made(const struct board *b, int node) {
    for (int n = node; n >= 0; n = b->tree->node[n].parent)
        if (b->tree->node[n].top >= 0) return true;
    return false;
}

static bool is_orphan(struct board *b, uint32_t step, int node) {
    const struct lane_node *n = &b->tree->node[node];
    return is_made(b, node) && is_free(b, step, node) && is_done(b, step, n->left) &&
           is_done(b, step, n->right);
}

int board_orphan(struct board *b, uint32_t step, int thread) {
    for (int i = b->tree->lanes; i < b->tree->n_nodes; i++)
        if (is_orphan(b, step, i) && try_claim(b, step, thread, i)) return i;
    return -1;
}

bool board_has_orphan(struct board *b, uint32_t step) {
    for (int i = b->tree->lanes; i < b->tree->n_nodes; i++)
        if (is_orphan(b, step, i)) return true;
    return false;
}

int board_meet(struct board *b, uint32_t step, int thread, int node) {
    const struct lane_node *n = &b->tree->node[node];
    if (n->top >= 0 || !is_done(b, step, n->sibling)) return -1;
    return try_claim(b, step, thread, n->parent) ? n->parent : -1;
}

/* ---- slots ---- */

static struct claim held_for(const struct board *b, uint32_t step, int thread, int node) {
    return (struct claim){.step = step, .owner = thread, .value = b->first + node};
}

/* *free: the slot was free, but another thread may have been quicker. */
static bool try_slot(struct board *b, int slot, struct claim held, bool *free) {
    struct claim c = claim_read(&b->slot[slot]);
    held.seen = c.seen;
    *free = c.state == CLAIM_FREE;
    return *free && claim_try(&b->slot[slot], &held, held.owner);
}

int board_take(struct board *b, uint32_t step, int thread, int node) {
    const struct claim held = held_for(b, step, thread, node);
    for (bool raced = true, free;;) {
        CHECK(raced); /* board_slots suffice */
        raced = false;
        for (int i = 0; i < b->n_slots - 1; i++, raced |= free)
            if (try_slot(b, i, held, &free)) return i;
    }
}

int board_spare(struct board *b, uint32_t step, int thread, int node) {
    int last = b->n_slots - 1;
    bool free;
    return try_slot(b, last, held_for(b, step, thread, node), &free) ? last : -1;
}

static void release(struct board *b, int slot, const struct claim *held) {
    claim_publish(&b->slot[slot], held, CLAIM_FREE, 0, 0);
}

void board_drop(struct board *b, uint32_t step, int thread, int node, int slot) {
    struct claim held = held_for(b, step, thread, node);
    release(b, slot, &held);
}

/* Whether the node's result lies in the slot, held for it as `held` says. */
static bool is_result(const struct claim *node, int slot, const struct claim *held) {
    return node->state == CLAIM_DONE && node->step == held->step && node->value == slot &&
           node->owner == held->owner;
}

/* After a sum is published. Only a slot that is held for this very operand is released: another
 * thread may have released it already, and a third have taken it since. */
static void release_operand(struct board *b, uint32_t step, int node) {
    struct claim c = look(b, step, node);
    if (c.state != CLAIM_DONE) return; /* passed: board_clear has released it */
    struct claim held = claim_read(&b->slot[c.value]);
    if (held.state == CLAIM_TAKEN && held.value == b->first + node && is_result(&c, c.value, &held))
        release(b, c.value, &held);
}

static bool publish(struct board *b, const struct claim *held, int thread, int node, int slot) {
    if (!claim_publish(&b->node[node], held, CLAIM_DONE, thread, slot)) {
        board_drop(b, held->step, thread, node, slot);
        return false;
    }
    const struct lane_node *n = &b->tree->node[node];
    if (n->left >= 0) {
        release_operand(b, held->step, n->left);
        release_operand(b, held->step, n->right);
    }
    return true;
}

bool board_publish(struct board *b, uint32_t step, int thread, int node, int slot) {
    const struct claim held = {.step = step, .owner = thread};
    return publish(b, &held, thread, node, slot);
}

bool board_publish_for(struct board *b, uint32_t step, int thread, int node, int slot) {
    struct claim c = look(b, step, node);
    if (c.state == CLAIM_TAKEN) return publish(b, &c, thread, node, slot);
    board_drop(b, step, thread, node, slot);
    return false;
}

void board_fail(struct board *b, uint32_t step, int thread, int node) {
    const struct claim held = {.step = step, .owner = thread};
    claim_publish(&b->node[node], &held, CLAIM_FAILED, thread, 0);
}

/* ---- looking ---- */

bool board_lost(struct board *b, uint32_t step, int thread, int node) {
    struct claim c = look(b, step, node);
    return c.state == CLAIM_PASSED || (c.state == CLAIM_DONE && c.owner != thread);
}

bool board_in_flight(struct board *b, uint32_t step, int thread, int node, int *owner) {
    struct claim c = look(b, step, node);
    *owner = c.owner;
    return c.state == CLAIM_TAKEN && c.owner != thread;
}

bool board_complete(struct board *b, uint32_t step, int *failed) {
    bool all = true;
    *failed = -1;
    for (int i = 0; i < b->tree->n_tops && all; i++) all = is_done(b, step, b->tree->top[i]);
    if (all) return true;
    for (int i = b->tree->lanes; i-- > 0;) {
        enum claim_state s = look(b, step, i).state;
        if (s == CLAIM_FREE || s == CLAIM_TAKEN) {
            *failed = -1;
            return false;
        }
        if (s == CLAIM_FAILED) *failed = i;
    }
    return false;
}

int board_slot_of(struct board *b, int node) { return claim_read(&b->node[node]).value; }

void board_clear(struct board *b) {
    for (int i = 0; i < b->n_slots; i++) {
        struct claim held = claim_read(&b->slot[i]);
        if (held.state != CLAIM_TAKEN) continue;
        struct claim node = claim_read(&b->all[held.value]);
        if (is_result(&node, i, &held)) release(b, i, &held);
    }
}

/* ---- recovery ---- */

/* Releases a slot that the dead thread held and had not published, or whose sum is published. */
static void recover_slot(struct board *b, uint32_t step, int slot, int dead) {
    struct claim held = claim_read(&b->slot[slot]);
    if (held.state != CLAIM_TAKEN) return;
    struct claim node = claim_read(&b->all[held.value]);
    bool published = is_result(&node, slot, &held);
    int own = held.value - b->first; /* not one of the tree's: it is of a step of another shape */
    int parent = own >= 0 && own < b->tree->n_nodes ? b->tree->node[own].parent : -1;
    bool used_up = published && parent >= 0 && held.step == step && is_done(b, step, parent);
    if (published ? used_up : held.owner == dead) release(b, slot, &held);
}

void board_recover(struct board *b, uint32_t step, int dead) {
    for (int i = 0; i < b->n_slots; i++) recover_slot(b, step, i, dead);
    claim_forget(b->all, b->n_all, dead);
}
