/* SPDX-License-Identifier: Apache-2.0 */
#include "crew/board.h"

/* ---- making ---- */

void board_bind(struct board *b, const struct lane_tree *tree, const struct board_words *words,
                int first, int threads) {
    *b = (struct board){.tree = tree, .first = first, .n_all = words->n_all, .all = words->all,
                        .slot = words->slot, .n_slots = words->n_slots, .chunk = 1};
    b->node = b->all ? b->all + first : NULL;
    while (2 * b->chunk * threads <= tree->lanes) b->chunk *= 2;
}

/* ---- slots that suffice ---- */

/* The most results below `node` that wait to be summed, by the number of lanes that are not done;
 * -1: there are fewer lanes. made: this sum is not left to the step. */
static void waiting(const struct lane_tree *tree, int node, bool made, int holes, int *most) {
    const struct lane_node *n = &tree->node[node];
    int left[BOARD_MOST_HOLES + 1], right[BOARD_MOST_HOLES + 1];
    for (int h = 0; h <= holes; h++) most[h] = n->left < 0 && h < 2 ? 1 - h : -1;
    if (n->left < 0) return;
    made |= n->top >= 0;
    waiting(tree, n->left, made, holes, left);
    waiting(tree, n->right, made, holes, right);
    for (int l = 0; l <= holes && left[l] >= 0; l++)
        for (int r = 0; l + r <= holes && right[r] >= 0; r++)
            if (left[l] + right[r] > most[l + r]) most[l + r] = left[l] + right[r];
    if (made) most[0] = 1;
}

int board_waiting(const struct lane_tree *tree, int threads) {
    int by_holes[BOARD_MOST_HOLES + 1], most = 0;
    int holes = threads < BOARD_MOST_HOLES ? threads : BOARD_MOST_HOLES;
    waiting(tree, tree->n_nodes - 1, false, holes, by_holes);
    for (int h = 0; h <= holes; h++)
        if (by_holes[h] > most) most = by_holes[h];
    return most;
}

int board_held(const struct lane_tree *tree, int threads, int open, bool claims) {
    return tree->n_tops < tree->lanes ? threads * (open + 1) : threads * open - claims;
}

/* ---- claiming ---- */

static bool keeps(const struct board *b, int node) { return b->keeps && b->keeps[node]; }

static struct claim look(struct board *b, uint32_t step, int node) {
    return claim_look(&b->node[node], step);
}

/* A lane of another host is not free here. */
static bool is_free(const struct board *b, const struct claim *c, int node) {
    return c->state == CLAIM_FREE && (!b->mine || node >= b->tree->lanes || b->mine[node]);
}

bool board_claim(struct board *b, uint32_t step, int thread, int node) {
    struct claim c = look(b, step, node);
    return is_free(b, &c, node) && claim_try(&b->node[node], &c, thread);
}

bool board_is_free(struct board *b, uint32_t step, int node) {
    const struct claim c = look(b, step, node);
    return is_free(b, &c, node);
}

/* Once a later step has begun, everything of this one is done. */
bool board_is_done(struct board *b, uint32_t step, int node) {
    enum claim_state s = look(b, step, node).state;
    return s == CLAIM_DONE || s == CLAIM_PASSED;
}

/* A sum that lanes make: a top, or below one. The sums above the tops are the step's. */
static bool is_made(const struct board *b, int node) {
    for (int n = node; n >= 0; n = b->tree->node[n].parent)
        if (b->tree->node[n].top >= 0) return true;
    return false;
}

enum part { LANES, SUMS };

/* The first lane, or the first sum that lanes make, that is not over; if all are, their end.
 * *failed (nullable): a lane before it has failed. So the cost of a look follows from what is at
 * work, not from the size of the board. */
