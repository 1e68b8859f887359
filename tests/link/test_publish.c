/* SPDX-License-Identifier: Apache-2.0
 * When a mover publishes what arrives: the second of two hosts, which have a lane each, without a
 * link. The test is the other host and the threads. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "ferry/sums.h"

#define BUCKETS 3
#define NUMBERS 300
#define FERRY 1 /* the mover's number on the boards; that of the thread is 0 */
#define SLOTS 8
#define ROOT 2

static struct lane_tree tree;
static struct transfers plan;
static struct sums_bucket bucket[BUCKETS];
static struct view_sums sums[BUCKETS];
static _Atomic uint8_t mine[2];
static uint8_t keeps[3];
static struct mover *mover;

/* leg: by bucket, as in struct view_sums. */
static void begin(enum path path, const int *leg) {
    static const int of_hosts[] = {0, 1, 2};
    const enum path by[BUCKETS] = {path, path, path};
    const struct transfer_share share = {.hosts = 2, .begin = of_hosts, .buckets = BUCKETS,
                                         .path = by};
    assert_int_equal(lane_tree_make(2, 0, &tree), TRI_OK);
    assert_int_equal(transfers_make(&tree, &share, &plan), TRI_OK);
    transfers_operands(&tree, 2, of_hosts, NULL, keeps);
    atomic_store(&mine[0], BOARD_OTHERS);
    atomic_store(&mine[1], BOARD_MINE);
    for (int b = 0; b < BUCKETS; b++) {
        const struct sums_memory m = {.tree = &tree, .keeps = keeps, .mine = mine,
                                      .numbers = NUMBERS, .threads = 1, .slots = SLOTS};
        assert_int_equal(sums_bucket_make(&m, &bucket[b]), TRI_OK);
        sums[b] = bucket[b].view;
        sums[b].leg = leg[b];
    }
    const struct mover_step step = {.epoch = 1, .step = 1, .phase = {{0}, {&tree, &plan, sums}}};
    assert_int_equal(mover_open(1, 2, FERRY, &mover), TRI_OK);
    assert_int_equal(mover_begin(mover, &step), TRI_OK);
}

/* No slot is taken any more, but those of results. */
static void end(void) {
    mover_stop(mover);
    mover_close(mover);
    for (int b = 0; b < BUCKETS; b++) {
        board_clear(&bucket[b].board);
        for (int i = 0; i < SLOTS; i++)
            assert_int_equal(claim_read(&bucket[b].slot[i]).state, CLAIM_FREE);
        sums_bucket_free(&bucket[b]);
    }
    transfers_free(&plan);
    lane_tree_free(&tree);
}

/* ---- what happens ---- */

static bool is_done(int b, int node) { return board_is_done(&bucket[b].board, 1, node); }

static struct link_header header_of(const struct transfer *x) {
    const struct wire_part whole = {.n = NUMBERS};
    const struct wire_map m = {.part = &whole, .n = 1};
    uint64_t first, n;
    wire_chunk(&m, x->chunk, plan.chunks[x->bucket], &first, &n);
    return (struct link_header){.epoch = 1, .step = 1, .kind = LINK_SUM, .part = 1,
                                .item = (uint32_t)x->bucket, .node = (uint32_t)x->node,
                                .offset = (uint64_t)x->chunk, .length = wire_bytes(&m, first, n)};
}

static void announce(const struct link_header *h) {
    void *at = mover_where(mover, 0, h);
    assert_true(at && at != LINK_LATER);
    memset(at, 0, h->length);
}

static bool arrive(const struct link_header *h) {
    const struct link_event e = {.what = LINK_ARRIVED, .host = 0, .header = *h};
    bool published = false;
    assert_int_equal(mover_take(mover, &e, &published), TRI_OK);
    return published;
}

/* All that comes to this host of a bucket. Returns whether the mover has published something. */
static bool all_arrive(int b) {
    bool published = false;
    for (int i = 0; i < plan.n; i++) {
        if (plan.all[i].to != 1 || plan.all[i].bucket != b) continue;
        const struct link_header h = header_of(&plan.all[i]);
        announce(&h);
        published |= arrive(&h);
    }
    return published;
}

static void compute(int b, int node) {
    struct board *board = &bucket[b].board;
    assert_true(board_publish(board, 1, 0, node, board_take(board, 1, 0, node)));
}

