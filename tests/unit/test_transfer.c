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
#include "unit/scratch.h"
#include "unit/transfers.h"

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
    int first[] = {0, 1, 4, 6}, chunks[] = {1};
    enum path path[] = {PATH_EXCHANGE};
    struct lane_tree tree;
    struct transfers t = {.hosts = 3, .buckets = 1, .n = 6, .path = path,
                          .chunks = chunks, .all = all, .first = first};
    assert_int_equal(lane_tree_make(3, 0, &tree), TRI_OK);
    memcpy(all, relay, sizeof all);
    assert_int_equal(transfers_check(&tree, &share, &t), TRI_OK);
    all[0].node = 1; /* which host 1 has, and sends no more */
    all[2].node = 0;
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

/* ---- the rest of a step ---- */

#define FEW 8
#define MOST 4 /* hosts */

struct rest {
    struct lane_tree tree;
    struct transfer_share share;
    struct transfers dealt, left;
    int begin[MOST + 1], weight[MOST];
    bool alive[MOST];
    uint8_t *has;
};

static uint8_t *bit(const struct rest *r, int host, int bucket, int k) {
    return &r->has[(host * r->share.buckets + bucket) * (r->dealt.n_operands + 1) + k];
}

static int host_of_lane(const struct rest *r, int lane) {
    int h = 0;
    while (r->begin[h + 1] <= lane) h++;
    return h;
}

/* The first host that has an item of `has`; -1: none has. */
static int first_with(const struct rest *r, int bucket, int k) {
    for (int h = 0; h < r->share.hosts; h++)
        if (r->alive[h] && *bit(r, h, bucket, k)) return h;
    return -1;
}

/* The root comes from the first that has it, and then no operand moves. Else whoever sends an
 * operand is its owner, or the first that has it, or computes it again. */
static void check_rule(const struct rest *r) {
    const struct transfers *t = &r->left;
    for (int i = 0; i < t->n; i++) {
        const struct transfer *x = &t->all[i];
        int k = 0, first = x->node, from;
        while (k < t->n_operands && t->operand[k] != x->node) k++;
        while (r->tree.node[first].left >= 0) first = r->tree.node[first].left;
        from = host_of_lane(r, first);
        const int with_root = first_with(r, x->bucket, t->n_operands);
        if (with_root >= 0) {
            assert_int_equal(x->node, r->tree.n_nodes - 1);
            from = with_root;
        } else if (!r->alive[from]) {
            from = first_with(r, x->bucket, k);
            if (from < 0) from = t->again[first];
        }
        assert_int_equal(x->from, from);
        assert_false(*bit(r, x->to, x->bucket, k));
        assert_true(x->to != x->from && r->alive[x->to]);
    }
    for (int lane = 0; lane < r->tree.lanes; lane++)
        assert_true(t->again[lane] < 0 ||
                    (r->alive[t->again[lane]] && r->weight[t->again[lane]] > 0 &&
                     !r->alive[host_of_lane(r, lane)]));
}

static void one_rest(int hosts, int lanes, int buckets, unsigned alive) {
    struct rest r = {.share = {.hosts = hosts, .begin = r.begin, .buckets = buckets,
                               .alive = r.alive, .weight = r.weight}};
    assert_int_equal(lane_tree_make(lanes, draw(3), &r.tree), TRI_OK);
    for (int h = 1; h < hosts; h++) r.begin[h] = draw(lanes + 1);
    r.begin[hosts] = lanes;
    qsort(r.begin + 1, (size_t)hosts - 1, sizeof *r.begin, compare);
    const struct transfer_share dealt = {.hosts = hosts, .begin = r.begin, .buckets = buckets};
    assert_int_equal(transfers_make(&r.tree, &dealt, &r.dealt), TRI_OK);
    r.share.has = r.has = calloc((size_t)(hosts * buckets * (r.dealt.n_operands + 1)), 1);
    const int out_of = 1 + draw(4);
    const bool has_root = r.tree.n_tops == 1 && r.dealt.n_operands > 1 && draw(2);
    bool some = false;
    for (int h = 0; h < hosts; h++) {
        r.alive[h] = alive >> h & 1;
        some |= (r.weight[h] = draw(3)) && r.alive[h];
        for (int b = 0; b < buckets && r.alive[h]; b++)
            for (int k = 0; k <= r.dealt.n_operands; k++)
                *bit(&r, h, b, k) = !draw(out_of) && (k < r.dealt.n_operands || has_root);
    }
    for (int h = 0; h < hosts; h++) r.weight[h] += !some;
    assert_int_equal(transfers_make(&r.tree, &r.share, &r.left), TRI_OK);
    if (transfers_check(&r.tree, &r.share, &r.left)) fail_msg("%s", tri_message());
    check_rule(&r);
    /* A schedule that lacks any of its transfers is refused; but who has all operands, needs no
     * root. */
    const int lost = r.left.n ? draw(r.left.n) : -1;
    if (lost >= 0 && (!has_root || r.left.all[lost].node != r.tree.n_nodes - 1)) {
        const int from = r.left.all[lost].from;
        memmove(r.left.all + lost, r.left.all + lost + 1,
                sizeof *r.left.all * (size_t)(r.left.n - lost - 1));
        for (int h = from + 1; h <= hosts; h++) r.left.first[h]--;
        r.left.n--;
        assert_int_equal(transfers_check(&r.tree, &r.share, &r.left), TRI_FAILED);
    }
    transfers_free(&r.left);
    transfers_free(&r.dealt);
    lane_tree_free(&r.tree);
    free(r.has);
}

