/* SPDX-License-Identifier: Apache-2.0
 * The tables of paths. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include "plan/explain_path.h"
#include "unit/scratch.h"

static void check(enum path path, int hosts, const int *begin, int levels, const char *want) {
    struct lane_tree tree;
    struct text text = {0};
    assert_int_equal(lane_tree_make(begin[hosts], levels, &tree), TRI_OK);
    assert_int_equal(explain_path(&tree, hosts, begin, path, &text), TRI_OK);
    assert_string_equal(text.data, want);
    text_free(&text);
    lane_tree_free(&tree);
}

static const int two[] = {0, 4, 8}, three[] = {0, 2, 4, 6}, four[] = {0, 2, 4, 6, 8},
                 uneven[] = {0, 1, 4};

static void two_hosts(void **state) {
    (void)state;
    check(PATH_EXCHANGE, 2, two, 0,
          "exchange, 2 hosts\n"
          "round  from  to  sums of the lanes\n"
          "    1     0   1  0-3\n"
          "    1     1   0  4-7\n"
          "each host sends 1.00 buckets and receives 1.00\n"
          "of a plain ring, which adds in any order, each sends 1.00\n");
    check(PATH_ROOT, 2, uneven, 0,
          "root, 2 hosts\n"
          "round  from  to  sums of the lanes\n"
          "    1     1   0  1, 2-3\n"
          "    2     0   1  0-3\n"
          "host 0 sends 1.00 buckets and receives 2.00\n"
          "host 1 sends 2.00 buckets and receives 1.00\n"
          "of a plain ring, which adds in any order, each sends 1.00\n");
    check(PATH_RING, 2, two, 1,
          "exchange, 2 hosts: ring needs sums of several hosts below one root\n"
          "round  from  to  sums of the lanes\n"
          "    1     0   1  0-3\n"
          "    1     1   0  4-7\n"
          "each host sends 1.00 buckets and receives 1.00\n"
          "of a plain ring, which adds in any order, each sends 1.00\n");
}

static void three_hosts(void **state) {
    (void)state;
    check(PATH_RING, 3, three, 0,
          "ring, 3 hosts: a bucket is cut into 3 chunks, a large one into more\n"
          "round  from  to  chunks  sums of the lanes\n"
          "    1     0   1  1, 2    0-1\n"
          "    1     1   2  0       2-3\n"
          "    1     2   0  0, 1    4-5\n"
          "    2     0   1  1       4-5\n"
          "    2     1   2  2       0-3\n"
          "    2     2   0  0       2-3\n"
          "    3     0   1  0       0-5\n"
          "    3     1   2  1       0-5\n"
          "    3     2   0  2       0-5\n"
          "    4     0   1  2       0-5\n"
          "    4     1   2  0       0-5\n"
          "    4     2   0  1       0-5\n"
          "host 0 sends 1.67 buckets and receives 1.67\n"
          "host 1 sends 1.33 buckets and receives 1.67\n"
          "host 2 sends 1.67 buckets and receives 1.33\n"
          "of a plain ring, which adds in any order, each sends 1.33\n");
}

static void four_hosts(void **state) {
    (void)state;
    check(PATH_BUTTERFLY, 4, four, 0,
          "butterfly, 4 hosts: a bucket is cut into 4 chunks, a large one into more\n"
          "round  from  to  chunks  sums of the lanes\n"
          "    1     0   1  1, 3    0-1\n"
          "    1     1   0  0, 2    2-3\n"
          "    1     2   3  1, 3    4-5\n"
          "    1     3   2  0, 2    6-7\n"
          "    2     0   2  2       0-3\n"
          "    2     1   3  3       0-3\n"
          "    2     2   0  0       4-7\n"
          "    2     3   1  1       4-7\n"
          "    3     0   1  0       0-7\n"
          "    3     0   2  0       0-7\n"
          "    3     1   0  1       0-7\n"
          "    3     1   3  1       0-7\n"
          "    3     2   0  2       0-7\n"
          "    3     2   3  2       0-7\n"
          "    3     3   1  3       0-7\n"
          "    3     3   2  3       0-7\n"
          "    4     0   1  2       0-7\n"
          "    4     1   0  3       0-7\n"
          "    4     2   3  0       0-7\n"
          "    4     3   2  1       0-7\n"
          "each host sends 1.50 buckets and receives 1.50\n"
          "of a plain ring, which adds in any order, each sends 1.50\n");
}

static void hosts_that_cannot(void **state) {
    (void)state;
    struct lane_tree tree;
    struct text text = {0};
    assert_int_equal(lane_tree_make(6, 0, &tree), TRI_OK);
    assert_int_equal(explain_path(&tree, 3, three, PATH_BUTTERFLY, &text), TRI_USAGE);
    assert_message("3 hosts cannot take the path butterfly: a power of two can, from 2 on");
    lane_tree_free(&tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_hosts),
        cmocka_unit_test(three_hosts),
        cmocka_unit_test(four_hosts),
        cmocka_unit_test(hosts_that_cannot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
