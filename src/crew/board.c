/* SPDX-License-Identifier: Apache-2.0 */
#include "crew/board.h"

#ifdef TRIREME_POINTS
void (*board_point)(const char *where);
#endif

/* ---- words ---- */

#define STATE_SHIFT 29
#define HAND_SHIFT 16

uint64_t board_pack(struct board_word w) {
    return (uint64_t)w.step << 32 | (uint64_t)w.state << STATE_SHIFT |
           (uint64_t)(unsigned)w.thread << HAND_SHIFT | (uint64_t)(unsigned)w.argument;
}

struct board_word board_unpack(uint64_t p) {
    return (struct board_word){(uint32_t)(p >> 32), (enum board_state)(p >> STATE_SHIFT & 7),
                               (int)(p >> HAND_SHIFT & 8191), (int)(p & 65535)};
}

struct board_word board_read(board_cell *cell, uint32_t step, uint64_t *packed, bool *late) {
    *packed = atomic_load(cell);
    struct board_word w = board_unpack(*packed);
    int32_t ahead = (int32_t)(w.step - step);
    *late = ahead > 0;
    return ahead < 0 ? (struct board_word){.step = step} : w;
}

static struct board_word node_word(struct board *b, uint32_t step, int node) {
    uint64_t packed;
    bool late;
    struct board_word w = board_read(&b->node[node], step, &packed, &late);
    /* A later step has begun: to who is still at this one everything is done. */
    if (late) w = (struct board_word){step, BOARD_DONE, 0, 0};
    return w;
}

static bool swap(board_cell *cell, uint64_t from, struct board_word to, const char *where) {
    bool done = atomic_compare_exchange_strong(cell, &from, board_pack(to));
    if (done) BOARD_POINT(where);
    (void)where;
    return done;
}

/* ---- making ---- */

size_t board_bytes(int nodes, int slots) {
    return sizeof(board_cell) * ((size_t)nodes + (size_t)slots);
}

void board_bind_shape(struct board *b, const struct lane_tree *tree, int first, int nodes, int slots, void *memory) {
    *b = (struct board){.tree = tree, .n_slots = slots, .first = first, .n_all = nodes, .all = memory};
    b->node = memory ? b->all + first : NULL;
    b->slot = memory ? b->all + nodes : NULL;
}

void board_bind(struct board *b, const struct lane_tree *tree, int slots, void *memory) {
    board_bind_shape(b, tree, 0, tree->n_nodes, slots, memory);
}

/* The longest way from a lane up to its top. */
static int height(const struct lane_tree *tree) {
    int most = 0;
    for (int i = 0; i < tree->lanes; i++) {
        int h = 0, n = i;
        for (; n >= 0 && tree->node[n].top < 0; h++) n = tree->node[n].parent;
        if (n >= 0 && h > most) most = h;
    }
    return most;
}

/* lanes + hands are enough in any order and with any deaths: beside a slot for each lane below it a hand
 * holds at most one more. Where hands sum what others have left before they draw, fewer are: on each
 * level a hand leaves a sum waiting at either end of its block and at the far end of another's.
 * test_board tries all orders for small numbers. The last slot is for lanes that are computed twice. */
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

/* ---- drawing ---- */

static bool claim(struct board *b, uint32_t step, int thread, int node) {
    uint64_t packed;
    bool late;
    struct board_word w = board_read(&b->node[node], step, &packed, &late);
    if (late || w.state != BOARD_FREE) return false;
    return swap(&b->node[node], packed, (struct board_word){step, BOARD_CLAIMED, thread, 0}, "claim");
}

static int block_begin(const struct board *b, int rank, int ranks) {
    return (int)((int64_t)b->tree->lanes * rank / ranks);
}

static bool is_free(struct board *b, uint32_t step, int node) {
    return node_word(b, step, node).state == BOARD_FREE;
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

int board_draw(struct board *b, uint32_t step, int thread, int rank, int ranks) {
    if (rank >= 0 && rank < ranks)
        for (int i = block_begin(b, rank, ranks); i < block_begin(b, rank + 1, ranks); i++)
            if (claim(b, step, thread, i)) return i;
    for (int r; (r = busiest(b, step, ranks)) >= 0;)
        for (int i = block_begin(b, r + 1, ranks); i-- > block_begin(b, r, ranks);)
            if (claim(b, step, thread, i)) return i;
    return -1;
}

int board_left(struct board *b, uint32_t step) {
    int left = 0;
    for (int i = 0; i < b->tree->lanes; i++) left += is_free(b, step, i);
    return left;
}

static bool is_done(struct board *b, uint32_t step, int node) {
    return node_word(b, step, node).state == BOARD_DONE;
}

/* A sum that is made before it is used: below the tops, or a top itself. */
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
        if (is_orphan(b, step, i) && claim(b, step, thread, i)) return i;
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
    return claim(b, step, thread, n->parent) ? n->parent : -1;
}

/* ---- slots ---- */

static struct board_word held_for(const struct board *b, uint32_t step, int thread, int node) {
    return (struct board_word){step, BOARD_CLAIMED, thread, b->first + node};
}

int board_take(struct board *b, uint32_t step, int thread, int node) {
    for (;;) {
        bool raced = false;
        for (int i = 0; i < b->n_slots - 1; i++) {
            uint64_t packed = atomic_load(&b->slot[i]);
            if (board_unpack(packed).state != BOARD_FREE) continue;
            if (swap(&b->slot[i], packed, held_for(b, step, thread, node), "take")) return i;
            raced = true;
        }
        CHECK(raced); /* board_slots are enough */
    }
}

