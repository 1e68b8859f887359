/* SPDX-License-Identifier: Apache-2.0
 * Control connections against what networks and strangers do: bytes that are changed, repeated, cut
 * off, random or slow, wrong keys, lengths of 2^63, connections that say nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include "link/control_bed.h"
#include "link/secret.h"

#define GREETING (SECRET_HELLO + SECRET_PROOF) /* what either side sends before messages */

static const uint8_t other_key[LINK_KEY] = "another0123456789abcdefghijklmno";

/* ---- the network ---- */

/* Side 1 connects to side 0 through the net. */
static int begin_net(void) {
    begin(3);
    net_begin(bed_address(), turn);
    net.greeting = GREETING;
    return connect_to(1, net.address);
}

static struct pair begin_joined(void) {
    int here = begin_net();
    assert_int_equal(next(1, CONTROL_JOINED).conn, here);
    return (struct pair){here, next(0, CONTROL_JOINED).conn};
}

static void any_changed_bit_ends_it(void **state) {
    (void)state;
    const size_t at[] = {1, 9, SECRET_LENGTH, SECRET_LENGTH + 1, SECRET_LENGTH + 500,
                         SECRET_LENGTH + 1000 + SECRET_MORE};
    for (size_t i = 0; i < COUNT(at); i++) {
        int here = begin_net();
        net.flip = GREETING + at[i];
        next(1, CONTROL_JOINED);
        struct pair p = {here, next(0, CONTROL_JOINED).conn};
        send_to(1, p.here, 1000, 2);
        ends(0, p.there, false, "its bytes were changed on the way");
        ends(1, p.here, false, "");
        expect_nothing(0);
        over();
    }
}

static void a_changed_greeting_is_refused(void **state) {
    (void)state;
    for (size_t at = 1; at <= GREETING; at += 8) {
        int here = begin_net();
        net.flip = at;
        bool proves = at > SECRET_HELLO; /* to side 1 all is right */
        if (proves) assert_int_equal(next(1, CONTROL_JOINED).conn, here);
        next(0, CONTROL_REFUSED);
        next(1, CONTROL_ENDED);
        expect_nothing(0);
        over();
    }
}

static void a_message_counts_once(void **state) {
    (void)state;
    for (int back = 0; back < 2; back++) {
        struct pair p = begin_joined();
        net.again = GREETING;
        net.again_n = secret_size(100);
        net.back = back;
        send_to(1, p.here, 100, 2);
        if (!back) arrives(0, p.there, 100, 2);
        ends(back, back ? p.here : p.there, false, "its bytes were changed on the way");
        over();
    }
}

/* A message of an earlier connection in the place of one of this; and all bytes of one again. */
static void a_connection_counts_once(void **state) {
    (void)state;
    struct pair p = begin_joined();
    char *old = malloc(sizeof net.record);
    send_to(1, p.here, 100, 2);
    arrives(0, p.there, 100, 2);
    memcpy(old, net.record, sizeof net.record);
    over();
    p = begin_joined();
    net.old = old;
    send_to(1, p.here, 100, 4);
    ends(0, p.there, false, "its bytes were changed on the way");
    int fd = net_stranger(bed_address());
    net_put_all(fd, old, GREETING + secret_size(100));
    assert_non_null(strstr(next(0, CONTROL_REFUSED).why, "it has another key"));
    ends(1, p.here, false, "");
    expect_nothing(0);
    close(fd);
    free(old);
    over();
}

/* Who replays the listener's side proves nothing either. */
static void a_false_coordinator(void **state) {
    (void)state;
    uint8_t answer[GREETING];
    struct secret s, good;
    begin(2);
    enum secret_event event;
    assert_int_equal(secret_begin(&good, key, 10, true), TRI_OK); /* an older greeting's answer */
    assert_int_equal(secret_begin(&s, key, 10, false), TRI_OK);
    memcpy(s.in, good.greeting, SECRET_HELLO);
    assert_int_equal(secret_got(&s, SECRET_HELLO, &event), TRI_OK);
    assert_int_equal(s.n_greeting, GREETING);
    memcpy(answer, s.greeting, GREETING);
    net_begin("127.0.0.1:0", turn);
    int conn = connect_to(1, net.address), fd = -1;
    while (fd < 0) fd = accept(net.listener, NULL, NULL);
    net.busy = true;
    net_put_all(fd, answer, GREETING);
    ends(1, conn, false, "it has another key");
    char got[2 * GREETING];
    assert_int_equal(recv(fd, got, sizeof got, 0), SECRET_HELLO); /* and so it shows nothing */
    close(fd);
    secret_free(&s);
    secret_free(&good);
    over();
}

