/* SPDX-License-Identifier: Apache-2.0
 * The lane board under the model checker: which sizes, and how threads proceed (board_model.h). */
#include "board_model.h"

/* The protocol, whatever order threads do things in. */
static void any_order(void **state) {
    (void)state;
    static const struct manner how = {ANY_ORDER, true, 0, 0};
    static const struct setup few[] = {
        /* lanes, threads, levels, deaths, pauses, steps, twice, failing, other */
        {1, 2, 0, 1, 2, 2, true, 0, 0},  {2, 1, 0, -1, 2, 2, false, 0, 0},
        {2, 2, 0, 1, 1, 2, false, 0, 0}, {2, 2, 0, 1, 1, 1, true, 0, 0},
        {2, 2, 1, 1, 1, 1, true, 0, 0},  {2, 3, 0, 0, 0, 2, true, 0, 0},
        {2, 2, 0, 0, 2, 2, false, 0, 0}, {3, 2, 0, -1, 0, 2, false, 0, 0},
        {3, 2, 1, 1, 1, 1, false, 0, 0}, {3, 2, 0, 1, 0, 1, true, 0, 0},
        {3, 3, 0, 1, 0, 1, false, 0, 0}, {4, 2, 0, 2, 0, 1, false, 0, 0},
        {5, 2, 0, 1, 0, 1, false, 0, 0}, {6, 2, 1, 1, 0, 1, false, 0, 0},
        {8, 1, 2, -1, 1, 1, false, 0, 0}};
    static const struct setup more[] = {
        {1, 2, 0, 2, 2, 2, true, 0, 0},  {2, 2, 0, 2, 1, 2, true, 0, 0},
        {2, 2, 0, 2, 2, 2, false, 0, 0}, {2, 2, 0, 1, 2, 1, true, 0, 0},
        {2, 3, 0, 1, 0, 2, true, 0, 0},  {2, 3, 0, 1, 1, 1, false, 0, 0},
        {3, 2, 0, 1, 1, 1, true, 0, 0},  {3, 2, 0, 0, 2, 1, false, 0, 0},
        {3, 3, 0, 0, 1, 1, false, 0, 0}, {4, 2, 0, 1, 1, 1, false, 0, 0},
        {4, 3, 0, 0, 0, 1, false, 0, 0}, {6, 2, 0, 2, 0, 1, false, 0, 0},
        {8, 2, 1, 1, 0, 1, false, 0, 0}, {8, 1, 0, -1, 2, 2, false, 0, 0}};
    search_all(few, COUNT(few), &how);
    if (all()) search_all(more, COUNT(more), &how);
}

/* Threads are late for a step that is over: one with a lane that another had computed too, one
 * with the operands of the last sum to release, while a third has begun the next step. */
static void late(void **state) {
    (void)state;
    static const struct manner how = {DRAWS_FIRST, true, PUBLISH, 1},
                               any = {DRAWS_FIRST, true, 0, 0};
    static const struct setup is = {2, 3, 0, 0, 1, 2, true, 0, 0};
    search_all(&is, 1, all() ? &any : &how);
}

/* Steps of two shapes take turns: threads are late for a step of the other shape, or of their
 * own when another was between; recovery from a death uses the board of the step that is open. */
static void shapes(void **state) {
    (void)state;
    static const struct manner any = {ANY_ORDER, true, 0, 0},
                               late = {DRAWS_FIRST, true, PUBLISH, 1};
    static const struct setup few[] = {
        {1, 2, 0, 1, 1, 3, false, 0, 2},  {1, 2, 0, 1, 0, 3, true, 0, 2},
        {2, 1, 0, -1, 1, 3, false, 0, 3}, {2, 2, 0, 1, 1, 2, false, 0, 1},
        {2, 2, 0, 1, 0, 3, false, 0, 2},  {3, 2, 1, 1, 0, 2, false, 0, 2},
        {1, 2, 0, 1, 0, 2, true, 0, 3}};
    static const struct setup last[] = {{2, 3, 0, 0, 1, 2, true, 0, 1}};
    static const struct setup more[] = {
        {1, 2, 0, 1, 1, 3, true, 0, 2},  {1, 2, 0, 2, 2, 3, true, 0, 1},
        {2, 2, 0, 1, 1, 3, false, 0, 2}, {1, 2, 0, 2, 1, 4, false, 0, 2},
        {3, 2, 0, 1, 1, 2, false, 0, 2}, {2, 3, 0, 1, 0, 2, false, 0, 3},
        {4, 2, 1, 1, 0, 2, false, 0, 3}, {1, 2, 0, 1, 0, 2, true, 0, 5}};
    static const struct setup more_late[] = {{1, 3, 0, 0, 1, 3, true, 0, 2}};
    search_all(few, COUNT(few), &any);
    search_all(last, COUNT(last), &late);
    if (!all()) return;
    search_all(more, COUNT(more), &any);
    search_all(more_late, COUNT(more_late), &late);
}

static void failing(void **state) {
    (void)state;
    static const struct manner how = {ANY_ORDER, true, 0, 0};
    static const struct setup few[] = {
        {1, 2, 0, 1, 1, 1, true, 1, 0},  {2, 2, 0, 1, 1, 1, true, 2, 0},
        {3, 2, 0, 1, 1, 1, false, 6, 0}, {4, 2, 0, 1, 0, 1, true, 5, 0}};
    search_all(few, COUNT(few), &how);
}

/* Few slots suffice where threads claim orphans before lanes. */
static void enough_slots(void **state) {
    (void)state;
    static const struct manner how = {ORPHANS_FIRST, false, 0, 0};
    static const int most[2][MOST_THREADS] = {{8, 6, 3}, {8, 8, 4}};
    for (int threads = 1; threads <= MOST_THREADS; threads++)
        for (int lanes = 1; lanes <= most[all()][threads - 1]; lanes++)
            for (int levels = 0; levels <= 2; levels++) {
                struct setup is = {
                    .lanes = lanes, .threads = threads, .levels = levels, .steps = 1};
                is.twice = threads == 2 && lanes < 4;
                is.deaths = threads == 1 ? -1 : lanes < 6 || all();
                is.pauses = threads == 1 ? 2 : threads == 2 && lanes < (all() ? 5 : 4);
                search_all(&is, 1, &how);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_order), cmocka_unit_test(late),
                                       cmocka_unit_test(shapes), cmocka_unit_test(failing),
                                       cmocka_unit_test(enough_slots)};
    return cmocka_run_group_tests_name("board", tests, NULL, NULL);
}
