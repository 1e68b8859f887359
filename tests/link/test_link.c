/* SPDX-License-Identifier: Apache-2.0
 * What every row of links does: one suite, run for each. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <sys/socket.h>

#include "link/bed.h"
#include "link/wire.h"

static struct bed b;

/* Messages that were sent, and are freed when the test is over. */
static void *sent[4096];
static size_t n_sent;

static void give(int from, int to, size_t n, unsigned of) {
    assert_true(n_sent < COUNT(sent));
    sent[n_sent++] = bed_send(&b, from, to, n, of);
}

static void begin(void **state, int hosts) {
    bed_open(&b, *state, hosts);
    bed_join_all(&b);
}

static void over(void) {
    bed_close(&b);
    while (n_sent) free(sent[--n_sent]);
}

static void messages_of_all_sizes(void **state) {
    const size_t sizes[] = {0, 1, 80, WIRE_PIECE - 1, WIRE_PIECE, WIRE_PIECE + 1, (3u << 20) + 7,
                            0, MOST};
    begin(state, 2);
    for (unsigned i = 0; i < COUNT(sizes); i++) {
        give(i % 2, 1 - i % 2, sizes[i], i);
        bed_arrives(&b, 1 - i % 2, i % 2, sizes[i], i);
    }
    for (unsigned i = 0; i < COUNT(sizes); i++) give(0, 1, sizes[i], i);
    for (unsigned i = 0; i < COUNT(sizes); i++) bed_arrives(&b, 1, 0, sizes[i], i);
    bed_expects_nothing(&b, 0);
    bed_expects_nothing(&b, 1);
    over();
}

static void a_message_of_a_gigabyte(void **state) {
    bed_open(&b, *state, 0);
    b.hosts = 2;
    if (*state == &link_local) assert_int_equal(world_open(2, 1, &b.world), TRI_OK);
    for (int i = 0; i < 2; i++) {
        struct link_options o = bed_options(&b, i);
        o.most = 1u << 30;
        assert_int_equal(link_open(*state, &o, &b.l[i]), TRI_OK);
    }
    bed_join_all(&b);
    give(0, 1, 1u << 30, 1);
    bed_arrives(&b, 1, 0, 1u << 30, 1);
    over();
}

/* Both ways at once; each pair's in order; each token comes back once. */
static void in_order(void **state) {
    enum { N = 300 };
    bool back[2 * N] = {0};
    begin(state, 2);
    for (unsigned i = 0; i < N; i++) {
        give(0, 1, i * 97 % 5000, i);
        give(1, 0, i * 89 % 5000, i);
    }
    bed_settle(&b);
    for (int host = 0; host < 2; host++)
        for (size_t i = 0; i < b.seen[host].n; i++)
            for (int k = 0; k < 2 * N && b.seen[host].event[i].what == LINK_SENT; k++)
                if (b.seen[host].event[i].token == sent[k]) {
                    assert_int_equal(k % 2, host);
                    assert_false(back[k]);
                    back[k] = true;
                }
    for (unsigned i = 0; i < N; i++) {
        assert_true(back[2 * i] && back[2 * i + 1]);
        bed_arrives(&b, 1, 0, i * 97 % 5000, i);
        bed_arrives(&b, 0, 1, i * 89 % 5000, i);
    }
    over();
}

