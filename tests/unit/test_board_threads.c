/* SPDX-License-Identifier: Apache-2.0
 * The lane board under real threads: they compute, die after writes and are recovered from, at
 * random; the model checker of test_board.c tries all orders of smaller sizes, with boards that
 * remember nothing of earlier looks. Steps are of one shape, or of two that take turns, with a
 * board for each bucket. SLOW=1 takes longer. */
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
#define BUCKETS 3

struct crew {
    struct lane_tree tree[SHAPES];
    struct board board[SHAPES][BUCKETS]; /* they share their words; lanes are claimed on the last */
    int shapes, buckets;
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

/* The step's boards. */
static struct board *boards_of(struct crew *c, uint32_t step) {
    return c->board[(step + 1) % (uint32_t)c->shapes];
}
static struct board *last_of(struct crew *c, uint32_t step) {
    return boards_of(c, step) + c->buckets - 1;
}

static _Thread_local uint64_t dice; /* 0: a thread that does not roll */

static unsigned roll(unsigned sides) {
    dice = mix(dice + 1, 0x94d049bb133111ebu);
    return (unsigned)(dice >> 33) % sides;
}

static _Thread_local int accesses;

/* Before every access of a thread to a word. */
static void shake(void) {
    accesses++;
    if (dice && !roll(64)) sched_yield();
}

/* first: of its board, so that the buckets' values differ. */
static uint64_t lane_value(int first, uint32_t step, int lane, int word) {
    return mix(mix(step, (uint64_t)(first + lane)), (uint64_t)word);
}

/* Left and right are not the same. */
static uint64_t sum_value(uint64_t left, uint64_t right) { return mix(left, 2 * right + 1); }

static uint64_t right_value(const struct board *b, uint32_t step, int node, int word) {
    const struct lane_node *n = &b->tree->node[node];
    if (n->left < 0) return lane_value(b->first, step, node, word);
    return sum_value(right_value(b, step, n->left, word), right_value(b, step, n->right, word));
}

/* A thread may die while it computes, too. */
static void fill(struct crew *c, struct board *b, uint32_t step, int node, int slot) {
    const struct lane_node *n = &b->tree->node[node];
    int left = n->left < 0 ? 0 : board_slot_of(b, n->left);
    int right = n->left < 0 ? 0 : board_slot_of(b, n->right);
    for (int i = 0; i < WORDS; i++) {
        c->value[slot][i] = n->left < 0 ? lane_value(b->first, step, node, i)
                                        : sum_value(c->value[left][i], c->value[right][i]);
        shake();
    }
    if (!roll(100)) longjmp(call.out, DIED);
}

/* Computes a node into the slot. Returns the sum above it, if it is to be computed now; else -1. */
static int put(struct member *r, struct board *b, uint32_t step, int node, int slot) {
    fill(r->crew, b, step, node, slot);
    if (board_publish(b, step, r->thread, node, slot)) return board_meet(b, step, r->thread, node);
    r->crew->not_first++;
    return -1;
}

static void make_node(struct member *r, struct board *b, uint32_t step, int node) {
    while (node >= 0) node = put(r, b, step, node, board_take(b, step, r->thread, node));
}

static void make_lane(struct member *r, uint32_t step, int lane) {
    struct board *early = boards_of(r->crew, step), *last = last_of(r->crew, step);
    int slot = board_take(last, step, r->thread, lane);
    for (; early < last; early++) make_node(r, early, step, lane);
    make_node(r, last, step, put(r, last, step, lane, slot));
}

static void make_twice(struct member *r, uint32_t step) {
    const struct board *b = last_of(r->crew, step);
    int lane = (int)roll((unsigned)b->tree->lanes);
    struct claim c = claim_read(&b->node[lane]);
    if (c.step != step || c.state != CLAIM_TAKEN || c.owner == r->thread) return;
    r->crew->twice++;
    make_lane(r, step, lane);
}

/* Computes the sums that threads left when they died. */
static bool make_orphan(struct member *r, uint32_t step) {
    struct board *b = boards_of(r->crew, step), *last = last_of(r->crew, step);
    int node = board_orphan(b, step, r->thread);
    while (node < 0 && b < last) node = board_orphan(++b, step, r->thread);
    make_node(r, b, step, node);
    return node >= 0;
}

static void take_part(struct member *r) {
    struct crew *c = r->crew;
    while (!c->over) {
        uint32_t step = c->step;
        if (roll(2) && make_orphan(r, step)) continue;
        int lane = board_claim_lane(last_of(c, step), step, r->thread);
        if (lane >= 0) make_lane(r, step, lane);
        else if (make_orphan(r, step)) continue;
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
    for (int i = 0; i < c->buckets; i++) board_recover(boards_of(c, open) + i, open, thread);
}
/* For the next step. */
static void clear(struct crew *c, int thread) {
    (void)thread;
    board_clear(boards_of(c, c->step + 1));
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

/* Waits until the board's part of the step is complete; returns how many words are wrong. */
static int check_board(struct crew *c, struct board *b, uint32_t step) {
    const struct lane_tree *t = b->tree;
    int wrong = 0, failed;
    while (!board_complete(b, step, &failed)) sched_yield();
    for (int i = 0; i < t->n_tops; i++)
        for (int k = 0; k < WORDS; k++)
            wrong += c->value[board_slot_of(b, t->top[i])][k] != right_value(b, step, t->top[i], k);
    return wrong;
}

/* Opens and checks steps. */
static int lead(struct crew *c, uint32_t steps) {
    int wrong = 0;
    for (uint32_t step = 1; step <= steps; step++) {
        for (int i = 0; i < c->buckets; i++) wrong += check_board(c, boards_of(c, step) + i, step);
        insist(clear, c, 0);
        c->step++;
    }
    c->over = true;
    return wrong;
}

static int slots_held(struct crew *c) {
    int held = 0;
    for (int i = 0; i < c->board[0]->n_slots; i++)
        held += claim_read(&c->board[0]->slot[i]).state == CLAIM_TAKEN;
    return held;
}

/* lanes: of odd steps, of even ones; 0: these are no different. The words of all boards and the
 * slots' values. */
static void *make_boards(struct crew *c, const int lanes[SHAPES], int levels) {
    int nodes = 0, slots = 0, first = 0;
    for (; c->shapes < SHAPES && lanes[c->shapes]; c->shapes++) {
        int enough = c->buckets * lanes[c->shapes] + 2 * c->threads + 1;
        assert_int_equal(lane_tree_make(lanes[c->shapes], levels, &c->tree[c->shapes]), TRI_OK);
        nodes += c->buckets * c->tree[c->shapes].n_nodes;
        if (slots < enough) slots = enough;
    }
    claim_word *memory = calloc((size_t)(nodes + slots), sizeof *memory);
    c->value = calloc((size_t)slots, sizeof *c->value);
    assert_true(memory && c->value);
    const struct board_words words = {memory, memory + nodes, nodes, slots};
    for (int i = 0; i < c->shapes; i++)
        for (int k = 0; k < c->buckets; k++, first += c->tree[i].n_nodes)
            board_bind(&c->board[i][k], &c->tree[i], &words, first, c->threads);
    return memory;
}

static void run_crew(int lanes, int other, int buckets, int threads, int levels, uint32_t steps) {
    struct crew c = {.buckets = buckets, .threads = threads, .step = 1};
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
                "%d lanes (%d in even steps), %d buckets, %d threads, %u steps: %ld deaths, "
                "%ld lanes twice, %ld not first\n",
                lanes, other ? other : lanes, buckets, threads, steps, c.deaths, c.twice,
                c.not_first);
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
    run_crew(1, 0, 1, 2, 0, 1000 * times);
    run_crew(6, 0, 1, 2, 0, 1500 * times);
    run_crew(8, 0, 1, 3, 1, 1000 * times);
    run_crew(7, 0, 1, 5, 0, 1000 * times);
    run_crew(13, 0, 1, 8, 2, 500 * times);
    run_crew(16, 24, 2, 3, 1, 300 * times); /* chunks of several lanes */
    run_crew(2, 1, 1, 2, 0, 1500 * times);
    run_crew(6, 3, 1, 3, 0, 1500 * times);
    run_crew(5, 8, 1, 5, 1, 800 * times);
    run_crew(1, 0, 2, 2, 0, 1000 * times);
    run_crew(6, 0, 2, 3, 0, 1000 * times);
    run_crew(7, 4, 2, 5, 1, 800 * times);
    run_crew(13, 0, 3, 8, 2, 300 * times);
    claim_point = NULL;
}

/* Also when nobody is at work on another chunk: else more lanes than threads could leave a gap, and
 * the slots would not suffice. */
static void a_thread_finishes_its_chunk(void **state) {
    struct crew c = {.buckets = 1, .threads = 2};
    void *memory = make_boards(&c, (const int[SHAPES]){16, 0}, 1);
    struct board *b = c.board[0];
    (void)state;
    assert_int_equal(board_claim_lane(b, 1, 0), 0);
    assert_int_equal(board_claim_lane(b, 1, 1), 8);
    for (int lane = 0; lane < 7; lane++) {
        for (int thread = 0; thread < 2; thread++) {
            int done = lane + 8 * thread, slot = board_take(b, 1, thread, done);
            assert_true(board_publish(b, 1, thread, done, slot));
        }
        assert_int_equal(board_claim_lane(b, 1, 1), lane + 9);
        assert_int_equal(board_claim_lane(b, 1, 0), lane + 1);
    }
    free(memory);
    free(c.value);
    lane_tree_free(&c.tree[0]);
}

/* Every look reports the first lane that failed, also once later looks begin after it. */
static void a_failed_lane_is_remembered(void **state) {
    struct crew c = {.buckets = 1, .threads = 2};
    void *memory = make_boards(&c, (const int[SHAPES]){8, 0}, 1);
    struct board *b = c.board[0];
    (void)state;
    for (int lane = 0, failed; lane < 8; lane++) {
        assert_int_equal(board_claim_lane(b, 1, 0), lane);
        if (lane == 2 || lane == 5) board_fail(b, 1, 0, lane);
        else assert_true(board_publish(b, 1, 0, lane, board_take(b, 1, 0, lane)));
        assert_int_equal(board_left(b, 1, 8), 7 - lane);
        for (int look = 0; look < 2; look++) {
            assert_false(board_complete(b, 1, &failed));
            assert_int_equal(failed, lane < 7 ? -1 : 2);
        }
        assert_false(board_complete(b, 2, &failed));
        assert_int_equal(failed, -1);
    }
    free(memory);
    free(c.value);
    lane_tree_free(&c.tree[0]);
}

/* How many words the look accesses. */
#define COST(look) (accesses = 0, (void)(look), accesses)

/* What a look costs that a waiting thread takes after a change, near the end of a step: it must not
 * grow with the board, but for a sum per level that is not made yet. */
static void looks(void **state) {
    (void)state;
    int left[2] = {0}, complete[2] = {0}, orphan[2] = {0}, levels[2] = {3, 12}, failed;
    for (int i = 0; i < 2; i++) {
        struct crew c = {.buckets = 1, .threads = 2};
        void *memory = make_boards(&c, (const int[SHAPES]){1 << levels[i], 0}, 1);
        struct board *b = c.board[0];
        for (int lane = 0; lane < b->tree->lanes - 2; lane++) {
            assert_int_equal(board_claim_lane(b, 1, 0), lane);
            for (int node = lane; node >= 0; node = board_meet(b, 1, 0, node))
                assert_true(board_publish(b, 1, 0, node, board_take(b, 1, 0, node)));
        }
        assert_true(board_claim_lane(b, 1, 0) >= 0);
        assert_int_equal(board_left(b, 1, 2), 1);
        assert_false(board_has_orphan(b, 1) || board_complete(b, 1, &failed));
        left[i] = COST(board_left(b, 1, 1));
        complete[i] = COST(board_complete(b, 1, &failed));
        orphan[i] = COST(board_has_orphan(b, 1));
        free(memory);
        free(c.value);
        lane_tree_free(&c.tree[0]);
    }
    assert_int_equal(left[0], left[1]);
    assert_int_equal(complete[0], complete[1]);
    assert_true(orphan[1] - orphan[0] <= 3 * (levels[1] - levels[0]));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads), cmocka_unit_test(looks),
                                       cmocka_unit_test(a_failed_lane_is_remembered),
                                       cmocka_unit_test(a_thread_finishes_its_chunk)};
    return cmocka_run_group_tests_name("board_threads", tests, NULL, NULL);
}