/* ---- cases ---- */

static const int one_leg[] = {-1, -1, 0}, two_legs[] = {0, -1, 1};

static void the_last_bucket_waits(void **state) {
    (void)state;
    begin(PATH_EXCHANGE, one_leg);
    assert_false(all_arrive(2));
    assert_false(is_done(2, 0));
    assert_true(all_arrive(0));
    assert_true(is_done(0, 0) && !is_done(2, 0));
    assert_true(all_arrive(1));
    assert_true(is_done(1, 0) && is_done(2, 0));
    end();
}

/* Of the first one, which the second leg needs. */
static void earlier_legs_wait_for_later_ones(void **state) {
    (void)state;
    begin(PATH_EXCHANGE, two_legs);
    assert_false(all_arrive(0));
    assert_false(all_arrive(2));
    assert_true(all_arrive(1));
    for (int b = 0; b < BUCKETS; b++) assert_true(is_done(b, 0));
    end();
}

static void roots_wait_too(void **state) {
    static const enum path path[] = {PATH_RING, PATH_BUTTERFLY, PATH_ROOT};
    (void)state;
    for (int i = 0; i < (int)COUNT(path); i++) {
        bool published = false;
        begin(path[i], one_leg);
        for (int b = 0; b < BUCKETS; b++) compute(b, 1);
        assert_int_equal(mover_send(mover, &published), TRI_OK);
        all_arrive(2);
        all_arrive(0);
        assert_true(is_done(0, ROOT) && !is_done(2, ROOT));
        all_arrive(1);
        assert_true(is_done(1, ROOT) && is_done(2, ROOT));
        assert_true(mover_has_all(mover));
        end();
    }
}

/* The rest has been computed again here, as an earlier epoch asked. */
static void threads_end_a_wait(void **state) {
    bool published = false;
    (void)state;
    begin(PATH_EXCHANGE, one_leg);
    for (int b = 0; b < BUCKETS; b++) compute(b, 1);
    assert_false(all_arrive(2));
    compute(0, 0);
    assert_false(mover_can_send(mover));
    compute(1, 0);
    assert_true(mover_can_send(mover));
    assert_int_equal(mover_send(mover, &published), TRI_OK);
    assert_true(published && is_done(2, 0) && mover_has_all(mover));
    end();
}

static void no_step_ends_while_a_sum_arrives(void **state) {
    (void)state;
    begin(PATH_EXCHANGE, one_leg);
    for (int b = 0; b < BUCKETS; b++) compute(b, 1);
    const struct link_header h = header_of(&(struct transfer){.bucket = 0, .node = 0});
    announce(&h);
    for (int b = 0; b < BUCKETS; b++) compute(b, 0);
    assert_false(mover_has_all(mover));
    arrive(&h);
    assert_true(mover_has_all(mover));
    end();
}

static void unknown_sums(void **state) {
    begin(PATH_EXCHANGE, one_leg);
    const struct link_header right = header_of(&(struct transfer){.bucket = 0, .node = 0});
    struct link_header wrong[] = {right, right, right, right, right, right, right};
    (void)state;
    wrong[0].length--;
    wrong[1].format = 1;
    wrong[2].node = 1;
    wrong[3].node = 3;
    wrong[4].item = BUCKETS;
    wrong[5].offset = 1;
    wrong[6].part = 0;
    for (int i = 0; i < (int)COUNT(wrong); i++) {
        assert_null(mover_where(mover, 0, &wrong[i]));
        assert_int_equal(mover_wrong(mover), 0);
        assert_int_equal(mover_wrong(mover), -1);
    }
    struct link_header before = right;
    before.step = 0;
    assert_null(mover_where(mover, 0, &before));
    assert_int_equal(mover_wrong(mover), -1);
    announce(&right);
    assert_null(mover_where(mover, 0, &right)); /* twice */
    assert_int_equal(mover_wrong(mover), 0);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_bucket_waits),
        cmocka_unit_test(earlier_legs_wait_for_later_ones),
        cmocka_unit_test(roots_wait_too),
        cmocka_unit_test(threads_end_a_wait),
        cmocka_unit_test(no_step_ends_while_a_sum_arrives),
        cmocka_unit_test(unknown_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
