/* SPDX-License-Identifier: Apache-2.0
 * The row in process can be enumerated: all orders of what may happen between hosts, with a cut,
 * a death or an end at any moment. In each order the rules of link/link.h hold. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include "link/bed.h"

#define MESSAGES 2 /* of host 0; host 1 has one */
#define MOST_CHOICES 64

enum trouble { NONE, CUT, KILL, END, TROUBLES };

static struct bed b;
static char payload[2][MESSAGES][4];
static struct {
    int arrived, sent, ended;
} of[2];

/* The path through the tree of choices: at depth d, choice taken[d] of open[d]. */
static int taken[MOST_CHOICES], open_at[MOST_CHOICES], depth, used;

static int choose(int n) {
    assert_true(depth < MOST_CHOICES);
    if (depth == used) taken[used++] = 0;
    open_at[depth] = n;
    return taken[depth++];
}

static bool next_path(void) {
    while (used && taken[used - 1] + 1 == open_at[used - 1]) used--;
    if (used) taken[used - 1]++;
    depth = 0;
    return used;
}

static void look(int host, const struct link_event *e) {
    assert_int_equal(of[host].ended, 0); /* nothing follows the end */
    if (e->what == LINK_SENT) {
        assert_ptr_equal(e->token, payload[host][of[host].sent++]);
        memset(e->token, 'x', 4);
    } else if (e->what == LINK_ARRIVED) {
        assert_int_equal(e->header.item, of[host].arrived++);
        assert_memory_equal(e->at, "abcd", 4);
    } else {
        assert_int_equal(e->what, LINK_ENDED);
        of[host].ended++;
    }
}

static void take_events(int host) {
    struct link_event e = {.what = LINK_SENT};
    while (b.l[host] && e.what != LINK_NOTHING) {
        assert_int_equal(link_next(b.l[host], &e), TRI_OK);
        if (e.what != LINK_NOTHING) look(host, &e);
    }
}

static void cause(enum trouble t) {
    if (t == CUT) world_cut(b.world, 0, 1);
    if (t == END) link_end(b.l[1], 0);
    if (t != KILL) return;
    link_close(b.l[1]);
    b.l[1] = NULL;
}

static void run(enum trouble t) {
    bool caused = t == NONE;
    memset(of, 0, sizeof of);
    bed_open(&b, &link_local, 2);
    bed_join(&b, 1, 0);
    world_by_itself(b.world, false);
    for (int host = 0; host < 2; host++)
        for (int i = 0; i < (host ? 1 : MESSAGES); i++) {
            const struct link_header h = {.kind = LINK_USER, .item = (uint32_t)i};
            char *p = memcpy(payload[host][i], "abcd", 4);
            assert_int_equal(link_send(b.l[host], 1 - host, &h, p, 4, p), TRI_OK);
        }
    for (int moves; (moves = world_moves(b.world)) || !caused;) {
        int choice = choose(moves + !caused);
        if (choice < moves) world_move(b.world, choice);
        else cause(t), caused = true;
        for (int host = 0; host < 2; host++) take_events(host);
    }
    if (t == NONE) {
        assert_true(of[1].arrived == MESSAGES && of[0].arrived == 1);
        assert_true(of[0].sent == MESSAGES && of[1].sent == 1);
    }
    assert_int_equal(of[0].ended, t != NONE);
    assert_int_equal(of[1].ended, t == CUT);
    bed_close(&b);
}

static void all_orders(void **state) {
    static const char *const name[] = {"none", "a cut", "a death", "an end"};
    long paths[TROUBLES] = {0};
    (void)state;
    for (enum trouble t = NONE; t < TROUBLES; t++) {
        do run(t), paths[t]++;
        while (next_path());
        print_message("%s: %ld orders\n", name[t], paths[t]);
        assert_true(paths[t] > 50);
        if (t == CUT) assert_true(paths[t] > paths[NONE]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_orders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
