/* SPDX-License-Identifier: Apache-2.0
 * The lane board under real threads: they compute, die after writes and are recovered from, at
 * random; the model checker of test_board.c tries all orders of smaller sizes. Steps are of one
 * shape, or of two that take turns. BOARD_ALL=1 takes longer. */
#include <pthread.h>
#include <sched.h>

#include "accesses.h"

#include "crew/board.c"

_Noreturn static void broken(const char *what) {
    fprintf(stderr, "broken: %s\n", what);
    abort();
}

#define CREW 8
#define WORDS 16

#define SHAPES 2

struct crew {
    struct lane_tree tree[SHAPES];
    struct board board[SHAPES]; /* they share their words */
    int shapes;
    uint64_t (*value)[WORDS]; /* by slot */
    _Atomic uint32_t step;
    atomic_bool over;
    atomic_int dead[CREW]; /* waits to be recovered from */
    atomic_long deaths, twice, not_first;
    int threads;
};

struct member {
    struct crew *crew;
    int thread;
    uint64_t seed;
};

static struct board *board_of(struct crew *c, uint32_t step) {
    return &c->board[(step + 1) % (uint32_t)c->shapes];
}

static _Thread_local uint64_t dice; /* 0: a thread that does not roll */

static unsigned roll(unsigned sides) {
    dice = mix(dice + 1, 0x94d049bb133111ebu);
    return (unsigned)(dice >> 33) % sides;
}

/* Before every access of a thread to a word. */
static void shake(void) {
    if (dice && !roll(64)) sched_yield();
}

static uint64_t lane_value(uint32_t step, int lane, int word) {
    return mix(mix(step, (uint64_t)lane), (uint64_t)word);
}

/* Left and right are not the same. */
static uint64_t sum_value(uint64_t left, uint64_t right) { return mix(left, 2 * right + 1); }

static uint64_t right_value(const struct lane_tree *t, uint32_t step, int node, int word) {
    const struct lane_node *n = &t->node[node];
    if (n->left < 0) return lane_value(step, node, word);
    return sum_value(right_value(t, step, n->left, word), right_value(t, step, n->right, word));
}

/* A thread may die while it computes, too. */
static void fill(struct crew *c, uint32_t step, int node, int slot, int left, int right) {
    bool sum = board_of(c, step)->tree->node[node].left >= 0;
    for (int i = 0; i < WORDS; i++) {
        c->value[slot][i] = sum ? sum_value(c->value[left][i], c->value[right][i])
                                : lane_value(step, node, i);
        shake();
    }
    if (!roll(100)) longjmp(call.out, DIED);
}

/* Computes a node, and then the sums above it whose other operand is done. */
static void make_node(struct member *r, uint32_t step, int node) {
    struct crew *c = r->crew;
    struct board *b = board_of(c, step);
    while (node >= 0) {
        const struct lane_node *n = &b->tree->node[node];
        int left = n->left < 0 ? 0 : board_slot_of(b, n->left);
        int right = n->left < 0 ? 0 : board_slot_of(b, n->right);
        int slot = board_take(b, step, r->thread, node);
        fill(c, step, node, slot, left, right);
        bool first = board_publish(b, step, r->thread, node, slot);
        c->not_first += !first;
        if (!first) return;
        node = board_meet(b, step, r->thread, node);
    }
}

static void make_twice(struct member *r, uint32_t step) {
    const struct board *b = board_of(r->crew, step);
    int lane = (int)roll((unsigned)b->tree->lanes);
    struct claim c = claim_read(&b->node[lane]);
    if (c.step != step || c.state != CLAIM_TAKEN || c.owner == r->thread) return;
    r->crew->twice++;
    make_node(r, step, lane);
}

static void take_part(struct member *r) {
    struct crew *c = r->crew;
    while (!c->over) {
        uint32_t step = c->step;
        struct board *b = board_of(c, step);
        int node = roll(2) ? board_orphan(b, step, r->thread) : -1;
        if (node < 0) node = board_claim_lane(b, step, r->thread);
        if (node < 0) node = board_orphan(b, step, r->thread);
        if (node >= 0) make_node(r, step, node);
        else if (!roll(8)) make_twice(r, step);
        else sched_yield();
    }
}

static void *member_main(void *arg) {
    struct member *r = arg;
    dice = r->seed;
    while (!r->crew->over) {
        call = (struct call){.die = 1 + (int)roll(200)};
        if (!setjmp(call.out)) {
            take_part(r);
            continue;
        }
        r->crew->deaths++;
        r->crew->dead[r->thread] = 1;
        while (r->crew->dead[r->thread] && !r->crew->over) sched_yield();
    }
    return NULL;
}

/* Repeats something that may be interrupted until it is done. */
static void insist(void (*what)(struct crew *, int), struct crew *c, int thread) {
    for (;;) {
        call = (struct call){.die = roll(3) ? 0 : 1 + (int)roll(6)};
        if (setjmp(call.out)) continue;
        what(c, thread);
        return;
    }
}

