/* SPDX-License-Identifier: Apache-2.0
 * Everything that the threads of a dead worker had claimed becomes free again, for any shape of the
 * open step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs these headers */
#include <cmocka.h>

#include <stdlib.h>

#include "crew/layout.h"
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
    h->layout.undo = sizeof(claim_word) * (size_t)(tree.n_nodes + slots);
    struct recovery r = {.head = h, .base = calloc(1, h->layout.undo + sizeof(struct undo))};
    assert_non_null(r.base);
    struct board board, *b = r.board[0][0] = &board;
    h->layout.shape[0].tree[0].buckets = 1;
    claim_word *all = (claim_word *)r.base;
    const struct board_words words = {all, all + tree.n_nodes, tree.n_nodes, slots};
    board_bind(b, &tree, &words, 0, 2);
    int slot[2];
    for (int hand = 0; hand < 2; hand++)
        slot[hand] = board_take(b, 1, hand, board_claim_lane(b, 1, hand));
    atomic_store(&h->course.opened, 2);
    recovery_of(&r, 0);
    assert_int_equal(claim_read(&b->slot[slot[0]]).state, CLAIM_FREE);
    assert_int_equal(claim_read(&b->slot[slot[1]]).state, CLAIM_TAKEN);
    lane_tree_free(&tree);
    free(r.base);
    free(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_slot_of_the_step_before)};
    return cmocka_run_group_tests_name("recover", tests, NULL, NULL);
}
