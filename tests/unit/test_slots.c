/* SPDX-License-Identifier: Apache-2.0
 * A host's slots suffice, whatever happens. The board of one bucket runs as on one host of several:
 * its threads claim, compute and sum, operands of the others arrive in any order, and hosts die, at
 * moments that are drawn. In every other run operands arrive in pieces, as ferry/pieces.h has them.
 * At no moment are more slots taken than tree_kept and board.h count. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "crew/board.h"
#include "crew/head.h"
#include "crew/hosts.h"
#include "machine/tree.h"
#include "plan/transfer.h"

#define HOSTS 5
#define LANES 40
#define THREADS 3
#define NODES (2 * LANES)
#define SPARE 64 /* slots beyond those that suffice, so that the board shows how many it takes */
#define TURNS 20000

static uint64_t drawn;
static int draw(int n) { return (int)(random_u32(11, 0, drawn++) % (uint32_t)n); }

struct host {
    struct lane_tree tree;
    int hosts, self, threads, weight[HOSTS_MOST];
    int cut;      /* as in struct tree */
    bool by_path; /* what arrives is published with the root */
    int kept, suffice, most; /* slots */
    int slots;
    int32_t begin[HOSTS_MOST + 1];
    bool alive[HOSTS_MOST];
    int deaths; /* that may follow */
    claim_word word[NODES + 8 * LANES];
    _Atomic uint8_t mine[LANES];
    uint8_t keeps[NODES], has[HOSTS_MOST * (NODES + 1)];
    struct board board;
    struct transfers transfers;
    struct {
        int node, slot; /* node -1: it computes nothing */
    } thread[THREADS], arriving[NODES];
    int n_arriving;
};

static void schedule(struct host *h) {
    const struct transfer_share s = {.hosts = h->hosts, .begin = h->begin, .buckets = 1,
                                     .alive = h->alive, .weight = h->weight, .has = h->has};
    transfers_free(&h->transfers);
    assert_false(transfers_make(&h->tree, &s, &h->transfers));
}

/* even: hosts of the same threads and a power of two lanes, for which tree_kept has nothing if
 * tops are operands. */
static void make(struct host *h, bool even, bool with_kept) {
    memset(h, 0, sizeof *h);
    h->hosts = 2 + draw(HOSTS - 1);
    const int lanes = even ? 8 << draw(3) : 2 + draw(LANES - 1), threads = 1 + draw(THREADS);
    for (int i = 0; i < h->hosts; i++) {
        h->weight[i] = even ? threads : 1 + draw(THREADS);
        h->alive[i] = true;
    }
    h->self = draw(h->hosts);
    h->threads = h->weight[h->self];
    h->by_path = draw(2);
    h->cut = draw(2) ? -1 : 1 + draw(2);
    int levels = !h->by_path && h->cut < 0; /* else threads, or the ferry, make the root */
    while (levels && 1 << levels < h->hosts) levels++;
    assert_false(lane_tree_make(lanes, levels, &h->tree));
    const struct tree shared = {.shape = h->tree, .cut = h->cut};
    h->kept = with_kept ? tree_kept(&shared, h->hosts, h->weight) : 0;
    h->suffice = board_waiting(&h->tree, h->threads) + h->kept +
                 board_held(&h->tree, h->threads, 1, false);
    h->slots = h->suffice + SPARE;
    const struct board_words words = {h->word, h->word + h->tree.n_nodes, h->tree.n_nodes,
                                      h->slots};
    assert_true((size_t)(h->tree.n_nodes + h->slots) <= COUNT(h->word));
    board_bind(&h->board, &h->tree, &words, 0, h->threads);
    hosts_deal(&h->tree, h->cut, h->hosts, h->weight, h->begin);
    for (int i = 0; i < lanes; i++)
        h->mine[i] = h->begin[h->self] <= i && i < h->begin[h->self + 1] ? BOARD_MINE
                                                                         : BOARD_OTHERS;
    transfers_operands(&h->tree, h->hosts, h->begin, NULL, h->keeps);
    h->board.mine = h->mine;
    h->board.keeps = h->keeps;
    h->deaths = draw(h->hosts);
    for (int i = 0; i < THREADS; i++) h->thread[i].node = -1;
    schedule(h);
    if (h->transfers.n_operands < 2) h->by_path = false;
}

/* ---- what happens ---- */

static void take(struct host *h, int thread, int node) {
    h->thread[thread].node = node;
    if (node >= 0) h->thread[thread].slot = board_take(&h->board, 1, thread, node);
}

static void compute(struct host *h, int i) {
    const int node = h->thread[i].node;
    if (node < 0) {
        const int orphan = board_orphan(&h->board, 1, i);
        take(h, i, orphan >= 0 ? orphan : board_claim_lane(&h->board, 1, i));
        return;
    }
    const bool first = board_publish(&h->board, 1, i, node, h->thread[i].slot);
    take(h, i, first ? board_meet(&h->board, 1, i, node) : -1);
}

static bool is_own(const struct host *h, int node) {
    while (h->tree.node[node].left >= 0) node = h->tree.node[node].left;
    return h->mine[node];
}

