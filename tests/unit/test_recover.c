/* SPDX-License-Identifier: Apache-2.0
 * Everything that the threads of a dead worker had claimed becomes free again, for any shape of the
 * open step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs these headers */
#include <cmocka.h>

#include <stdlib.h>

#include "launch/recover.h"

/* Steps alternate: the odd ones count something before their lanes, the even ones do not. */
static void a_slot_of_the_step_before(void **state) {
    (void)state;
    struct crew_head *h = calloc(1, sizeof *h);
    struct lane_tree tree;
    assert_non_null(h);
    assert_int_equal(lane_tree_make(4, 0, &tree), TRI_OK);
    int slots = board_waiting(&tree, 2) + board_held(&tree, 2, 1, true);
    h->size.threads = 1;
    h->layout.n_shapes = 2;
    h->course.shape_of[0] = 1;
    const size_t words = sizeof(claim_word) * (size_t)(tree.n_nodes + slots);
    h->layout.region[REGION_UNDO].at = words;
    struct recovery r = {.view = {.head = h, .base = calloc(1, words + sizeof(struct undo))}};
    assert_non_null(r.view.base);
    struct board board, *b = r.view.board[0][0] = &board;
    h->layout.shape[0].tree[0].buckets = 1;
    claim_word *all = (claim_word *)r.view.base;
    const struct board_words where = {all, all + tree.n_nodes, tree.n_nodes, slots};
    board_bind(b, &tree, &where, 0, 2);
    int slot[2];
    for (int hand = 0; hand < 2; hand++)
        slot[hand] = board_take(b, 1, hand, board_claim_lane(b, 1, hand));
    atomic_store(&h->course.opened, 2);
    recovery_of(&r, 0);
    assert_int_equal(claim_read(&b->slot[slot[0]]).state, CLAIM_FREE);
    assert_int_equal(claim_read(&b->slot[slot[1]]).state, CLAIM_TAKEN);
    lane_tree_free(&tree);
    free(r.view.base);
    free(h);
}

/* Sizes that differ, also from what the table says. */
static void size_all(struct crew_head *h) {
    struct region *all = h->layout.region;
    regions_begin(all, &h->size);
    for (int r = 0; r < REGIONS; r++) {
        if (!all[r].n) all[r].n = 4 + r % 3;
        if (!all[r].bytes) all[r].bytes = sizeof(claim_word) * (size_t)(r + 300);
    }
    h->layout.store_bytes = regions_place(all);
}

static void regions_are_apart(void **state) {
    (void)state;
    struct crew_head *h = calloc(1, sizeof *h);
    assert_non_null(h);
    crew_head_begin(h, &(struct crew_size){.workers = 2, .threads = 2});
    size_all(h);
    const struct region *all = h->layout.region;
    assert_int_equal(all[REGION_UNDO].n, 4);
    assert_int_equal(all[REGION_TASKS].bytes, sizeof(claim_word));
    uint64_t end = 0;
    for (int r = 0; r < REGIONS; end = all[r].at + all[r].bytes * (uint64_t)all[r].n, r++) {
        assert_true(all[r].at >= end && all[r].at < end + CREW_PAGE);
        assert_int_equal(all[r].at % CREW_PAGE, 0);
    }
    assert_true(h->layout.store_bytes >= end && h->layout.store_bytes < end + CREW_PAGE);
    free(h);
}

/* Each of the threads 0 to 3 of two workers holds a claim in each region that has some. Worker 0
 * dies. */
static void claims_of_each_region(void **state) {
    (void)state;
    struct crew_head *h = calloc(1, sizeof *h);
    assert_non_null(h);
    crew_head_begin(h, &(struct crew_size){.workers = 2, .threads = 2});
    size_all(h);
    struct recovery r = {.view = {.head = h, .base = calloc(1, h->layout.store_bytes)}};
    assert_non_null(r.view.base);
    const unsigned claims = REGION_BY_THREAD | REGION_BY_WORKER | REGION_BY_READER;
    for (int after = 0; after < 3; after++) {
        if (after == 1) recovery_of(&r, 0);
        if (after == 2) recovery_of_samples(&r, 0);
        for (int k = 0; k < REGIONS; k++) {
            const unsigned how = region_rows[k].how;
            claim_word *word = region_at(h->layout.region, r.view.base, (enum region_number)k, 0);
            for (int i = 0; how & claims && i < 4; i++) {
                struct claim seen = claim_look(&word[i], 1);
                if (!after) assert_true(claim_try(&word[i], &seen, i));
                bool freed = how & REGION_BY_THREAD   ? after >= 1 && i < 2
                             : how & REGION_BY_WORKER ? after >= 1 && i == 0
                                                      : after >= 2 && i == 0;
                assert_int_equal(claim_read(&word[i]).state, freed ? CLAIM_FREE : CLAIM_TAKEN);
            }
        }
    }
    free(r.view.base);
    free(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_slot_of_the_step_before),
                                       cmocka_unit_test(regions_are_apart),
                                       cmocka_unit_test(claims_of_each_region)};
    return cmocka_run_group_tests_name("recover", tests, NULL, NULL);
}
