/* SPDX-License-Identifier: Apache-2.0
 * The lane board under real threads: they row, die behind writes and are recovered from, at random; the
 * model checker of test_board.c goes through all orders of less. BOARD_ALL=1 takes longer. */
#include <pthread.h>
#include <sched.h>

#include "board_seen.h"

_Noreturn static void broken(const char *what) {
    fprintf(stderr, "broken: %s\n", what);
    abort();
}

#define CREW 8
#define WORDS 16

struct crew {
    struct lane_tree tree;
    struct board board;
    uint64_t (*value)[WORDS]; /* by slot */
    _Atomic uint32_t step;
    atomic_bool over;
    atomic_int dead[CREW]; /* waits to be recovered from */
    atomic_long deaths, twice, not_first;
    int hands;
};

struct rower {
    struct crew *crew;
    int hand;
    uint64_t seed;
};

static _Thread_local uint64_t dice; /* 0: a thread that does not roll */

static unsigned roll(unsigned sides) {
    dice = mix(dice + 1, 0x94d049bb133111ebu);
    return (unsigned)(dice >> 33) % sides;
}

/* At every access of a thread to a word. */
static void shake(void) {
    if (dice && !roll(64)) sched_yield();
}

static uint64_t lane_value(uint32_t step, int lane, int word) {
    return mix(mix(step, (uint64_t)lane), (uint64_t)word);
}

/* Left and right are not the same. */
static uint64_t sum_value(uint64_t left, uint64_t right) { return mix(left, 2 * right + 1); }

static uint64_t right_value(const struct crew *c, uint32_t step, int node, int word) {
    const struct lane_node *n = &c->tree.node[node];
    if (n->left < 0) return lane_value(step, node, word);
    return sum_value(right_value(c, step, n->left, word), right_value(c, step, n->right, word));
}

/* A hand may die while it computes, too. */
static void fill(struct crew *c, uint32_t step, int node, int slot, int left, int right) {
    bool sum = c->tree.node[node].left >= 0;
    for (int i = 0; i < WORDS; i++) {
        c->value[slot][i] = sum ? sum_value(c->value[left][i], c->value[right][i])
                                : lane_value(step, node, i);
        shake();
    }
    if (!roll(100)) longjmp(call.out, DIED);
}

/* Makes a node, and the sums above whose other operand is there. */
static void make_node(struct rower *r, uint32_t step, int node, bool twice) {
    struct crew *c = r->crew;
    struct board *b = &c->board;
    while (node >= 0) {
        const struct lane_node *n = &c->tree.node[node];
        int left = n->left < 0 ? 0 : board_slot_of(b, n->left);
        int right = n->left < 0 ? 0 : board_slot_of(b, n->right);
        int slot = twice ? board_spare(b, step, r->hand, node) : board_take(b, step, r->hand, node);
        if (slot < 0) return;
        fill(c, step, node, slot, left, right);
        bool first = twice ? board_publish_for(b, step, r->hand, node, slot)
                           : board_publish(b, step, r->hand, node, slot);
        c->not_first += !first;
        if (!first) return;
        twice = false;
        node = board_meet(b, step, r->hand, node);
    }
}

static void make_twice(struct rower *r, uint32_t step) {
    int lane = (int)roll((unsigned)r->crew->tree.lanes);
    struct board_word w = board_unpack(seen_load(&r->crew->board.node[lane]));
    if (w.step != step || w.state != BOARD_CLAIMED || w.hand == r->hand) return;
    r->crew->twice++;
    make_node(r, step, lane, true);
}

static void row(struct rower *r) {
    struct crew *c = r->crew;
    struct board *b = &c->board;
    while (!c->over) {
        uint32_t step = c->step;
        int node = roll(2) ? board_orphan(b, step, r->hand) : -1;
        if (node < 0) node = board_draw(b, step, r->hand, r->hand, c->hands);
        if (node < 0) node = board_orphan(b, step, r->hand);
        if (node >= 0) make_node(r, step, node, false);
        else if (!roll(8)) make_twice(r, step);
        else sched_yield();
    }
}

