/* SPDX-License-Identifier: Apache-2.0
 * The schedules of paths: executed in any order they give every host every root, and they move as
 * many bytes as is known of each. */
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

#define HOSTS 8
#define LANES 40
#define BUCKETS 3
#define ORDERS 10000

static uint64_t drawn;
static int draw(int n) { return (int)(random_u32(7, 0, drawn++) % (uint32_t)n); }

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

struct step {
    struct lane_tree tree;
    int begin[HOSTS + 1], weight[HOSTS];
    bool alive[HOSTS];
    enum path path[BUCKETS];
    int multiple[BUCKETS];
    struct transfer_share share;
    struct transfers t;
};

static void make(struct step *s, int hosts, int lanes, int levels) {
    s->share = (struct transfer_share){.hosts = hosts, .begin = s->begin, .buckets = BUCKETS,
                                       .path = s->path, .weight = s->weight,
                                       .multiple = s->multiple};
    assert_int_equal(lane_tree_make(lanes, levels, &s->tree), TRI_OK);
    for (int h = 0; h <= hosts; h++) s->begin[h] = lanes * h / hosts;
    for (int b = 0; b < BUCKETS; b++) s->multiple[b] = 1;
}

static void make_even(struct step *s, enum path path, int hosts, int lanes) {
    make(s, hosts, lanes, 0);
    for (int b = 0; b < BUCKETS; b++) s->path[b] = path;
    assert_int_equal(transfers_make(&s->tree, &s->share, &s->t), TRI_OK);
}

static void clear(struct step *s) {
    transfers_free(&s->t);
    lane_tree_free(&s->tree);
}

/* Some hosts have no lanes; some are not alive, and of these some have lanes, which are dealt to
 * others; buckets have any paths that the others allow. */
static void make_any(struct step *s) {
    const int hosts = 2 + draw(HOSTS - 1), lanes = 2 + draw(LANES - 1);
    int alive = 0;
    make(s, hosts, lanes, draw(4) ? 0 : draw(3));
    for (int h = 1; h < hosts && draw(3); h++) s->begin[h] = draw(lanes + 1);
    qsort(s->begin + 1, (size_t)hosts - 1, sizeof *s->begin, compare);
    if (draw(2)) s->share.alive = s->alive;
    for (int h = 0; h < hosts; h++) {
        s->weight[h] = 1 + draw(2);
        s->alive[h] = h == hosts - 1 ? !alive || draw(4) : draw(4) > 0;
        alive += s->alive[h] || !s->share.alive;
        if (s->share.alive && !s->alive[h] && h < hosts - 1 && draw(2))
            s->begin[h + 1] = s->begin[h];
    }
    for (int b = 0; b < BUCKETS; b++) s->multiple[b] = 1 + draw(3);
    for (int b = 0; b < BUCKETS; b++)
        do s->path[b] = (enum path)draw(PATHS);
        while (!path_allows(s->path[b], alive));
    assert_int_equal(transfers_make(&s->tree, &s->share, &s->t), TRI_OK);
}

static void any_order_is_right(void **state) {
    (void)state;
    int taken[PATHS] = {0}, without = 0, gone = 0;
    for (int i = 0; i < ORDERS; i++) {
        struct step s = {0};
        make_any(&s);
        if (transfers_check_in(&s.tree, &s.share, &s.t, draw))
            fail_msg("order %d: %s", i, tri_message());
        for (int b = 0; b < BUCKETS; b++) {
            const bool sums = s.tree.n_tops == 1 && s.t.n_operands > 1;
            assert_int_equal(s.t.path[b], sums ? s.path[b] : PATH_EXCHANGE);
            taken[s.t.path[b]]++;
        }
        for (int h = 0; h < s.share.hosts; h++) without += s.begin[h] == s.begin[h + 1];
        for (int h = 0; h < s.share.hosts && s.share.alive; h++) gone += !s.alive[h];
        clear(&s);
    }
    for (int p = 0; p < PATHS; p++) assert_true(taken[p] > ORDERS / 20);
    assert_true(without > ORDERS / 4 && gone > ORDERS / 4);
}