/* An operand, or the root, begins to arrive, unless it does already, or is there. */
static void begin_arrival(struct host *h) {
    const int n = h->transfers.n_operands, k = draw(n + 1);
    const int node = k < n ? h->transfers.operand[k] : h->tree.n_nodes - 1;
    bool comes = h->by_path && !is_own(h, node);
    if (h->by_path && k == n) comes = true;
    for (int i = 0; i < h->transfers.n && !h->by_path; i++)
        comes |= h->transfers.all[i].to == h->self && h->transfers.all[i].node == node;
    for (int i = 0; i < h->n_arriving; i++) comes &= h->arriving[i].node != node;
    if (!comes || board_is_done(&h->board, 1, node)) return;
    h->arriving[h->n_arriving].node = node;
    h->arriving[h->n_arriving++].slot = board_take(&h->board, 1, CREW_FERRY, node);
}

/* By a path: once all is there. */
static void end_pieces(struct host *h) {
    const int root = h->tree.n_nodes - 1;
    int lacks = 1; /* the root */
    for (int k = 0; k < h->transfers.n_operands; k++) {
        const int node = h->transfers.operand[k];
        if (!is_own(h, node)) lacks++;
        else if (!board_is_done(&h->board, 1, node)) return;
    }
    if (h->n_arriving < lacks) return;
    for (; h->n_arriving--;) {
        const int node = h->arriving[h->n_arriving].node, slot = h->arriving[h->n_arriving].slot;
        if (node != root) board_drop(&h->board, 1, CREW_FERRY, node, slot);
        else board_publish_whole(&h->board, 1, CREW_FERRY, node, slot);
    }
    h->n_arriving = 0;
}

static void end_arrival(struct host *h) {
    const int i = draw(h->n_arriving);
    board_publish_whole(&h->board, 1, CREW_FERRY, h->arriving[i].node, h->arriving[i].slot);
    h->arriving[i] = h->arriving[--h->n_arriving];
}

/* What was arriving is dropped, and the rest of the step is dealt anew. */
static void die(struct host *h) {
    const int victim = draw(h->hosts), n = h->transfers.n_operands;
    if (victim == h->self || !h->alive[victim]) return;
    h->alive[victim] = false;
    h->deaths--;
    while (h->n_arriving--)
        board_drop(&h->board, 1, CREW_FERRY, h->arriving[h->n_arriving].node,
                   h->arriving[h->n_arriving].slot);
    h->n_arriving = 0;
    h->by_path = false;
    bool own = true; /* are done */
    for (int k = 0; k < n; k++)
        own &= !is_own(h, h->transfers.operand[k]) ||
               board_is_done(&h->board, 1, h->transfers.operand[k]);
    for (int i = 0; i < h->hosts; i++) {
        h->has[i * (n + 1) + n] = i == h->self ? board_is_done(&h->board, 1, h->tree.n_nodes - 1)
                                               : h->alive[i] && own && !draw(4);
        for (int k = 0; k < n; k++)
            h->has[i * (n + 1) + k] =
                i == h->self ? board_holds(&h->board, 1, h->transfers.operand[k])
                             : h->alive[i] && !draw(3);
    }
    schedule(h);
    for (int lane = 0; lane < h->tree.lanes; lane++)
        if (h->transfers.again[lane] == h->self) h->mine[lane] = BOARD_AGAIN;
}

static void count(struct host *h) {
    int taken = 0;
    for (int i = 0; i < h->slots; i++) taken += claim_read(&h->board.slot[i]).state != CLAIM_FREE;
    if (taken > h->most) h->most = taken;
}

static bool is_complete(struct host *h) {
    int failed;
    return board_complete(&h->board, 1, &failed);
}

static void run(struct host *h) {
    for (int turn = 0; !is_complete(h); turn++) {
        assert_true(turn < TURNS);
        const int what = draw(h->threads + 3);
        if (what < h->threads) compute(h, what);
        else if (what == h->threads + 2) { if (h->deaths && !draw(20)) die(h); }
        else if (h->n_arriving && draw(2)) (h->by_path ? end_pieces : end_arrival)(h);
        else if (!draw(4)) begin_arrival(h);
        count(h);
    }
}

/* How many of so many runs need more slots than suffice. */
static int count_lacking(int runs, bool even, bool with_kept) {
    static struct host h;
    int lacking = 0;
    for (int i = 0; i < runs; i++) {
        drawn = (uint64_t)i << 32;
        make(&h, even, with_kept);
        run(&h);
        lacking += h.most > h.suffice;
        transfers_free(&h.transfers);
        lane_tree_free(&h.tree);
    }
    return lacking;
}

static int runs_of(int runs) { return getenv("SLOW") ? 100 * runs : runs; }

static void test_suffice(void **state) {
    (void)state;
    assert_int_equal(count_lacking(runs_of(5000), false, true), 0);
}

static void test_suffice_for_equal_hosts(void **state) {
    (void)state;
    assert_int_equal(count_lacking(runs_of(5000), true, true), 0);
}

static void test_kept_ones_are_needed(void **state) {
    (void)state;
    assert_true(count_lacking(500, false, false) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_suffice),
        cmocka_unit_test(test_suffice_for_equal_hosts),
        cmocka_unit_test(test_kept_ones_are_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