/* Of all sockets of this process: then what is sent at once has several parts. */
static void small_buffers(void) {
    const int bytes = 20000;
    for (int fd = 3; fd < 100; fd++) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

/* The memory is the sender's again as soon as LINK_SENT says so, and not before. */
static void borrowed_until_sent(void **state) {
    enum { BYTES = 100000, N = 12 };
    int back = 0;
    begin(state, 2);
    small_buffers();
    for (unsigned i = 0; i < N; i++) give(0, 1, BYTES, i);
    for (double late = base_seconds() + 20; back < N; assert_true(base_seconds() < late)) {
        if (!bed_turn(&b)) bed_sleep(&b, 1);
        for (struct seen *s = &b.seen[0]; s->first < s->n; s->first++, back++) {
            assert_int_equal(s->event[s->first].what, LINK_SENT);
            memset(s->event[s->first].token, -1, BYTES);
        }
    }
    for (unsigned i = 0; i < N; i++) bed_arrives(&b, 1, 0, BYTES, i);
    over();
}

static void what_nobody_wants_is_dropped(void **state) {
    begin(state, 2);
    b.drops = true;
    for (unsigned i = 0; i < 40; i++) give(0, 1, i % 4 < 2 ? 3 * WIRE_PIECE : i % 4 - 2, i);
    for (unsigned i = 0; i < 40; i += 2) bed_arrives(&b, 1, 0, i % 4 ? 0 : 3 * WIRE_PIECE, i);
    bed_expects_nothing(&b, 1);
    over();
}

/* The receiver has no place yet: the sender waits, nobody else does, and nothing is lost. */
static void later(void **state) {
    const size_t sizes[] = {5, 0, 2 * WIRE_PIECE};
    begin(state, 3);
    for (unsigned round = 0; round < 6; round++) {
        b.later[0] = true;
        for (unsigned i = 0; i < 3; i++) give(0, 1, sizes[(i + round) % 3], i);
        give(2, 1, 9, 1);
        bed_arrives(&b, 1, 2, 9, 1);
        bed_expects_nothing(&b, 1);
        if (!round) bed_idles(&b);
        link_resume(b.l[1], 0); /* it is asked, and says the same again */
        bed_expects_nothing(&b, 1);
        b.later[0] = false;
        link_resume(b.l[1], 0);
        link_resume(b.l[1], 2);
        for (unsigned i = 0; i < 3; i++) bed_arrives(&b, 1, 0, sizes[(i + round) % 3], i);
    }
    b.later[0] = true;
    give(0, 1, 100, 1);
    bed_settle(&b);
    link_end(b.l[1], 0);
    bed_next_of(&b, 0, LINK_ENDED, 1);
    over();
}

/* At once, to all who are left. */
static void a_death_is_told(void **state) {
    begin(state, 3);
    give(0, 1, 4, 1);
    bed_arrives(&b, 1, 0, 4, 1);
    const double begun = base_seconds();
    link_close(b.l[0]);
    b.l[0] = NULL;
    for (int i = 1; i < 3; i++) assert_true(strlen(bed_next_of(&b, i, LINK_ENDED, 0).why) > 5);
    assert_true(base_seconds() - begun < 2);
    give(1, 2, 4, 1);
    bed_arrives(&b, 2, 1, 4, 1);
    give(1, 0, 4, 1); /* as if it had not looked yet */
    bed_expects_nothing(&b, 1);
    over();
}

/* A host that leaves has sent all that others still need of it, whether they have a place for it
 * yet or not; also if it has not read what was sent to it. UCX ends an endpoint with its peer. */
static void sent_before_the_end(void **state) {
    if (*state == &link_ucx) return;
    begin(state, 2);
    b.later[0] = b.later[1] = true;
    give(0, 1, 3000, 1);
    give(1, 0, 3000, 2);
    bed_settle(&b);
    link_close(b.l[0]);
    b.l[0] = NULL;
    bed_settle(&b);
    bed_expects_nothing(&b, 1);
    b.later[0] = false;
    link_resume(b.l[1], 0);
    bed_arrives(&b, 1, 0, 3000, 1);
    bed_next_of(&b, 1, LINK_ENDED, 0);
    over();
}

/* It is no signal, also if the end has not been read. */
static void sending_to_the_dead(void **state) {
    begin(state, 2);
    b.later[0] = true;
    give(0, 1, 3000, 1);
    bed_settle(&b);
    link_close(b.l[0]);
    b.l[0] = NULL;
    for (unsigned i = 0; i < 50; i++) give(1, 0, 100000, i);
    b.later[0] = false;
    if (b.world) link_resume(b.l[1], 0);
    if (b.world) bed_arrives(&b, 1, 0, 3000, 1);
    bed_next_of(&b, 1, LINK_ENDED, 0);
    give(1, 0, 10, 1);
    bed_expects_nothing(&b, 1);
    over();
}

/* Not even what had happened before. */
static void nothing_follows_an_end(void **state) {
    begin(state, 3);
    for (int round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 30; i++) give(0, 1, 10, i);
        give(2, 1, 10, 4);
        for (int i = 0; i < round; i++) bed_turn(&b);
        link_end(b.l[1], 0);
        b.epoch++;
        struct seen *s = &b.seen[1];
        size_t n = s->first;
        for (size_t i = s->first; i < s->n; i++) /* those of before the end */
            if (s->event[i].host == 2) s->event[n++] = s->event[i];
        s->n = n;
        bed_arrives(&b, 1, 2, 10, 4);
        bed_expects_nothing(&b, 1);
        bed_next_of(&b, 0, LINK_ENDED, 1);
        bed_join(&b, 1, 0);
    }
    over();
}

