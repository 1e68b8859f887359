/* SPDX-License-Identifier: Apache-2.0
 * What a path is predicted to take, and which is chosen. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <math.h>

#include "plan/path_choice.h"

#define MB 1e6
#define MOST 8 /* hosts */

static const struct path_link ethernet = {200e-6, 125 * MB, 0.5}, far = {40e-3, 125 * MB, 0.5},
                              slow_cores = {20e-6, 12500 * MB, 2};

/* The fastest path; seconds: of each. */
static enum path price(const struct lane_tree *tree, const struct transfer_share *share,
                       const struct path_link *link, double bytes, double seconds[PATHS]) {
    struct path_price all[PATHS];
    assert_int_equal(path_prices(tree, share, all), TRI_OK);
    for (int p = 0; p < PATHS; p++) seconds[p] = path_seconds(&all[p], link, bytes);
    const enum path path = path_fastest(all, link, bytes);
    assert_int_equal(path_taken(all, 0, link, bytes), path);
    for (int p = 0; p < PATHS; p++)
        assert_int_equal(path_taken(all, 1 + p, link, bytes), seconds[p] < 0 ? PATH_EXCHANGE : p);
    return path;
}

/* Equal shares of `each` lanes. */
static enum path choose(int hosts, int each, const struct path_link *link, double bytes,
                        double seconds[PATHS]) {
    int begin[MOST + 1];
    struct lane_tree tree;
    for (int h = 0; h <= hosts; h++) begin[h] = h * each;
    const struct transfer_share share = {.hosts = hosts, .begin = begin};
    assert_int_equal(lane_tree_make(hosts * each, 0, &tree), TRI_OK);
    const enum path path = price(&tree, &share, link, bytes, seconds);
    lane_tree_free(&tree);
    return path;
}

static void assert_near(double is, double want) { assert_true(fabs(is - want) < 1e-9); }

/* A MB takes 8 ms on this link; a message 0.1 ms. */
static void four_hosts(void **state) {
    (void)state;
    double s[PATHS];
    assert_int_equal(choose(4, 4, &ethernet, 4 * MB, s), PATH_BUTTERFLY);
    assert_near(s[PATH_EXCHANGE], 1 * 0.1e-3 + 3 * 32e-3);
    /* rounds in which some host sends 3, 2, 1, 1, 1 and 1 chunks (test_explain_path.c) */
    assert_near(s[PATH_RING], 6 * 0.1e-3 + 9 / 4. * 32e-3);
    assert_near(s[PATH_BUTTERFLY], 4 * 0.1e-3 + 1.5 * 32e-3);
    assert_near(s[PATH_ROOT], 2 * 0.1e-3 + 6 * 32e-3);
}

static void what_latency_decides(void **state) {
    (void)state;
    double s[PATHS];
    assert_int_equal(choose(4, 4, &far, 0.1 * MB, s), PATH_EXCHANGE);
    assert_int_equal(choose(4, 4, &far, 100 * MB, s), PATH_BUTTERFLY);
    assert_int_equal(choose(8, 1, &ethernet, 1e3, s), PATH_EXCHANGE);
    assert_int_equal(choose(8, 1, &ethernet, 4 * MB, s), PATH_BUTTERFLY);
}

/* Three hosts allow no butterfly. */
static void what_hosts_allow(void **state) {
    (void)state;
    double s[PATHS];
    assert_int_equal(choose(3, 2, &ethernet, 4 * MB, s), PATH_RING);
    assert_true(s[PATH_BUTTERFLY] < 0 && s[PATH_RING] > 0 && s[PATH_ROOT] > s[PATH_EXCHANGE]);
    /* an exchange has as many bytes as the others, and fewer rounds */
    assert_int_equal(choose(2, 4, &ethernet, 4 * MB, s), PATH_EXCHANGE);
    assert_near(s[PATH_BUTTERFLY] - s[PATH_EXCHANGE], 0.1e-3);
    assert_int_equal(choose(1, 4, &ethernet, 4 * MB, s), PATH_EXCHANGE);
    assert_true(s[PATH_EXCHANGE] == 0 && s[PATH_RING] < 0 && s[PATH_ROOT] < 0);
}

