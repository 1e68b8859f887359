/* SPDX-License-Identifier: Apache-2.0
 * The lane board under the model checker: which sizes, and how threads proceed (board_model.h). */
#include "board_model.h"

/* The protocol, whatever order threads do things in. */
static void any_order(void **state) {
    (void)state;
    static const struct manner how = {ANY_ORDER, true, 0, 0};
    static const struct setup few[] = {
        /* lanes, threads, levels, deaths, pauses, steps, twice, failing, other, buckets */
        {1, 2, 0, 1, 2, 2, true, 0, 0, 1},  {2, 1, 0, -1, 2, 2, false, 0, 0, 1},
        {2, 2, 0, 1, 1, 2, false, 0, 0, 1}, {2, 2, 0, 1, 1, 1, true, 0, 0, 1},
        {2, 2, 1, 1, 1, 1, true, 0, 0, 1},  {2, 3, 0, 0, 0, 2, true, 0, 0, 1},
        {2, 2, 0, 0, 2, 2, false, 0, 0, 1}, {3, 2, 0, -1, 0, 2, false, 0, 0, 1},
        {3, 2, 1, 1, 1, 1, false, 0, 0, 1}, {3, 2, 0, 1, 0, 1, true, 0, 0, 1},
        {3, 3, 0, 1, 0, 1, false, 0, 0, 1}, {4, 2, 0, 2, 0, 1, false, 0, 0, 1},
        {5, 2, 0, 1, 0, 1, false, 0, 0, 1}, {8, 1, 2, -1, 1, 1, false, 0, 0, 1}};
    static const struct setup more[] = {
        {1, 2, 0, 2, 2, 2, true, 0, 0, 1},  {2, 2, 0, 2, 1, 2, true, 0, 0, 1},
        {2, 2, 0, 2, 2, 2, false, 0, 0, 1}, {2, 2, 0, 1, 2, 1, true, 0, 0, 1},
        {2, 3, 0, 1, 0, 2, true, 0, 0, 1},  {2, 3, 0, 1, 1, 1, false, 0, 0, 1},
        {3, 2, 0, 1, 1, 1, true, 0, 0, 1},  {3, 2, 0, 0, 2, 1, false, 0, 0, 1},
        {3, 3, 0, 0, 1, 1, false, 0, 0, 1}, {4, 2, 0, 1, 1, 1, false, 0, 0, 1},
        {4, 3, 0, 0, 0, 1, false, 0, 0, 1}, {6, 2, 0, 2, 0, 1, false, 0, 0, 1},
        {6, 2, 1, 1, 0, 1, false, 0, 0, 1}, {8, 2, 1, 1, 0, 1, false, 0, 0, 1},
        {8, 1, 0, -1, 2, 2, false, 0, 0, 1}};
    search_all(few, COUNT(few), &how);
    if (all()) search_all(more, COUNT(more), &how);
}

/* Threads are late for a step that is over: one with a lane that another had computed too, one
 * with the operands of the last sum to release, while a third has begun the next step. */
static void late(void **state) {
    (void)state;
    static const struct manner how = {DRAWS_FIRST, true, PUBLISH, 1},
                               any = {DRAWS_FIRST, true, 0, 0};
    static const struct setup is = {2, 3, 0, 0, 1, 2, true, 0, 0, 1};
    search_all(&is, 1, all() ? &any : &how);
}

/* Steps of two shapes take turns: threads are late for a step of the other shape, or of their
 * own when another was between; recovery from a death uses the board of the step that is open. */
static void shapes(void **state) {
    (void)state;
    static const struct manner any = {ANY_ORDER, true, 0, 0},
                               late = {DRAWS_FIRST, true, PUBLISH, 1};
    static const struct setup few[] = {
        {1, 2, 0, 1, 1, 3, false, 0, 2, 1},  {1, 2, 0, 1, 0, 3, true, 0, 2, 1},
        {2, 1, 0, -1, 1, 3, false, 0, 3, 1}, {2, 2, 0, 1, 1, 2, false, 0, 1, 1},
        {2, 2, 0, 1, 0, 3, false, 0, 2, 1},  {3, 2, 1, 1, 0, 2, false, 0, 2, 1},
        {1, 2, 0, 1, 0, 2, true, 0, 3, 1}};
    static const struct setup more[] = {
        {1, 2, 0, 1, 1, 3, true, 0, 2, 1},  {1, 2, 0, 2, 2, 3, true, 0, 1, 1},
        {2, 2, 0, 1, 1, 3, false, 0, 2, 1}, {1, 2, 0, 2, 1, 4, false, 0, 2, 1},
        {3, 2, 0, 1, 1, 2, false, 0, 2, 1}, {2, 3, 0, 1, 0, 2, false, 0, 3, 1},
        {4, 2, 1, 1, 0, 2, false, 0, 3, 1}, {1, 2, 0, 1, 0, 2, true, 0, 5, 1}};
    static const struct setup more_late[] = {{2, 3, 0, 0, 1, 2, true, 0, 1, 1},
                                             {1, 3, 0, 0, 1, 3, true, 0, 2, 1}};
    search_all(few, COUNT(few), &any);
    if (!all()) return;
    search_all(more, COUNT(more), &any);
    search_all(more_late, COUNT(more_late), &late);
}

