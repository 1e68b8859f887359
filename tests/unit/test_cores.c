/* SPDX-License-Identifier: Apache-2.0 The processors that workers get, on invented machines. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/numa.h"
#include "launch/cores.h"

/* Processors 0 to n - 1: n / 2 cores, whose second threads come after all first ones; nodes
 * alternate in blocks of `block` cores. */
static struct cores *machine(int n, int cores, int block, int nodes) {
    struct cores *c = calloc(1, sizeof *c);
    assert_non_null(c);
    for (int i = 0; i < n; i++)
        c->core[c->n++] = (struct core){
            .cpu = i, .node = 10 + 3 * (i % cores / block % nodes), .first = i < cores};
    return c;
}

/* The processors that a worker is pinned to, for instance "0 1 4". */
static const char *pinned(const struct cores *c, int first, int threads) {
    static char text[256];
    cpu_set_t set;
    cores_choose(c, first, threads, &set);
    *text = 0;
    for (int i = 0; i < 64; i++)
        if (CPU_ISSET((size_t)i, &set))
            base_format(text + strlen(text), sizeof text - strlen(text), "%s%d", *text ? " " : "",
                        i);
    return text;
}

static void workers_keep_to_a_node(void **state) {
    (void)state;
    /* 6 cores each: one worker with four, one with the other two */
    struct cores *c = machine(12, 12, 6, 2);
    cores_order(c, 3, 4);
    assert_int_equal(c->nodes, 2);
    assert_string_equal(pinned(c, 0, 4), "0 1 2 3");
    assert_string_equal(pinned(c, 4, 4), "6 7 8 9");
    assert_string_equal(pinned(c, 8, 4), "4 5 10 11");
    free(c);
    c = machine(8, 8, 1, 2); /* alternating nodes */
    cores_order(c, 4, 2);
    assert_string_equal(pinned(c, 0, 2), "0 2");
    assert_string_equal(pinned(c, 4, 2), "1 3");
    free(c);
}

static void cores_before_their_second_threads(void **state) {
    (void)state;
    struct cores *c = machine(8, 4, 2, 2);
    cores_order(c, 8, 1);
    const char *want[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    for (int i = 0; i < 8; i++) assert_string_equal(pinned(c, i, 1), want[i]);
    assert_string_equal(pinned(c, -1, 1), "0 1 2 3 4 5 6 7");
    assert_string_equal(pinned(c, 8, 1), "0 1 2 3 4 5 6 7");
    free(c);
}

/* With more cores than needed, only nodes are divided. */
static void alternating_nodes(void **state) {
    (void)state;
    struct cores *c = machine(8, 8, 4, 2);
    cores_order(c, 3, 2);
    assert_true(c->free);
    assert_string_equal(pinned(c, 0, 2), "0 1 2 3");
    assert_string_equal(pinned(c, 2, 2), "4 5 6 7");
    assert_string_equal(pinned(c, 4, 2), "0 1 2 3");
    cores_order(c, 1, 6);
    assert_string_equal(pinned(c, 0, 6), "0 1 2 3 4 5 6 7");
    free(c);
    c = machine(16, 16, 12, 2); /* nodes of 12 and of 4 */
    cores_order(c, 5, 3);
    const char *large = "0 1 2 3 4 5 6 7 8 9 10 11", *small = "12 13 14 15";
    for (int i = 0; i < 5; i++) assert_string_equal(pinned(c, 3 * i, 3), i == 3 ? small : large);
    free(c);
    c = machine(4, 4, 4, 1);
    cores_order(c, 1, 2);
    assert_string_equal(pinned(c, 0, 2), "0 1 2 3");
    free(c);
}

static void lists_of_the_system(void **state) {
    (void)state;
    const struct {
        const char *text;
        int n, last;
    } rows[] = {{"0\n", 1, 0}, {"0-3,8\n", 5, 8},   {"0,2,4-5", 4, 5},
                {"\n", 0, -1}, {"0-99999", 16, 15}, {"3-1", 0, -1}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        bool is[16];
        int last = -1;
        assert_int_equal(numa_list(rows[i].text, is, 16), rows[i].n);
        for (int k = 0; k < 16; k++)
            if (is[k]) last = k;
        assert_int_equal(last, rows[i].last);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_keep_to_a_node),
        cmocka_unit_test(cores_before_their_second_threads),
        cmocka_unit_test(alternating_nodes),
        cmocka_unit_test(lists_of_the_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