int board_spare(struct board *b, uint32_t step, int thread, int node) {
    int last = b->n_slots - 1;
    uint64_t packed = atomic_load(&b->slot[last]);
    bool free = board_unpack(packed).state == BOARD_FREE;
    return free && swap(&b->slot[last], packed, held_for(b, step, thread, node), "take") ? last : -1;
}

static void give_back(struct board *b, int slot, struct board_word held) {
    swap(&b->slot[slot], board_pack(held), (struct board_word){held.step, BOARD_FREE, 0, 0},
         "give back");
}

void board_drop(struct board *b, uint32_t step, int thread, int node, int slot) {
    give_back(b, slot, held_for(b, step, thread, node));
}

/* Of a sum that is there the operands are needed no more. Only a slot that is held for the very
 * operand is given back: another may have done so and a third have taken it since. */
static void release_operand(struct board *b, uint32_t step, int node) {
    uint64_t packed;
    bool late;
    struct board_word w = board_read(&b->node[node], step, &packed, &late);
    if (late || w.state != BOARD_DONE) return; /* late: board_clear has given it back */
    struct board_word held = board_unpack(atomic_load(&b->slot[w.argument]));
    if (held.state == BOARD_CLAIMED && held.step == step && held.argument == b->first + node &&
        held.thread == w.thread)
        give_back(b, w.argument, held);
}

static bool settle(struct board *b, uint32_t step, int owner, int node, struct board_word to) {
    uint64_t from = board_pack((struct board_word){step, BOARD_CLAIMED, owner, 0});
    return swap(&b->node[node], from, to, "publish");
}

static bool publish(struct board *b, uint32_t step, int owner, int thread, int node, int slot) {
    if (!settle(b, step, owner, node, (struct board_word){step, BOARD_DONE, thread, slot})) {
        board_drop(b, step, thread, node, slot);
        return false;
    }
    const struct lane_node *n = &b->tree->node[node];
    if (n->left >= 0) {
        release_operand(b, step, n->left);
        release_operand(b, step, n->right);
    }
    return true;
}

bool board_publish(struct board *b, uint32_t step, int thread, int node, int slot) {
    return publish(b, step, thread, thread, node, slot);
}

bool board_publish_for(struct board *b, uint32_t step, int thread, int node, int slot) {
    struct board_word w = node_word(b, step, node);
    if (w.state == BOARD_CLAIMED) return publish(b, step, w.thread, thread, node, slot);
    board_drop(b, step, thread, node, slot);
    return false;
}

void board_fail(struct board *b, uint32_t step, int thread, int node) {
    settle(b, step, thread, node, (struct board_word){step, BOARD_FAILED, thread, 0});
}

/* ---- looking ---- */

bool board_lost(struct board *b, uint32_t step, int thread, int node) {
    struct board_word w = node_word(b, step, node);
    return w.state == BOARD_DONE && w.thread != thread;
}

bool board_in_flight(struct board *b, uint32_t step, int thread, int node, int *owner) {
    struct board_word w = node_word(b, step, node);
    *owner = w.thread;
    return w.state == BOARD_CLAIMED && w.thread != thread;
}

bool board_complete(struct board *b, uint32_t step, int *failed) {
    bool all = true;
    *failed = -1;
    for (int i = 0; i < b->tree->n_tops && all; i++) all = is_done(b, step, b->tree->top[i]);
    if (all) return true;
    for (int i = b->tree->lanes; i-- > 0;) {
        enum board_state s = node_word(b, step, i).state;
        if (s == BOARD_FREE || s == BOARD_CLAIMED) {
            *failed = -1;
            return false;
        }
        if (s == BOARD_FAILED) *failed = i;
    }
    return false;
}

int board_slot_of(struct board *b, int node) { return board_unpack(atomic_load(&b->node[node])).argument; }

void board_clear(struct board *b) {
    for (int i = 0; i < b->n_slots; i++) {
        struct board_word held = board_unpack(atomic_load(&b->slot[i]));
        if (held.state != BOARD_CLAIMED) continue;
        struct board_word node = board_unpack(atomic_load(&b->all[held.argument]));
        if (node.state == BOARD_DONE && node.step == held.step && node.argument == i &&
            node.thread == held.thread)
            give_back(b, i, held);
    }
}

/* ---- recovery ---- */

/* Held by the dead and not published; or an operand that the dead was about to give back. */
static void recover_slot(struct board *b, uint32_t step, int slot, int dead) {
    struct board_word held = board_unpack(atomic_load(&b->slot[slot]));
    if (held.state != BOARD_CLAIMED) return;
    struct board_word node = board_unpack(atomic_load(&b->all[held.argument]));
    bool published = node.state == BOARD_DONE && node.step == held.step &&
                     node.argument == slot && node.thread == held.thread;
    int own = held.argument - b->first; /* of another shape's step: none of the tree's */
    int parent = own >= 0 && own < b->tree->n_nodes ? b->tree->node[own].parent : -1;
    bool used_up = published && parent >= 0 && held.step == step &&
                   node_word(b, step, parent).state == BOARD_DONE;
    if (published ? used_up : held.thread == dead) give_back(b, slot, held);
}

void board_recover(struct board *b, uint32_t step, int dead) {
    for (int i = 0; i < b->n_slots; i++) recover_slot(b, step, i, dead);
    for (int i = 0; i < b->n_all; i++) {
        uint64_t packed = atomic_load(&b->all[i]);
        struct board_word w = board_unpack(packed);
        if (w.state == BOARD_CLAIMED && w.thread == dead)
            swap(&b->all[i], packed, (struct board_word){w.step, BOARD_FREE, 0, 0}, "recover");
    }
}