static int first_left(struct board *b, uint32_t step, enum part part, bool *failed) {
    const uint64_t failed_bit = UINT64_C(1) << 31;
    const int begin = part == LANES ? 0 : b->tree->lanes;
    const int end = part == LANES ? b->tree->lanes : b->tree->n_nodes;
    const uint64_t before = atomic_load_explicit(&b->over[part], memory_order_acquire);
    uint64_t over = before >> 32 == step ? before : (uint64_t)step << 32;
    int i = begin + (int)(over & (failed_bit - 1));
    for (; i < end; i++, over++) {
        bool fails = part == LANES && look(b, step, i).state == CLAIM_FAILED;
        if (!fails && !board_is_done(b, step, i) && (part == LANES || is_made(b, i))) break;
        if (fails) over |= failed_bit;
    }
    if (over != before) atomic_store_explicit(&b->over[part], over, memory_order_release);
    if (failed) *failed = over & failed_bit;
    return i;
}

/* Whether a thread computes one of these lanes. */
static bool in_flight(struct board *b, uint32_t step, int first, int end) {
    for (int i = first; i < end; i++)
        if (look(b, step, i).state == CLAIM_TAKEN) return true;
    return false;
}

/* Whether this thread has claimed one of these lanes, which may be done. */
static bool has_begun(struct board *b, uint32_t step, int thread, int first, int end) {
    for (int i = first; i < end; i++) {
        struct claim c = look(b, step, i);
        if (c.state != CLAIM_FREE && c.owner == thread) return true;
    }
    return false;
}

/* The end of the lanes below the node that is kept and has this lane. */
static int end_of_kept(const struct board *b, int lane) {
    int node = lane;
    while (node >= 0 && !keeps(b, node)) node = b->tree->node[node].parent;
    if (node < 0) return lane + 1;
    return lane_tree_last(b->tree, node) + 1;
}

/* A thread stays in a chunk that it has begun as long as a lane there is free. So the lanes that
 * are not done are no more than one gap per thread, on which board_waiting relies. */
static int claim_lane(struct board *b, uint32_t step, int thread, int which) {
    enum { OWN, IDLE, ANY, KINDS };
    const int lanes = b->tree->lanes;
    const int left = first_left(b, step, LANES, NULL);
    const int begin = which == BOARD_AGAIN ? 0 : left / b->chunk * b->chunk;
    for (int kind = OWN; kind < KINDS; kind++)
        for (int first = begin, end; first < lanes; first = end) {
            end = which == BOARD_AGAIN          ? end_of_kept(b, first)
                  : lanes - first < b->chunk ? lanes
                                             : first + b->chunk;
            if (kind == OWN && !has_begun(b, step, thread, first, end)) continue;
            if (kind == IDLE && in_flight(b, step, first, end)) continue;
            for (int i = first; i < end; i++)
                if ((!b->mine || b->mine[i] == which) && board_claim(b, step, thread, i)) return i;
        }
    return -1;
}

int board_claim_lane(struct board *b, uint32_t step, int thread) {
    const int lane = claim_lane(b, step, thread, BOARD_MINE);
    return lane < 0 && b->mine ? claim_lane(b, step, thread, BOARD_AGAIN) : lane;
}

int board_left(struct board *b, uint32_t step, int most) {
    int left = 0;
    for (int i = first_left(b, step, LANES, NULL); i < b->tree->lanes && left < most; i++)
        left += board_is_free(b, step, i);
    return left;
}

static bool is_orphan(struct board *b, uint32_t step, int node) {
    const struct lane_node *n = &b->tree->node[node];
    return is_made(b, node) && board_is_free(b, step, node) && board_is_done(b, step, n->left) &&
           board_is_done(b, step, n->right);
}

int board_orphan(struct board *b, uint32_t step, int thread) {
    for (int i = first_left(b, step, SUMS, NULL); i < b->tree->n_nodes; i++)
        if (is_orphan(b, step, i) && board_claim(b, step, thread, i)) return i;
    return -1;
}

bool board_has_orphan(struct board *b, uint32_t step) {
    for (int i = first_left(b, step, SUMS, NULL); i < b->tree->n_nodes; i++)
        if (is_orphan(b, step, i)) return true;
    return false;
}