static void *rower_main(void *arg) {
    struct rower *r = arg;
    dice = r->seed;
    while (!r->crew->over) {
        call = (struct call){.die = 1 + (int)roll(200)};
        if (!setjmp(call.out)) {
            row(r);
            continue;
        }
        r->crew->deaths++;
        r->crew->dead[r->hand] = 1;
        while (r->crew->dead[r->hand] && !r->crew->over) sched_yield();
    }
    return NULL;
}

/* Does something that may be broken off, as often as it is. */
static void insist(void (*what)(struct crew *, int), struct crew *c, int hand) {
    for (;;) {
        call = (struct call){.die = roll(3) ? 0 : 1 + (int)roll(6)};
        if (setjmp(call.out)) continue;
        what(c, hand);
        return;
    }
}

static void recover(struct crew *c, int hand) { board_recover(&c->board, c->step, hand); }
static void clear(struct crew *c, int hand) {
    (void)hand;
    board_clear(&c->board);
}

static void *recoverer_main(void *arg) {
    struct rower *r = arg;
    struct crew *c = r->crew;
    dice = r->seed;
    while (!c->over) {
        for (int i = 0; i < c->hands; i++) {
            if (!c->dead[i]) continue;
            insist(recover, c, i);
            c->dead[i] = 0;
        }
        sched_yield();
    }
    return NULL;
}

/* What steps come to; how many words are wrong. */
static int lead(struct crew *c, uint32_t steps) {
    int wrong = 0, failed;
    for (uint32_t step = 1; step <= steps; step++) {
        while (!board_complete(&c->board, step, &failed)) sched_yield();
        for (int i = 0; i < c->tree.n_tops; i++)
            for (int k = 0; k < WORDS; k++)
                wrong += c->value[board_slot_of(&c->board, c->tree.top[i])][k] !=
                         right_value(c, step, c->tree.top[i], k);
        insist(clear, c, 0);
        c->step++;
    }
    c->over = true;
    return wrong;
}

static int slots_held(struct crew *c) {
    int held = 0;
    for (int i = 0; i < c->board.n_slots; i++)
        held += board_unpack(seen_load(&c->board.slot[i])).state == BOARD_CLAIMED;
    return held;
}

static void run_crew(int lanes, int hands, int levels, uint32_t steps) {
    struct crew c = {.hands = hands, .step = 1};
    struct rower rower[CREW + 1];
    pthread_t thread[CREW + 1];
    assert_int_equal(lane_tree_make(lanes, levels, &c.tree), TRI_OK);
    int slots = lanes + hands + 1;
    void *memory = calloc(1, board_bytes(c.tree.n_nodes, slots));
    c.value = calloc((size_t)slots, sizeof *c.value);
    assert_true(memory && c.value);
    board_bind(&c.board, &c.tree, slots, memory);
    dice = 1;
    for (int i = 0; i <= hands; i++) {
        rower[i] = (struct rower){&c, i, 77 + (uint64_t)(steps + (uint32_t)i)};
        void *(*what)(void *) = i < hands ? rower_main : recoverer_main;
        assert_int_equal(pthread_create(&thread[i], NULL, what, &rower[i]), 0);
    }
    int wrong = lead(&c, steps);
    for (int i = 0; i <= hands; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < hands; i++) insist(recover, &c, i);
    insist(clear, &c, 0);
    if (getenv("BOARD_SAY"))
        fprintf(stderr, "threads: %d lanes, %d hands, %u steps: %ld deaths, %ld lanes twice, %ld not "
                "first\n", lanes, hands, steps, c.deaths, c.twice, c.not_first);
    assert_int_equal(wrong, 0);
    assert_int_equal(slots_held(&c), 0);
    dice = 0;
    free(memory);
    free(c.value);
    lane_tree_free(&c.tree);
}

static void threads(void **state) {
    (void)state;
    uint32_t times = all() ? 20 : 1;
    board_point = point_reached;
    run_crew(1, 2, 0, 1000 * times);
    run_crew(6, 2, 0, 1500 * times);
    run_crew(8, 3, 1, 1000 * times);
    run_crew(7, 5, 0, 1000 * times);
    run_crew(13, 8, 2, 500 * times);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads)};
    return cmocka_run_group_tests_name("board_threads", tests, NULL, NULL);
}