/* A schedule that lacks any of its transfers, or has one twice, is refused. */
static void no_transfer_is_in_vain(void **state) {
    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct step s = {0};
        make_any(&s);
        struct transfers *t = &s.t;
        if (t->n) {
            const int at = draw(t->n), from = t->all[at].from;
            const struct transfer lost = t->all[at];
            struct transfer *all = t->all;
            const size_t after = sizeof *all * (size_t)(t->n - at - 1);
            memmove(all + at, all + at + 1, after);
            for (int h = from + 1; h <= t->hosts; h++) t->first[h]--;
            assert_int_equal(transfers_check(&s.tree, &s.share, t), TRI_FAILED);
            t->all = calloc((size_t)t->n + 1, sizeof *all);
            memcpy(t->all, all, sizeof *all * (size_t)at);
            t->all[at] = t->all[at + 1] = lost;
            memcpy(t->all + at + 2, all + at, after);
            for (int h = from + 1; h <= t->hosts; h++) t->first[h] += 2;
            assert_int_equal(transfers_check(&s.tree, &s.share, t), TRI_FAILED);
            assert_message("twice");
            free(all);
        }
        clear(&s);
    }
}

/* Host 1 of three sends on what it has got, and adds it, too. */
static void check_finds_double_use(void **state) {
    (void)state;
    struct step s = {0};
    make_even(&s, PATH_EXCHANGE, 3, 3);
    s.t.path[0] = PATH_ROOT;
    assert_int_equal(transfers_check(&s.tree, &s.share, &s.t), TRI_OK);
    for (int i = 0; i < s.t.n; i++) /* 0 > 2 comes from 1 instead */
        if (s.t.all[i].from == 0 && s.t.all[i].to == 2 && !s.t.all[i].bucket) {
            const struct transfer on = {1, 2, 0, s.t.all[i].node, 0};
            memmove(s.t.all + i, s.t.all + i + 1,
                    sizeof on * (size_t)(s.t.first[1] - i - 1));
            s.t.all[--s.t.first[1]] = on;
        }
    assert_int_equal(transfers_check(&s.tree, &s.share, &s.t), TRI_FAILED);
    assert_message("host 1 sends and adds node 0 of bucket 0");
    clear(&s);
}

/* Chunks that a host sends and receives in bucket 0. */
static void count(const struct step *s, int host, int *sent, int *received) {
    *sent = *received = 0;
    for (int i = 0; i < s->t.n; i++) {
        *sent += s->t.all[i].from == host && !s->t.all[i].bucket;
        *received += s->t.all[i].to == host && !s->t.all[i].bucket;
    }
}

static void check_each(const struct step *s, int sent, int received) {
    for (int h = 0; h < s->share.hosts; h++) {
        int is[2];
        count(s, h, &is[0], &is[1]);
        assert_int_equal(is[0], sent);
        assert_int_equal(is[1], received);
    }
}

/* With equal shares of one node, an exchange moves hosts - 1 buckets per host; a butterfly
 * 2 (hosts - 1) / hosts, as many as a ring that adds in any order. */
static void bytes_of_exchange_and_butterfly(void **state) {
    (void)state;
    for (int hosts = 2; hosts <= HOSTS; hosts *= 2) {
        struct step s = {0};
        make_even(&s, PATH_EXCHANGE, hosts, 4 * hosts);
        assert_int_equal(s.t.chunks[0], 1);
        check_each(&s, hosts - 1, hosts - 1);
        clear(&s);
        make_even(&s, PATH_BUTTERFLY, hosts, 4 * hosts);
        assert_int_equal(s.t.chunks[0], hosts);
        check_each(&s, 2 * (hosts - 1), 2 * (hosts - 1));
        clear(&s);
    }
}

/* With uneven shares all operands of all others come in an exchange. */
static void bytes_of_uneven_exchange(void **state) {
    (void)state;
    struct step s = {0};
    make_even(&s, PATH_EXCHANGE, 3, 8); /* nodes 0+1; 2+3, 4; 5, 6+7 */
    int sent, received;
    assert_int_equal(s.t.n_operands, 5);
    count(&s, 0, &sent, &received);
    assert_int_equal(sent, 2);
    assert_int_equal(received, 4);
    count(&s, 2, &sent, &received);
    assert_int_equal(sent, 4);
    assert_int_equal(received, 3);
    clear(&s);
}