/* Some of the large messages may have arrived; none arrives in part. */
static void an_end_in_the_middle(void **state) {
    begin(state, 2);
    for (unsigned i = 0; i < 4; i++) give(0, 1, MOST, i);
    for (int i = 0; i < 3; i++) bed_turn(&b);
    link_end(b.l[0], 1);
    memset(sent[3], 0, MOST); /* borrowed no longer */
    for (unsigned i = 0;; i++) {
        struct seen *s = &b.seen[1];
        while (s->first == s->n)
            if (!bed_turn(&b)) bed_sleep(&b, 100);
        if (s->event[s->first].what == LINK_ENDED) break;
        assert_true(i < (b.world ? 4 : 3));
        bed_arrives(&b, 1, 0, MOST, i);
    }
    bed_next_of(&b, 1, LINK_ENDED, 0);
    bed_expects_nothing(&b, 0);
    over();
}

static void again_after_an_end(void **state) {
    begin(state, 3);
    for (unsigned i = 0; i < 5; i++) {
        give(1, 0, 100, 2 * i);
        bed_arrives(&b, 0, 1, 100, 2 * i);
        link_end(b.l[i % 2], 1 - (int)(i % 2));
        bed_next_of(&b, 1 - (int)(i % 2), LINK_ENDED, (int)(i % 2));
        b.epoch++;
        bed_join(&b, 1, 0);
        give(0, 1, 100, 2 * i);
        bed_arrives(&b, 1, 0, 100, 2 * i);
    }
    for (int i = 0; i < 2; i++) link_end(b.l[i], 1 - i); /* both */
    for (int i = 0; i < 2; i++) bed_expects_nothing(&b, i);
    bed_join(&b, 1, 0);
    bed_expects_nothing(&b, 2);
    over();
}

static void call(int host, int peer, uint32_t epoch) {
    assert_int_equal(link_peer(b.l[host], peer, epoch, link_address(b.l[peer])), TRI_OK);
}

/* Whoever is first waits for the other; and nothing of an older epoch joins. */
static void a_session_has_an_epoch(void **state) {
    bed_open(&b, *state, 2);
    b.counts_refused = true;
    for (int first = 0; first < 2; first++) {
        uint32_t epoch = 10 * (uint32_t)first;
        call(first, 1 - first, epoch + 2);
        call(1 - first, first, epoch + 1);
        bed_settle(&b);
        if (!b.world && !first) /* the older attempt has been refused */
            assert_int_equal(bed_next(&b, 1, LINK_ENDED).host, 0);
        for (int i = 0; i < 2; i++)
            for (struct seen *s = &b.seen[i]; s->first < s->n; s->first++)
                assert_true(s->event[s->first].what == LINK_REFUSED ||
                            (s->event[s->first].what == LINK_ENDED && i != first));
        link_end(b.l[1 - first], first);
        call(1 - first, first, epoch + 2);
        bed_next_of(&b, 0, LINK_JOINED, 1);
        bed_next_of(&b, 1, LINK_JOINED, 0);
        give(1, 0, 100, 2);
        bed_arrives(&b, 0, 1, 100, 2);
        link_end(b.l[0], 1);
        bed_next_of(&b, 1, LINK_ENDED, 0);
    }
    over();
}

/* An errno that an earlier call has left means nothing. */
static void close_after_a_stale_errno(void **state) {
    const int stale[] = {EAGAIN, EINTR, ECONNRESET, ENOMEM};
    for (size_t i = 0; i < COUNT(stale); i++) {
        begin(state, 2);
        b.stale = stale[i];
        give(1, 0, 10, 4);
        bed_arrives(&b, 0, 1, 10, 4);
        bed_settle(&b);
        link_close(b.l[0]);
        b.l[0] = NULL;
        struct link_event e = bed_next_of(&b, 1, LINK_ENDED, 0);
        assert_null(strstr(e.why, strerror(stale[i])));
        over();
    }
}

/* It has no effect on others, and its memory comes back when the session is ended. */
static void a_peer_that_stops_reading(void **state) {
    begin(state, 3);
    b.deaf[1] = true;
    if (b.world) world_delay(b.world, 0, 1, true);
    for (unsigned i = 0; i < 6; i++) {
        give(0, 1, MOST, i);
        give(0, 2, 300000, i);
        bed_arrives(&b, 2, 0, 300000, i);
    }
    if (!b.world) bed_idles(&b); /* nor does it cost processor time */
    link_end(b.l[0], 1);
    for (size_t i = 0; i < n_sent; i++) memset(sent[i], 0, 300000);
    give(2, 0, 7, 2);
    bed_arrives(&b, 0, 2, 7, 2);
    over();
}

static void longer_than_the_peer_takes(void **state) {
    bed_open(&b, *state, 2);
    link_close(b.l[1]);
    struct link_options o = bed_options(&b, 1);
    o.most = 1000;
    assert_int_equal(link_open(*state, &o, &b.l[1]), TRI_OK);
    bed_join_all(&b);
    give(0, 1, 1000, 1);
    bed_arrives(&b, 1, 0, 1000, 1);
    give(0, 1, 1001, 1);
    assert_non_null(strstr(bed_next_of(&b, 1, LINK_ENDED, 0).why,
                           "a message of 1001 bytes; the most is 1000"));
    bed_next_of(&b, 0, LINK_ENDED, 1);
    over();
}