/* Threads publish early results of a lane, die, and compute the lane again; are late with them. */
static void buckets(void **state) {
    (void)state;
    static const struct manner any = {ANY_ORDER, true, 0, 0},
                               late = {DRAWS_FIRST, true, PUBLISH, 1};
    static const struct setup few[] = {
        {1, 1, 0, -1, 2, 2, false, 0, 0, 2}, {2, 1, 0, -1, 1, 2, false, 0, 0, 2},
        {3, 1, 0, -1, 1, 1, false, 0, 0, 2}, {1, 2, 0, 1, 1, 1, true, 0, 0, 2},
        {1, 2, 0, 2, 0, 2, true, 0, 0, 2},   {2, 2, 0, 1, 0, 2, false, 0, 0, 2},
        {2, 2, 0, 1, 0, 1, true, 0, 0, 2},   {2, 2, 1, 1, 1, 1, false, 0, 0, 2},
        {2, 2, 1, 1, 0, 2, true, 0, 0, 2},   {3, 2, 1, 1, 0, 1, false, 0, 0, 2},
        {2, 3, 0, 0, 0, 1, false, 0, 0, 2},  {1, 3, 0, 1, 0, 1, true, 0, 0, 2},
        {1, 1, 0, -1, 2, 2, false, 0, 0, 3}, {1, 2, 0, 1, 0, 2, true, 0, 0, 3},
        {2, 2, 0, 1, 0, 1, false, 0, 0, 3},  {1, 2, 0, 1, 0, 3, false, 0, 2, 2},
        {2, 1, 0, -1, 1, 2, false, 0, 1, 2}, {2, 2, 0, 1, 0, 2, false, 0, 1, 2}};
    static const struct setup last[] = {{2, 2, 0, 0, 1, 2, true, 0, 0, 2}};
    static const struct setup more[] = {
        {1, 2, 0, 1, 1, 2, true, 0, 0, 2},   {1, 2, 0, 2, 1, 2, true, 0, 0, 2},
        {2, 2, 0, 2, 0, 1, true, 0, 0, 2},   {2, 2, 0, 1, 1, 1, false, 0, 0, 2},
        {2, 2, 0, 1, 1, 1, true, 0, 0, 2},   {2, 2, 0, 0, 1, 2, true, 0, 0, 2},
        {3, 2, 0, 1, 0, 1, true, 0, 0, 2},   {3, 2, 1, 1, 1, 1, false, 0, 0, 2},
        {4, 2, 0, 1, 0, 1, false, 0, 0, 2},  {2, 3, 0, 1, 0, 1, false, 0, 0, 2},
        {2, 2, 0, 1, 0, 1, true, 0, 0, 3},   {1, 2, 0, 1, 1, 2, false, 0, 2, 2},
        {1, 2, 0, 1, 0, 2, true, 0, 2, 2},   {2, 2, 0, 1, 0, 2, false, 0, 3, 2}};
    static const struct setup more_late[] = {{1, 3, 0, 0, 1, 2, true, 0, 0, 2},
                                             {2, 3, 0, 0, 1, 2, false, 0, 1, 2}};
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
        {1, 2, 0, 1, 1, 1, true, 1, 0, 1},  {2, 2, 0, 1, 1, 1, true, 2, 0, 1},
        {3, 2, 0, 1, 1, 1, false, 6, 0, 1}, {4, 2, 0, 1, 0, 1, true, 5, 0, 1},
        {1, 2, 0, 1, 1, 1, true, 1, 0, 2},  {2, 2, 0, 1, 0, 1, true, 2, 0, 2},
        {2, 1, 0, -1, 2, 1, false, 1, 0, 2}, {3, 2, 0, 1, 0, 1, false, 6, 0, 2}};
    search_all(few, COUNT(few), &how);
}

/* Few slots suffice where threads claim orphans before lanes. */
static void enough_slots(void **state) {
    (void)state;
    static const struct manner how = {ORPHANS_FIRST, false, 0, 0};
    static const int most[2][BUCKETS][MOST_THREADS] = {{{8, 6, 3}, {5, 3, 1}, {2, 1, 0}},
                                                       {{8, 8, 4}, {8, 4, 2}, {3, 3, 1}}};
    struct setup is = {.levels = 0, .steps = 1};
    for (is.buckets = 1; is.buckets <= BUCKETS; is.buckets++)
        for (is.threads = 1; is.threads <= MOST_THREADS; is.threads++)
            for (is.lanes = 1; is.lanes <= most[all()][is.buckets - 1][is.threads - 1]; is.lanes++)
                for (is.levels = 0; is.levels <= 2; is.levels++) {
                    int size = is.buckets * is.lanes;
                    is.twice = is.threads == 2 && is.lanes + is.buckets < 5;
                    is.deaths = is.threads == 1 ? -1 : size < 6 || is.buckets > 1 || all();
                    is.pauses = is.threads == 1 ? 2 : is.threads == 2 && size < (all() ? 5 : 3);
                    search_all(&is, 1, &how);
                }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_order), cmocka_unit_test(late),
                                       cmocka_unit_test(shapes), cmocka_unit_test(buckets),
                                       cmocka_unit_test(failing), cmocka_unit_test(enough_slots)};
    return cmocka_run_group_tests_name("board", tests, NULL, NULL);
}