static void recover(struct crew *c, int thread) {
    uint32_t open = c->step;
    board_recover(board_of(c, open), open, thread);
}
/* For the next step. */
static void clear(struct crew *c, int thread) {
    (void)thread;
    board_clear(board_of(c, c->step + 1));
}

static void *recoverer_main(void *arg) {
    struct member *r = arg;
    struct crew *c = r->crew;
    dice = r->seed;
    while (!c->over) {
        for (int i = 0; i < c->threads; i++) {
            if (!c->dead[i]) continue;
            insist(recover, c, i);
            c->dead[i] = 0;
        }
        sched_yield();
    }
    return NULL;
}

/* Opens and checks steps; returns how many words are wrong. */
static int lead(struct crew *c, uint32_t steps) {
    int wrong = 0, failed;
    for (uint32_t step = 1; step <= steps; step++) {
        struct board *b = board_of(c, step);
        const struct lane_tree *t = b->tree;
        while (!board_complete(b, step, &failed)) sched_yield();
        for (int i = 0; i < t->n_tops; i++)
            for (int k = 0; k < WORDS; k++)
                wrong += c->value[board_slot_of(b, t->top[i])][k] !=
                         right_value(t, step, t->top[i], k);
        insist(clear, c, 0);
        c->step++;
    }
    c->over = true;
    return wrong;
}

static int slots_held(struct crew *c) {
    int held = 0;
    for (int i = 0; i < c->board->n_slots; i++)
        held += claim_read(&c->board->slot[i]).state == CLAIM_TAKEN;
    return held;
}

/* lanes: of odd steps, of even ones; 0: these are no different. The words of all boards and the
 * slots' values. */
static void *make_boards(struct crew *c, const int lanes[SHAPES], int levels) {
    int nodes = 0, slots = 0, first = 0;
    for (; c->shapes < SHAPES && lanes[c->shapes]; c->shapes++) {
        assert_int_equal(lane_tree_make(lanes[c->shapes], levels, &c->tree[c->shapes]), TRI_OK);
        nodes += c->tree[c->shapes].n_nodes;
        if (slots < lanes[c->shapes] + c->threads + 1) slots = lanes[c->shapes] + c->threads + 1;
    }
    claim_word *memory = calloc((size_t)(nodes + slots), sizeof *memory);
    c->value = calloc((size_t)slots, sizeof *c->value);
    assert_true(memory && c->value);
    const struct board_words words = {memory, memory + nodes, nodes, slots};
    for (int i = 0; i < c->shapes; first += c->tree[i++].n_nodes)
        board_bind(&c->board[i], &c->tree[i], &words, first, c->threads);
    return memory;
}

static void run_crew(int lanes, int other, int threads, int levels, uint32_t steps) {
    struct crew c = {.threads = threads, .step = 1};
    struct member member[CREW + 1];
    pthread_t started[CREW + 1];
    void *memory = make_boards(&c, (const int[SHAPES]){lanes, other}, levels);
    dice = 1;
    for (int i = 0; i <= threads; i++) {
        member[i] = (struct member){&c, i, 77 + (uint64_t)(steps + (uint32_t)i)};
        void *(*what)(void *) = i < threads ? member_main : recoverer_main;
        assert_int_equal(pthread_create(&started[i], NULL, what, &member[i]), 0);
    }
    int wrong = lead(&c, steps);
    for (int i = 0; i <= threads; i++) pthread_join(started[i], NULL);
    for (int i = 0; i < threads; i++) insist(recover, &c, i);
    insist(clear, &c, 0);
    if (getenv("BOARD_SAY"))
        fprintf(stderr,
                "%d lanes (%d in even steps), %d threads, %u steps: %ld deaths, %ld lanes twice, "
                "%ld not first\n",
                lanes, other ? other : lanes, threads, steps, c.deaths, c.twice, c.not_first);
    assert_int_equal(wrong, 0);
    assert_int_equal(slots_held(&c), 0);
    dice = 0;
    free(memory);
    free(c.value);
    for (int i = 0; i < c.shapes; i++) lane_tree_free(&c.tree[i]);
}

static void threads(void **state) {
    (void)state;
    uint32_t times = all() ? 20 : 1;
    claim_point = point_reached;
    run_crew(1, 0, 2, 0, 1000 * times);
    run_crew(6, 0, 2, 0, 1500 * times);
    run_crew(8, 0, 3, 1, 1000 * times);
    run_crew(7, 0, 5, 0, 1000 * times);
    run_crew(13, 0, 8, 2, 500 * times);
    run_crew(2, 1, 2, 0, 1500 * times);
    run_crew(6, 3, 3, 0, 1500 * times);
    run_crew(5, 8, 5, 1, 800 * times);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads)};
    return cmocka_run_group_tests_name("board_threads", tests, NULL, NULL);
}
