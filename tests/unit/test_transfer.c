/* SPDX-License-Identifier: Apache-2.0
 * Schedules of transfers, for random trees, intervals and numbers of hosts: executed with numbers,
 * they give every host every operand once, and the sums of one host. And what transfers_check
 * refuses. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "plan/transfer.h"
#include "unit/scratch.h"

#define HOSTS 6
#define LANES 40
#define BUCKETS 3

static uint64_t drawn;
static int draw(int n) { return (int)(random_u32(5, 0, drawn++) % (uint32_t)n); }

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static struct transfer_share random_share(int lanes, int begin[HOSTS + 1]) {
    struct transfer_share s = {.hosts = 1 + draw(HOSTS), .begin = begin, .buckets = 1 + draw(3)};
    for (int h = 1; h < s.hosts; h++) begin[h] = draw(lanes + 1);
    begin[0] = 0;
    begin[s.hosts] = lanes;
    qsort(begin + 1, (size_t)s.hosts - 1, sizeof *begin, compare);
    return s;
}

struct numbers {
    bool has;
    float value; /* of one lane or sum: any number whose sums depend on the order */
};

static float of_lane(int lane, int bucket) {
    return (float)random_uniform(3, (uint64_t)lane, (uint64_t)bucket) * (float)(1 << lane % 20);
}

static void add_sums(const struct lane_tree *t, struct numbers *n) {
    for (int i = t->lanes; i < t->n_nodes; i++) {
        const struct numbers *l = &n[t->node[i].left], *r = &n[t->node[i].right];
        if (!n[i].has && l->has && r->has) n[i] = (struct numbers){true, l->value + r->value};
    }
}

static void lanes_of(const struct lane_tree *t, int begin, int end, int bucket,
                     struct numbers *n) {
    memset(n, 0, sizeof(struct numbers) * 2 * LANES);
    for (int lane = begin; lane < end; lane++)
        n[lane] = (struct numbers){true, of_lane(lane, bucket)};
    add_sums(t, n);
}

/* Every transfer once, in an order that takes of any host its next one that it has. */
static void move(const struct lane_tree *tree, const struct transfers *t,
                 struct numbers n[HOSTS][BUCKETS][2 * LANES]) {
    int at[HOSTS], left = t->n;
    memcpy(at, t->first, sizeof *at * (size_t)t->hosts);
    while (left) {
        int h = draw(t->hosts);
        if (at[h] == t->first[h + 1]) continue;
        const struct transfer *x = &t->all[at[h]++];
        struct numbers *to = n[x->to][x->bucket];
        assert_int_equal(x->from, h);
        assert_int_equal(x->format, TRANSFER_F32);
        assert_true(n[h][x->bucket][x->node].has);
        assert_false(to[x->node].has);
        to[x->node] = n[h][x->bucket][x->node];
        add_sums(tree, to);
        left--;
    }
}

static void every_host_has_the_sums_of_one(void **state) {
    static struct numbers n[HOSTS][BUCKETS][2 * LANES], one[2 * LANES];
    (void)state;
    for (int round = 0; round < 400; round++) {
        int begin[HOSTS + 1], lanes = 1 + draw(LANES);
        struct lane_tree tree;
        struct transfers t;
        assert_int_equal(lane_tree_make(lanes, draw(4), &tree), TRI_OK);
        const struct transfer_share share = random_share(lanes, begin);
        assert_int_equal(transfers_make(&tree, &share, &t), TRI_OK);
        assert_int_equal(transfers_check(&tree, &share, &t), TRI_OK);
        assert_int_equal(t.n, t.n_operands * share.buckets * (share.hosts - 1));
        for (int h = 0; h < share.hosts; h++)
            for (int b = 0; b < share.buckets; b++)
                lanes_of(&tree, begin[h], begin[h + 1], b, n[h][b]);
        move(&tree, &t, n);
        for (int b = 0; b < share.buckets; b++) {
            lanes_of(&tree, 0, lanes, b, one);
            for (int h = 0; h < share.hosts; h++)
                for (int k = 0; k < tree.n_tops; k++) {
                    assert_true(n[h][b][tree.top[k]].has);
                    assert_true(n[h][b][tree.top[k]].value == one[tree.top[k]].value);
                }
        }
        transfers_free(&t);
        lane_tree_free(&tree);
    }
}

static void two_equal_hosts_send_one_node_each(void **state) {
    (void)state;
    const int begin[] = {0, 4, 8};
    const struct transfer_share share = {.hosts = 2, .begin = begin, .buckets = 2};
    struct lane_tree tree;
    struct transfers t;
    struct text text = {0};
    assert_int_equal(lane_tree_make(8, 0, &tree), TRI_OK);
    assert_int_equal(transfers_make(&tree, &share, &t), TRI_OK);
    transfers_print(&t, &text);
    assert_string_equal(text.data, "0 > 1  bucket 0  node 10\n0 > 1  bucket 1  node 10\n"
                                   "1 > 0  bucket 0  node 13\n1 > 0  bucket 1  node 13\n");
    text_free(&text);
    transfers_free(&t);
    lane_tree_free(&tree);
}

/* A schedule that sends on, and its mistakes. Three hosts of one lane; host 1 sends on to 2. */
static void check_finds_mistakes(void **state) {
    (void)state;
    const int begin[] = {0, 1, 2, 3};
    const struct transfer_share share = {.hosts = 3, .begin = begin, .buckets = 1};
    const struct transfer relay[] = {{0, 1, 0, 0, 0}, {1, 2, 0, 0, 0}, {1, 0, 0, 1, 0},
                                     {1, 2, 0, 1, 0}, {2, 0, 0, 2, 0}, {2, 1, 0, 2, 0}};
    struct transfer all[6];
    int first[] = {0, 1, 4, 6};
    struct lane_tree tree;
    struct transfers t = {.hosts = 3, .buckets = 1, .n = 6, .all = all, .first = first};
    assert_int_equal(lane_tree_make(3, 0, &tree), TRI_OK);
    memcpy(all, relay, sizeof all);
    assert_int_equal(transfers_check(&tree, &share, &t), TRI_OK);
    all[0].node = 1; /* which only host 1 has */
    assert_int_equal(transfers_check(&tree, &share, &t), TRI_FAILED);
    assert_message("waits forever for node");
    memcpy(all, relay, sizeof all);
    all[1].node = 1;
    assert_int_equal(transfers_check(&tree, &share, &t), TRI_FAILED);
    assert_message("host 2 gets node 1 of bucket 0 twice");
    memcpy(all, relay, sizeof all);
    first[3] = 5;
    assert_int_equal(transfers_check(&tree, &share, &t), TRI_FAILED);
    assert_message("host 1 lacks node");
    lane_tree_free(&tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_host_has_the_sums_of_one),
        cmocka_unit_test(two_equal_hosts_send_one_node_each),
        cmocka_unit_test(check_finds_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