static void cut_inside_a_message(void **state) {
    (void)state;
    const size_t at[] = {7, SECRET_LENGTH, SECRET_LENGTH + 40000};
    for (size_t i = 0; i < COUNT(at); i++)
        for (int reset = 0; reset < 2; reset++) {
            struct pair p = begin_joined();
            net.cut = GREETING + at[i];
            net.reset = reset;
            send_to(1, p.here, 60000, 2);
            ends(0, p.there, false,
                 reset ? strerror(ECONNRESET) : "it closed the connection inside a message");
            ends(1, p.here, false, "");
            expect_nothing(0);
            over();
        }
}

/* Slow is no end; and others do not wait for it. */
static void a_byte_at_a_time(void **state) {
    (void)state;
    int here = begin_net();
    net.slow = 1;
    struct pair p = {here, -1};
    assert_int_equal(next(1, CONTROL_JOINED).conn, here);
    p.there = next(0, CONTROL_JOINED).conn;
    send_to(1, p.here, 60, 2);
    net.busy = true;
    struct pair q = join(2);
    net.busy = false;
    for (unsigned i = 0; i < 8; i++) {
        send_to(2, q.here, 100, i);
        arrives(0, q.there, 100, i);
    }
    assert_true(net.passed[0] < GREETING + secret_size(60));
    arrives(0, p.there, 60, 2);
    over();
}

/* ---- strangers ---- */

static void another_key(void **state) {
    (void)state;
    begin(3);
    struct control_options o = options(false);
    o.key = other_key;
    open_with(1, o);
    int conn = connect_to(1, bed_address());
    ends(1, conn, false, "it has another key");
    struct control_event e = next(0, CONTROL_REFUSED);
    assert_non_null(strstr(e.why, "refused 1 connection; the last from 127.0.0.1:"));
    assert_non_null(strstr(e.why, "it closed the connection before it had shown its key"));
    join(2);
    over();
}

/* A blocking socket whose hello side 0 has answered; the answer is in s->in, and not looked at. */
static int half_greeted(struct secret *s, const uint8_t *with) {
    int fd = net_stranger(bed_address());
    assert_int_equal(secret_begin(s, with, 10, true), TRI_OK);
    net_put_all(fd, s->greeting, s->n_greeting);
    for (size_t have = 0; have < GREETING;) {
        turn();
        ssize_t got = recv(fd, s->in + have, GREETING - have, MSG_DONTWAIT);
        if (got > 0) have += (size_t)got;
    }
    return fd;
}

/* A peer with the key, which does as it likes. */
static int raw_peer(struct secret *s, int *conn) {
    int fd = half_greeted(s, key);
    enum secret_event event;
    assert_int_equal(secret_got(s, GREETING, &event), TRI_OK);
    assert_int_equal(event, SECRET_JOINED);
    net_put_all(fd, s->greeting, s->n_greeting);
    *conn = next(0, CONTROL_JOINED).conn;
    return fd;
}

/* The proof by another key, or what the listener itself has proved with. */
static void no_proof(void **state) {
    (void)state;
    for (int echo = 0; echo < 2; echo++) {
        begin(1);
        struct secret s;
        enum secret_event event;
        int fd = half_greeted(&s, other_key);
        assert_int_equal(secret_got(&s, GREETING, &event), TRI_FAILED);
        net_put_all(fd, echo ? s.in + SECRET_HELLO : s.greeting, SECRET_PROOF);
        assert_non_null(strstr(next(0, CONTROL_REFUSED).why, "it has another key"));
        expect_nothing(0);
        close(fd);
        secret_free(&s);
        over();
    }
}

static void another_protocol(void **state) {
    (void)state;
    const char *hello[] = {"GET / HTTP/1.1\r\n", "TRICTRL\n\2\0\0\0"};
    const char *why[] = {"it is no trireme", "it speaks version 2 of the protocol, this host 1"};
    for (size_t i = 0; i < COUNT(hello); i++) {
        char text[SECRET_HELLO] = {0};
        memcpy(text, hello[i], 12);
        begin(1);
        int fd = net_stranger(bed_address());
        net_put_all(fd, text, sizeof text);
        assert_non_null(strstr(next(0, CONTROL_REFUSED).why, why[i]));
        close(fd);
        over();
    }
}