/* Chunks of nodes that all hosts of a ring send, with equal shares of one node. Where no sums are
 * added but siblings, chunks come together with 4 + 5 + 4 + 5 of them for 4 hosts, and the roots go
 * out with 12: 30 of a plain ring's 24, exactly 1.25 times. For 8 hosts: 120 and 56 of 112, 1.571
 * times (11 / 7). For 2 hosts there is no difference. */
static void bytes_of_ring(void **state) {
    (void)state;
    const int hosts[] = {2, 4, 8}, want[] = {4, 30, 176};
    for (int i = 0; i < 3; i++) {
        struct step s = {0};
        make_even(&s, PATH_RING, hosts[i], 2 * hosts[i]);
        assert_int_equal(s.t.chunks[0], hosts[i]);
        int all = 0;
        for (int h = 0; h < hosts[i]; h++) {
            int sent, received;
            count(&s, h, &sent, &received);
            all += sent;
        }
        assert_int_equal(all, want[i]);
        clear(&s);
    }
    assert_true(176 * 7 == 112 * 11 && 30 * 4 == 24 * 5);
}

static void bytes_of_root(void **state) {
    (void)state;
    for (int hosts = 2; hosts <= HOSTS; hosts++) {
        struct step s = {0};
        make_even(&s, PATH_ROOT, hosts, 3 * hosts);
        int sent, received;
        for (int i = 0; i < s.t.n; i++) assert_true(!s.t.all[i].from != !s.t.all[i].to);
        count(&s, 0, &sent, &received);
        assert_int_equal(sent, hosts - 1);
        for (int h = 1; h < hosts; h++) {
            int up, down;
            count(&s, h, &up, &down);
            assert_int_equal(down, 1);
            received -= up;
        }
        assert_int_equal(received, 0);
        clear(&s);
    }
}

/* Only those that are alive are in a path, and no bucket is cut for others. */
static void the_first_alive_is_the_root(void **state) {
    (void)state;
    struct step s = {0};
    make(&s, 4, 6, 0);
    const int begin[] = {0, 0, 2, 2, 6};
    memcpy(s.begin, begin, sizeof begin);
    s.share.alive = s.alive;
    s.alive[1] = s.alive[3] = true;
    s.weight[1] = 1;
    s.path[0] = PATH_ROOT;
    s.path[1] = PATH_RING;
    s.path[2] = PATH_BUTTERFLY;
    assert_int_equal(transfers_make(&s.tree, &s.share, &s.t), TRI_OK);
    for (int b = 0; b < BUCKETS; b++) assert_int_equal(s.t.chunks[b], b ? 2 : 1);
    for (int i = 0; i < s.t.n; i++)
        if (!s.t.all[i].bucket)
            assert_int_equal(s.t.all[i].node == s.tree.n_nodes - 1, s.t.all[i].from == 1);
    clear(&s);
}

/* Six lanes: ((0+1)+(2+3))+(4+5); node 6 is 0+1, 7 is 2+3, 8 their sum, 9 is 4+5, 10 the root. Of
 * four lanes, node 4 is 0+1, 5 is 2+3, 6 the root. */
static void check_text(enum path path, int hosts, int lanes, const char *want) {
    struct step s = {0};
    struct text text = {0};
    make(&s, hosts, lanes, 0);
    s.share.buckets = 1;
    s.path[0] = path;
    assert_int_equal(transfers_make(&s.tree, &s.share, &s.t), TRI_OK);
    transfers_print(&s.t, &text);
    assert_string_equal(text.data, want);
    text_free(&text);
    clear(&s);
}