/* Where the link is faster than a core, the processor time of the busiest host counts: a host of an
 * exchange sends and receives 3 buckets, and each costs it a second per GB. */
static void what_cores_decide(void **state) {
    (void)state;
    double s[PATHS];
    assert_int_equal(choose(4, 4, &slow_cores, 100 * MB, s), PATH_BUTTERFLY);
    assert_near(s[PATH_EXCHANGE], 10e-6 + 6 * 0.1);
    assert_near(s[PATH_ROOT], 20e-6 + 6 * 0.1);
    assert_near(s[PATH_BUTTERFLY], 40e-6 + 3 * 0.1);
}

/* Without latency two hosts take as long by exchange, ring and butterfly. */
static void ties_go_to_the_exchange(void **state) {
    (void)state;
    const struct path_link link = {0, 125 * MB, 0.5};
    double s[PATHS];
    assert_int_equal(choose(2, 2, &link, 4 * MB, s), PATH_EXCHANGE);
    assert_true(s[PATH_EXCHANGE] == s[PATH_RING] && s[PATH_RING] == s[PATH_BUTTERFLY]);
}

/* A tree with several tops has no root that could move. */
static void tops_leave_the_exchange(void **state) {
    (void)state;
    const int begin[] = {0, 2, 4, 6, 8};
    const struct transfer_share share = {.hosts = 4, .begin = begin};
    struct lane_tree tree;
    double s[PATHS];
    assert_int_equal(lane_tree_make(8, 1, &tree), TRI_OK);
    const enum path path = price(&tree, &share, &ethernet, 4 * MB, s);
    assert_int_equal(path, PATH_EXCHANGE);
    assert_true(s[PATH_EXCHANGE] > 0);
    for (int p = PATH_RING; p < PATHS; p++) assert_true(s[p] < 0);
    lane_tree_free(&tree);
}

/* Hosts 1 and 3 have gone, and 0 and 2 compute their lanes. So each has two siblings, which it adds
 * first but in an exchange. */
static void hosts_that_have_gone(void **state) {
    (void)state;
    const int begin[] = {0, 4, 8, 12, 16}, weight[] = {1, 1, 1, 1};
    const bool alive[] = {true, false, true, false};
    const struct transfer_share share = {.hosts = 4, .begin = begin, .alive = alive,
                                         .weight = weight};
    struct lane_tree tree;
    double s[PATHS];
    assert_int_equal(lane_tree_make(16, 0, &tree), TRI_OK);
    const enum path path = price(&tree, &share, &ethernet, 4 * MB, s);
    assert_near(s[PATH_EXCHANGE], 0.1e-3 + 2 * 32e-3);
    assert_near(s[PATH_RING], 0.2e-3 + 32e-3);
    assert_near(s[PATH_ROOT], 0.2e-3 + 2 * 32e-3);
    assert_int_equal(path, PATH_RING); /* as fast as a butterfly */
    lane_tree_free(&tree);
}

/* Bytes, hosts, and into how many a chunk is cut: no bucket has more than 127 chunks. */
static void large_buckets_are_cut(void **state) {
    static const struct {
        double bytes;
        int hosts, want;
    } cases[] = {{1 << 20, 4, 1}, {2 << 20, 4, 2}, {4 << 20, 4, 4}, {4 << 20, 2, 8},
                 {64 << 20, 4, 8}, {64 << 20, 15, 8}, {64 << 20, 16, 7}, {64 << 20, 40, 3},
                 {64 << 20, 64, 1}, {1e12, 64, 1}, {0, 1, 1}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(path_multiple(cases[i].bytes, cases[i].hosts), cases[i].want);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_hosts),
        cmocka_unit_test(what_latency_decides),
        cmocka_unit_test(what_hosts_allow),
        cmocka_unit_test(what_cores_decide),
        cmocka_unit_test(ties_go_to_the_exchange),
        cmocka_unit_test(tops_leave_the_exchange),
        cmocka_unit_test(hosts_that_have_gone),
        cmocka_unit_test(large_buckets_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