/* Three hundred of them, while others work: one line, and no event else. */
static void hostile_connections(void **state) {
    (void)state;
    enum { N = 100 };
    int fd[N];
    begin(2);
    struct pair p = join(1);
    counts = true;
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < N; i++) {
            char *noise = bytes_of(3000, i * 3 + round);
            if (i % 3 == 1) memcpy(noise, "TRICTRL\n\1\0\0\0\0\0\0\0", 16); /* a right begin */
            fd[i] = net_stranger(bed_address());
            if (i % 3) send(fd[i], noise, i % 3 == 1 && i % 2 ? 47 : 3000, MSG_NOSIGNAL);
            free(noise);
            send_to((int)i % 2, i % 2 ? p.here : p.there, 1000, i);
            arrives(1 - (int)i % 2, i % 2 ? p.there : p.here, 1000, i);
        }
        for (int i = 0; i < N; i++) close(fd[i]);
    }
    expect_nothing(0);
    expect_nothing(1);
    assert_int_equal(refused, 1);
    over();
}

/* A hundred that say nothing keep nobody from joining, nor take the place of those who have. */
static void idle_connections(void **state) {
    (void)state;
    int fd[100];
    begin(3);
    struct pair p = join(1);
    for (size_t i = 0; i < COUNT(fd); i++) fd[i] = net_stranger(bed_address());
    settle();
    assert_non_null(strstr(next(0, CONTROL_REFUSED).why, "it said nothing"));
    struct pair q = join(2);
    int open = 0;
    for (size_t i = 0; i < COUNT(fd); i++) {
        char byte;
        open += recv(fd[i], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
        close(fd[i]);
    }
    assert_in_range(open, 31, 32); /* one gave way to the last that has joined */
    send_to(1, p.here, 10, 1);
    arrives(0, p.there, 10, 1);
    send_to(2, q.here, 10, 1);
    arrives(0, q.there, 10, 1);
    expect_nothing(0);
    over();
}

/* They have a time for all of their greeting, not for each byte; and so has who answers slowly. */
static void slow_greetings(void **state) {
    (void)state;
    begin(2);
    struct control_options o = options(true);
    o.patience = 60000000;
    open_with(0, o);
    int fd = net_stranger(bed_address());
    double begun = base_seconds();
    while (side[0].first == side[0].n) {
        send(fd, "T", 1, MSG_NOSIGNAL);
        if (!turn()) nap(5);
        assert_true(base_seconds() < begun + 5);
    }
    assert_non_null(strstr(next(0, CONTROL_REFUSED).why, "it did not finish its greeting"));
    assert_true(base_seconds() - begun >= 0.06);
    close(fd);
    struct pair p = join(1); /* which may then be silent */
    for (double until = base_seconds() + 0.08; base_seconds() < until;)
        if (!turn()) nap(10);
    send_to(1, p.here, 10, 1);
    arrives(0, p.there, 10, 1);
    o.listens = false;
    open_with(1, o);
    ends(0, p.there, false, "");
    net_begin("127.0.0.1:0", turn);
    net.busy = true; /* the kernel takes the connection, and nobody answers */
    int conn = connect_to(1, net.address);
    ends(1, conn, false, "it did not finish its greeting");
    over();
}

/* Of a peer that has the key: the most that 64 bits can say, and one byte too many. */
static void lengths_too_large(void **state) {
    (void)state;
    const uint64_t lengths[] = {1ull << 63, ~0ull, CONTROL_MOST + 1};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        struct secret s;
        uint8_t frame[SECRET_LENGTH];
        int conn, fd;
        begin(1);
        fd = raw_peer(&s, &conn);
        secret_put_length(&s, lengths[i], false, frame);
        net_put_all(fd, frame, sizeof frame);
        ends(0, conn, false, "; the most is 8388608");
        close(fd);
        secret_free(&s);
        over();
    }
}

/* What follows the end of a peer's stream is not read, and keeps nobody awake. */
static void bytes_after_the_end(void **state) {
    (void)state;
    struct secret s;
    uint8_t frame[SECRET_LENGTH + 100] = {0};
    int conn, fd;
    begin(1);
    fd = raw_peer(&s, &conn);
    for (unsigned i = 0; i < 2; i++) send_to(0, conn, 4000000, i); /* it does not read these */
    secret_put_length(&s, 0, true, frame);
    net_put_all(fd, frame, sizeof frame);
    while (turn() || nap(20)) {}
    assert_int_equal(side[0].first, side[0].n); /* it has not ended, for its queue is not sent */
    close(fd);
    ends(0, conn, false, "");
    secret_free(&s);
    over();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(any_changed_bit_ends_it),
        TEST(a_changed_greeting_is_refused),
        TEST(a_message_counts_once),
        TEST(a_connection_counts_once),
        TEST(a_false_coordinator),
        TEST(cut_inside_a_message),
        TEST(a_byte_at_a_time),
        TEST(another_key),
        TEST(no_proof),
        TEST(another_protocol),
        TEST(hostile_connections),
        TEST(idle_connections),
        TEST(slow_greetings),
        TEST(lengths_too_large),
        TEST(bytes_after_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