static void small_schedules(void **state) {
    (void)state;
    check_text(PATH_EXCHANGE, 3, 6,
               "0 > 1  bucket 0  node 6\n"
               "0 > 2  bucket 0  node 6\n"
               "1 > 2  bucket 0  node 7\n"
               "1 > 0  bucket 0  node 7\n"
               "2 > 0  bucket 0  node 9\n"
               "2 > 1  bucket 0  node 9\n");
    check_text(PATH_RING, 3, 6,
               "0 > 1  bucket 0  node 6  chunk 2\n"
               "0 > 1  bucket 0  node 6  chunk 1\n"
               "0 > 1  bucket 0  node 9  chunk 1\n"
               "0 > 1  bucket 0  node 10  chunk 0\n"
               "0 > 1  bucket 0  node 10  chunk 2\n"
               "1 > 2  bucket 0  node 7  chunk 0\n"
               "1 > 2  bucket 0  node 8  chunk 2\n"
               "1 > 2  bucket 0  node 10  chunk 1\n"
               "1 > 2  bucket 0  node 10  chunk 0\n"
               "2 > 0  bucket 0  node 9  chunk 1\n"
               "2 > 0  bucket 0  node 7  chunk 0\n"
               "2 > 0  bucket 0  node 9  chunk 0\n"
               "2 > 0  bucket 0  node 10  chunk 2\n"
               "2 > 0  bucket 0  node 10  chunk 1\n");
    check_text(PATH_BUTTERFLY, 4, 4,
               "0 > 1  bucket 0  node 0  chunk 3\n"
               "0 > 1  bucket 0  node 0  chunk 1\n"
               "0 > 2  bucket 0  node 4  chunk 2\n"
               "0 > 2  bucket 0  node 6  chunk 0\n"
               "0 > 1  bucket 0  node 6  chunk 0\n"
               "0 > 1  bucket 0  node 6  chunk 2\n"
               "1 > 0  bucket 0  node 1  chunk 2\n"
               "1 > 0  bucket 0  node 1  chunk 0\n"
               "1 > 3  bucket 0  node 4  chunk 3\n"
               "1 > 3  bucket 0  node 6  chunk 1\n"
               "1 > 0  bucket 0  node 6  chunk 1\n"
               "1 > 0  bucket 0  node 6  chunk 3\n"
               "2 > 3  bucket 0  node 2  chunk 1\n"
               "2 > 0  bucket 0  node 5  chunk 0\n"
               "2 > 3  bucket 0  node 2  chunk 3\n"
               "2 > 0  bucket 0  node 6  chunk 2\n"
               "2 > 3  bucket 0  node 6  chunk 0\n"
               "2 > 3  bucket 0  node 6  chunk 2\n"
               "3 > 2  bucket 0  node 3  chunk 0\n"
               "3 > 1  bucket 0  node 5  chunk 1\n"
               "3 > 2  bucket 0  node 3  chunk 2\n"
               "3 > 1  bucket 0  node 6  chunk 3\n"
               "3 > 2  bucket 0  node 6  chunk 1\n"
               "3 > 2  bucket 0  node 6  chunk 3\n");
    check_text(PATH_ROOT, 3, 6,
               "0 > 1  bucket 0  node 10\n"
               "0 > 2  bucket 0  node 10\n"
               "1 > 0  bucket 0  node 7\n"
               "2 > 0  bucket 0  node 9\n");
}

static void paths_allow_hosts(void **state) {
    (void)state;
    for (int hosts = 1; hosts <= 64; hosts++) {
        assert_true(path_allows(PATH_EXCHANGE, hosts) && path_allows(PATH_ROOT, hosts));
        assert_int_equal(path_allows(PATH_RING, hosts), hosts > 1);
        assert_int_equal(path_allows(PATH_BUTTERFLY, hosts),
                         hosts == 2 || hosts == 4 || hosts == 8 || hosts == 16 || hosts == 32 ||
                             hosts == 64);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_is_right),
        cmocka_unit_test(no_transfer_is_in_vain),
        cmocka_unit_test(check_finds_double_use),
        cmocka_unit_test(bytes_of_exchange_and_butterfly),
        cmocka_unit_test(bytes_of_uneven_exchange),
        cmocka_unit_test(bytes_of_ring),
        cmocka_unit_test(bytes_of_root),
        cmocka_unit_test(the_first_alive_is_the_root),
        cmocka_unit_test(small_schedules),
        cmocka_unit_test(paths_allow_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