static void the_rest_of_a_step(void **state) {
    (void)state;
    for (int hosts = 2; hosts <= MOST; hosts++)
        for (int lanes = 1; lanes <= FEW; lanes++)
            for (int buckets = 1; buckets <= BUCKETS; buckets++)
                for (unsigned alive = 1; alive < 1u << hosts; alive++)
                    for (int k = 0; k < 25; k++) one_rest(hosts, lanes, buckets, alive);
}

/* Host 1 of three has gone, and nobody has what it made: 2 lanes for host 0 and 2 for host 2, in
 * both phases the same. */
static void lanes_are_dealt_again(void **state) {
    (void)state;
    const int begin[] = {0, 4, 8, 12}, weight[] = {1, 5, 1}, want[] = {0, 0, 2, 2};
    const bool alive[] = {true, false, true};
    const uint8_t has[3 * 9] = {0};
    struct transfer_share share = {.hosts = 3, .begin = begin, .buckets = 1, .alive = alive,
                                   .weight = weight, .has = has};
    struct lane_tree tree;
    struct transfers t, before = {0};
    for (int levels = 3; levels >= 0; levels -= 3) {
        assert_int_equal(lane_tree_make(12, levels, &tree), TRI_OK);
        assert_int_equal(transfers_make(&tree, &share, &t), TRI_OK);
        assert_int_equal(transfers_check(&tree, &share, &t), TRI_OK);
        for (int lane = 0; lane < 12; lane++)
            assert_int_equal(t.again[lane], lane / 4 == 1 ? (levels ? want[lane - 4] : 0) : -1);
        transfers_free(&before);
        before = t;
        share.again = before.again;
        lane_tree_free(&tree);
    }
    transfers_free(&before);
}

/* What nobody has of a bucket whose root somebody has is not computed again. */
static void a_root_needs_no_lanes(void **state) {
    (void)state;
    const int begin[] = {0, 4, 8, 12}, weight[] = {1, 5, 1};
    const bool alive[] = {true, false, true};
    uint8_t has[3 * 4] = {[11] = 1}; /* three operands; host 2 has the root */
    const struct transfer_share share = {.hosts = 3, .begin = begin, .buckets = 1, .alive = alive,
                                         .weight = weight, .has = has};
    struct lane_tree tree;
    struct transfers t;
    struct text text = {0};
    assert_int_equal(lane_tree_make(12, 0, &tree), TRI_OK);
    for (int k = 0; k < 2; k++) {
        has[11] = !k;
        assert_int_equal(transfers_make(&tree, &share, &t), TRI_OK);
        assert_int_equal(t.n_operands, 3);
        assert_int_equal(t.again[4], k ? 2 : -1);
        if (!k) transfers_print(&t, &text);
        transfers_free(&t);
    }
    assert_string_equal(text.data, "2 > 0  bucket 0  node 22\n");
    text_free(&text);
    lane_tree_free(&tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_host_has_the_sums_of_one),
        cmocka_unit_test(two_equal_hosts_send_one_node_each),
        cmocka_unit_test(check_finds_mistakes),
        cmocka_unit_test(the_rest_of_a_step),
        cmocka_unit_test(lanes_are_dealt_again),
        cmocka_unit_test(a_root_needs_no_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