static void send_numbers(int from, uint32_t step, const float numbers[64]) {
    const struct link_header h = {.kind = LINK_SUM, .step = step};
    for (int to = 0; to < HOSTS; to++)
        if (to != from)
            assert_int_equal(link_send(b.l[from], to, &h, numbers, 64 * sizeof *numbers, NULL), 0);
}

/* Each host sends its numbers to all others, and goes on to the next sum when it has theirs. */
static void thousands_of_sums(void **state) {
    const uint32_t sums = getenv("SLOW") ? 10000 : 1500;
    uint32_t step[HOSTS] = {0};
    int have[HOSTS][2] = {{0}}, over_for = 0; /* have: of this step and the next */
    float numbers[HOSTS][64];
    double latest = 0, last = base_seconds();
    begin(state, HOSTS);
    for (int i = 0; i < HOSTS; i++) {
        for (int j = 0; j < 64; j++) numbers[i][j] = (float)(i + j);
        send_numbers(i, 0, numbers[i]);
    }
    for (int i = 0; over_for < HOSTS; i = (i + 1) % HOSTS) {
        if (!i && !bed_turn(&b)) assert_true(bed_sleep(&b, 1000));
        for (struct seen *s = &b.seen[i]; s->n; s->first = s->n = 0)
            for (size_t k = s->first; k < s->n; k++) {
                const struct link_event *e = &s->event[k];
                if (e->what == LINK_SENT) continue;
                assert_int_equal(e->what, LINK_ARRIVED);
                assert_in_range(e->header.step, step[i], step[i] + 1);
                assert_memory_equal(e->at, numbers[e->host], sizeof numbers[0]);
                have[i][e->header.step % 2]++;
            }
        if (step[i] == sums || have[i][step[i] % 2] < HOSTS - 1) continue;
        have[i][step[i] % 2] = 0;
        if (++step[i] == sums) over_for++;
        else send_numbers(i, step[i], numbers[i]);
        if (base_seconds() - last > latest) latest = base_seconds() - last;
        last = base_seconds();
    }
    if (latest > 5) fail_msg("a sum was late by %.2f s", latest);
    over();
}

static void idle(void **state) {
    begin(state, HOSTS);
    give(0, 1, 10, 1);
    bed_arrives(&b, 1, 0, 10, 1);
    bed_settle(&b);
    bed_idles(&b);
    over();
}

#define ROWS 3
static const struct {
    const char *name;
    const struct link_row *row;
} rows[ROWS] = {{"in process", &link_local}, {"tcp", &link_tcp}, {"ucx", &link_ucx}};
#define TEST(f) {#f, f}
static const struct {
    const char *name;
    CMUnitTestFunction run;
} tests[] = {
    TEST(messages_of_all_sizes), TEST(a_message_of_a_gigabyte), TEST(in_order),
    TEST(borrowed_until_sent), TEST(what_nobody_wants_is_dropped), TEST(later),
    TEST(a_death_is_told), TEST(an_end_in_the_middle),
    TEST(sent_before_the_end), TEST(sending_to_the_dead), TEST(nothing_follows_an_end),
    TEST(again_after_an_end),
    TEST(a_session_has_an_epoch), TEST(close_after_a_stale_errno), TEST(a_peer_that_stops_reading),
    TEST(longer_than_the_peer_takes), TEST(thousands_of_sums), TEST(idle),
};

int main(void) {
    static struct CMUnitTest all[ROWS * COUNT(tests)];
    static char name[ROWS * COUNT(tests)][80];
    const struct link_row *ucx;
    const size_t there = link_row_find(LINK_UCX, &ucx) ? ROWS - 1 : ROWS;
    size_t n = 0;
    if (there < ROWS) printf("ok ucx # skipped: %s\n", tri_message());
    for (size_t i = 0; i < COUNT(tests); i++)
        for (size_t k = 0; k < there; k++, n++) {
            if (tests[i].run == a_message_of_a_gigabyte && !getenv("SLOW")) continue;
            if (getenv("ONLY") && strcmp(getenv("ONLY"), tests[i].name)) continue;
            snprintf(name[n], sizeof name[n], "%s: %s", rows[k].name, tests[i].name);
            all[n] = (struct CMUnitTest){.name = name[n], .test_func = tests[i].run,
                                         .initial_state = (void *)(uintptr_t)rows[k].row};
        }
    return cmocka_run_group_tests(all, NULL, NULL);
}