int board_meet(struct board *b, uint32_t step, int thread, int node) {
    const struct lane_node *n = &b->tree->node[node];
    if (n->top >= 0 || !board_is_done(b, step, n->sibling)) return -1;
    return board_claim(b, step, thread, n->parent) ? n->parent : -1;
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

/* A thread may have published the node already: it died since, and has claimed the lane again on
 * another board. Its slot must not pass for the result's: it is held as of the step before. */
static int try_take(struct board *b, uint32_t step, int thread, int node) {
    struct claim held = held_for(b, step, thread, node), n = look(b, step, node);
    if (n.state == CLAIM_DONE && n.owner == thread) held.step--;
    for (bool raced = true, free; raced;) {
        raced = false;
        for (int i = 0; i < b->n_slots; i++, raced |= free)
            if (try_slot(b, i, held, &free)) return i;
    }
    return -1;
}

int board_take(struct board *b, uint32_t step, int thread, int node) {
    int slot = try_take(b, step, thread, node);
    CHECK(slot >= 0); /* board_waiting and board_held suffice */
    return slot;
}

/* Whether free slots and those that are held for the earliest lane that is not over are two. */
static bool leaves_room(struct board *b, struct board *lanes, uint32_t step, int lane) {
    int earliest = 0, room = 0;
    while (earliest < lane && board_is_over(lanes, step, earliest)) earliest++;
    for (int i = 0; i < b->n_slots && earliest < lane; i++) {
        struct claim c = claim_read(&b->slot[i]);
        room += c.state == CLAIM_FREE || c.value == b->first + earliest;
    }
    return earliest == lane || room >= 2;
}

int board_take_handed(struct board *b, struct board *lanes, uint32_t step, int thread, int lane,
                      bool repeats) {
    int slot = try_take(b, step, thread, lane);
    if (slot < 0 || !repeats || leaves_room(b, lanes, step, lane)) return slot;
    board_drop(b, step, thread, lane, slot);
    return -1;
}

static void release(struct board *b, int slot, const struct claim *held) {
    claim_publish(&b->slot[slot], held, CLAIM_FREE, 0, 0);
}

void board_drop(struct board *b, uint32_t step, int thread, int node, int slot) {
    struct claim held = held_for(b, step, thread, node);
    release(b, slot, &held);
    held.step--; /* see board_take; one of the two changes nothing */
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

void board_let_go(struct board *b, uint32_t step, struct board *const *reader, int n) {
    for (int lane = 0; lane < b->tree->lanes; lane++) {
        bool over = board_is_done(b, step, lane);
        for (int i = 0; i < n && over; i++) over = board_is_over(reader[i], step, lane);
        if (over) release_operand(b, step, lane);
    }
}

bool board_publish(struct board *b, uint32_t step, int thread, int node, int slot) {
    struct claim c;
    do {
        c = look(b, step, node);
        if (c.state != CLAIM_FREE && c.state != CLAIM_TAKEN) {
            board_drop(b, step, thread, node, slot);
            return false;
        }
    } while (!claim_replace(&b->node[node], &c, CLAIM_DONE, thread, slot));
    const struct lane_node *n = &b->tree->node[node];
    const int operand[] = {n->left, n->right};
    for (int i = 0; i < 2 && n->left >= 0; i++)
        if (!keeps(b, operand[i])) release_operand(b, step, operand[i]);
    return true;
}

/* From above, so that no sum looks as if it could be made. Their words name a slot that is held for
 * another node, so it is not released for them; those of results that lie below are. */
static void end_below(struct board *b, uint32_t step, int thread, int node, int slot) {
    const int below[] = {b->tree->node[node].left, b->tree->node[node].right};
    for (int i = 0; i < 2 && below[0] >= 0; i++) {
        struct claim c;
        do c = look(b, step, below[i]);
        while ((c.state == CLAIM_FREE || c.state == CLAIM_TAKEN) &&
               !claim_replace(&b->node[below[i]], &c, CLAIM_DONE, thread, slot));
        if (!keeps(b, below[i])) release_operand(b, step, below[i]);
        end_below(b, step, thread, below[i], slot);
    }
}

void board_end_below(struct board *b, uint32_t step, int thread, int node) {
    const struct claim c = look(b, step, node);
    if (c.state == CLAIM_DONE) end_below(b, step, thread, node, c.value);
}

bool board_publish_whole(struct board *b, uint32_t step, int thread, int node, int slot) {
    const bool first = board_publish(b, step, thread, node, slot);
    board_end_below(b, step, thread, node); /* also below the result of one that died */
    return first;
}

void board_release(struct board *b, uint32_t step, int thread, int node) {
    const struct claim held = {.step = step, .owner = thread};
    claim_publish(&b->node[node], &held, CLAIM_FREE, 0, 0);
}

void board_fail(struct board *b, uint32_t step, int thread, int node) {
    const struct claim held = {.step = step, .owner = thread};
    claim_publish(&b->node[node], &held, CLAIM_FAILED, thread, 0);
}

/* ---- looking ---- */

bool board_has_failed(struct board *b, uint32_t step, int lane) {
    return look(b, step, lane).state == CLAIM_FAILED;
}

bool board_is_over(struct board *b, uint32_t step, int lane) {
    return board_is_done(b, step, lane) || board_has_failed(b, step, lane);
}

bool board_lost(struct board *b, uint32_t step, int thread, int node) {
    struct claim c = look(b, step, node);
    return c.state == CLAIM_PASSED || (c.state == CLAIM_DONE && c.owner != thread);
}

bool board_in_flight(struct board *b, uint32_t step, int thread, int node, int *owner) {
    struct claim c = look(b, step, node);
    *owner = c.owner;
    return c.state == CLAIM_TAKEN && c.owner != thread;
}

static bool own_are_over(struct board *b, uint32_t step) {
    for (int i = 0; i < b->tree->lanes; i++)
        if (b->mine[i] && !board_is_over(b, step, i)) return false;
    return true;
}

bool board_makes(const struct board *b, int node) {
    return b->mine && b->mine[lane_tree_first(b->tree, node)] != BOARD_OTHERS;
}

bool board_own_are_done(struct board *b, uint32_t step) {
    for (int node = 0; node < b->tree->n_nodes; node++) {
        if (b->keeps[node] && board_makes(b, node) && !board_is_done(b, step, node)) return false;
    }
    return true;
}

bool board_complete(struct board *b, uint32_t step, int *failed) {
    const int lanes = b->tree->lanes;
    bool fails;
    *failed = -1;
    if (first_left(b, step, LANES, &fails) < lanes) {
        /* Of several hosts: the other lanes do not come if one of these has failed. */
        if (!b->mine || !own_are_over(b, step)) return false;
        for (int i = 0; i < lanes && *failed < 0; i++)
            if (board_has_failed(b, step, i)) *failed = i;
        return false;
    }
    for (int i = 0; fails && i < lanes && *failed < 0; i++)
        if (board_has_failed(b, step, i)) *failed = i;
    return *failed < 0 && first_left(b, step, SUMS, NULL) == b->tree->n_nodes;
}

bool board_holds(struct board *b, uint32_t step, int node) {
    const struct claim c = look(b, step, node);
    if (c.state != CLAIM_DONE) return false;
    const struct claim held = claim_read(&b->slot[c.value]);
    return held.state == CLAIM_TAKEN && held.value == b->first + node &&
           is_result(&c, c.value, &held);
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
    bool used_up = published && parent >= 0 && held.step == step && !keeps(b, own) &&
                   board_is_done(b, step, parent);
    if (published ? used_up : held.owner == dead) release(b, slot, &held);
}

void board_recover(struct board *b, uint32_t step, int dead) {
    for (int i = 0; i < b->n_slots; i++) recover_slot(b, step, i, dead);
    claim_forget(b->all, b->n_all, dead);
}
