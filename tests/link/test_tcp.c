/* SPDX-License-Identifier: Apache-2.0
 * The row tcp against what networks and strangers do: bytes that are changed, repeated, cut off,
 * random or slow, wrong keys, lengths of 2^63, connections that say nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <sys/resource.h>

#include "link/bed.h"
#include "link/net.h"
#include "link/wire.h"

#define GREETING (WIRE_HELLO + WIRE_TAG) /* what either side sends before messages */
#define MESSAGE(n) (WIRE_HEADER + WIRE_TAG + (n) + ((n) ? WIRE_TAG : 0))

static struct bed b;

static bool work(void) { return bed_turn(&b); }
static int stranger(int host) { return net_stranger(link_address(b.l[host])); }

/* Hosts 0 and 1 with the net between them; both have called link_peer. */
static void begin(void) {
    bed_open(&b, &link_tcp, 3);
    net_begin(link_address(b.l[0]), work);
    net.greeting = GREETING;
    b.beside = net_turn;
    assert_int_equal(link_peer(b.l[0], 1, 0, NULL), TRI_OK);
    assert_int_equal(link_peer(b.l[1], 0, 0, net.address), TRI_OK);
}

static void begin_joined(void) {
    begin();
    bed_next_of(&b, 0, LINK_JOINED, 1);
    bed_next_of(&b, 1, LINK_JOINED, 0);
}

static void over(void) {
    b.beside = NULL;
    bed_close(&b);
    net_end();
}

/* Host 0 learns of the end, for a reason that has these words. */
static void ends_with(const char *words) {
    struct link_event e = bed_next_of(&b, 0, LINK_ENDED, 1);
    if (!strstr(e.why, words)) fail_msg("\"%s\" without \"%s\"", e.why, words);
}

/* ---- the network ---- */

static void any_changed_bit_ends_it(void **state) {
    (void)state;
    const size_t n = 3 * WIRE_PIECE / 2;
    const size_t at[] = {1, 5, WIRE_HEADER, WIRE_HEADER + WIRE_TAG, WIRE_HEADER + WIRE_TAG + 1,
                         WIRE_HEADER + WIRE_TAG + WIRE_PIECE + WIRE_TAG + 5,
                         MESSAGE(n) + WIRE_TAG};
    for (size_t i = 0; i < COUNT(at); i++) {
        begin();
        net.flip = GREETING + at[i];
        bed_next_of(&b, 0, LINK_JOINED, 1);
        bed_next_of(&b, 1, LINK_JOINED, 0);
        char *data = bed_send(&b, 1, 0, n, 2);
        ends_with("its bytes were changed on the way");
        bed_next_of(&b, 1, LINK_ENDED, 0);
        bed_expects_nothing(&b, 0); /* above all no message */
        free(data);
        over();
    }
}

static void a_changed_greeting_is_refused(void **state) {
    (void)state;
    for (size_t at = 1; at <= GREETING; at += 9) {
        begin();
        net.flip = at;
        struct link_event e = bed_next(&b, 1, LINK_ENDED);
        assert_true(strlen(e.why) > 10);
        bed_next(&b, 0, LINK_REFUSED);
        bed_expects_nothing(&b, 0);
        over();
    }
}

static void a_message_counts_once(void **state) {
    (void)state;
    begin_joined();
    net.again = GREETING;
    net.again_n = MESSAGE(100);
    char *data = bed_send(&b, 1, 0, 100, 2);
    bed_arrives(&b, 0, 1, 100, 2);
    ends_with("its bytes were changed on the way");
    bed_next_of(&b, 1, LINK_ENDED, 0);
    free(data);
    over();
}

static void a_message_counts_one_way(void **state) {
    (void)state;
    begin_joined();
    /* Its number is the one that host 1 expects next of host 0. */
    net.again = GREETING + MESSAGE(0);
    net.again_n = MESSAGE(100);
    net.back = true;
    char *first = bed_send(&b, 1, 0, 0, 1), *data = bed_send(&b, 1, 0, 100, 2);
    assert_non_null(strstr(bed_next_of(&b, 1, LINK_ENDED, 0).why, "changed on the way"));
    free(first);
    free(data);
    over();
}

/* A message of an earlier session in the place of one of this. */
static void a_message_counts_in_its_session(void **state) {
    (void)state;
    begin_joined();
    char *data = bed_send(&b, 1, 0, 100, 2), *old = malloc(sizeof net.record);
    bed_arrives(&b, 0, 1, 100, 2);
    memcpy(old, net.record, sizeof net.record);
    over();
    begin_joined();
    net.old = old;
    char *next = bed_send(&b, 1, 0, 100, 4);
    ends_with("its bytes were changed on the way");
    free(data);
    free(next);
    free(old);
    over();
}

/* All bytes of one session, in a connection of their own. */
static void a_session_counts_once(void **state) {
    (void)state;
    begin_joined();
    char *data = bed_send(&b, 1, 0, 100, 2);
    bed_arrives(&b, 0, 1, 100, 2);
    link_end(b.l[1], 0);
    bed_next_of(&b, 0, LINK_ENDED, 1);
    assert_int_equal(link_peer(b.l[0], 1, 0, NULL), TRI_OK);
    int fd = stranger(0);
    net_put_all(fd, net.record, net.passed[0]);
    assert_non_null(strstr(bed_next(&b, 0, LINK_REFUSED).why, "it has another key"));
    bed_expects_nothing(&b, 0);
    close(fd);
    free(data);
    over();
}

static void cut_inside_a_message(void **state) {
    (void)state;
    const size_t at[] = {WIRE_HEADER + WIRE_TAG, WIRE_HEADER + WIRE_TAG + 50000, 7};
    for (size_t i = 0; i < COUNT(at); i++)
        for (int reset = 0; reset < 2; reset++) {
            begin_joined();
            net.cut = GREETING + at[i];
            net.reset = reset;
            char *data = bed_send(&b, 1, 0, 100000, 2);
            ends_with(reset ? strerror(ECONNRESET) : "it closed the connection inside a message");
            bed_next_of(&b, 1, LINK_ENDED, 0);
            bed_expects_nothing(&b, 0);
            free(data);
            over();
        }
}

/* Slow is no end; and others do not wait for it. */
static void a_byte_at_a_time(void **state) {
    (void)state;
    begin();
    net.slow = 1;
    bed_next_of(&b, 0, LINK_JOINED, 1);
    bed_next_of(&b, 1, LINK_JOINED, 0);
    char *data = bed_send(&b, 1, 0, 150, 2), *other[8];
    b.beside = NULL;
    bed_join(&b, 2, 0);
    b.beside = net_turn;
    for (unsigned i = 0; i < COUNT(other); i++) {
        other[i] = bed_send(&b, 2, 0, 100, i);
        bed_arrives(&b, 0, 2, 100, i);
    }
    assert_true(net.passed[0] < GREETING + MESSAGE(150));
    bed_arrives(&b, 0, 1, 150, 2);
    free(data);
    for (size_t i = 0; i < COUNT(other); i++) free(other[i]);
    over();
}

/* ---- strangers ---- */

static void with_options(int host, struct link_options o) {
    link_close(b.l[host]);
    assert_int_equal(link_open(&link_tcp, &o, &b.l[host]), TRI_OK);
}

/* Both say why; and the right host can still join. */
static void who_does_not_belong(void **state) {
    (void)state;
    const uint8_t other[LINK_KEY] = {1};
    for (int kind = 0; kind < 5; kind++) {
        bed_open(&b, &link_tcp, 3);
        struct link_options o = bed_options(&b, 1);
        const char *why[] = {"it has another key", "without authentication", "it is of another run",
                             "it is host 9", "it is host 1 and looks for host 2"};
        if (kind == 0) o.key = other;
        if (kind == 1) o.key = NULL;
        if (kind == 2) o.run = 8;
        if (kind == 3) o.self = 9, o.hosts = 10;
        with_options(1, o);
        assert_int_equal(link_peer(b.l[0], 1, 0, NULL), TRI_OK);
        int to = kind == 4 ? 2 : 0;
        b.hosts = kind == 4 ? 3 : 2;
        if (to) { /* it has the address of another host */
            o.self = 1;
            link_close(b.l[2]);
            b.l[2] = NULL;
            o = bed_options(&b, 2);
            assert_int_equal(link_open(&link_tcp, &o, &b.l[2]), TRI_OK);
            assert_int_equal(link_peer(b.l[2], 0, 0, link_address(b.l[1])), TRI_OK);
            bed_next_of(&b, 2, LINK_ENDED, 0);
            assert_non_null(strstr(bed_next(&b, 1, LINK_REFUSED).why,
                                   "it is host 2 and looks for host 0; this is host 1"));
            over();
            continue;
        }
        assert_int_equal(link_peer(b.l[1], 0, 0, link_address(b.l[0])), TRI_OK);
        struct link_event e = bed_next(&b, 1, LINK_ENDED), r = bed_next(&b, 0, LINK_REFUSED);
        const struct link_event *says = kind ? &r : &e;
        if (!strstr(says->why, why[kind])) fail_msg("\"%s\" lacks \"%s\"", says->why, why[kind]);
        with_options(1, bed_options(&b, 1));
        assert_int_equal(link_peer(b.l[1], 0, 0, link_address(b.l[0])), TRI_OK);
        bed_next_of(&b, 0, LINK_JOINED, 1);
        b.hosts = 3;
        over();
    }
}

/* Three hundred of them, while hosts work: one line, no event else, and no memory that stays. */
static void hostile_connections(void **state) {
    (void)state;
    enum { N = 100 };
    int fd[N];
    bed_open(&b, &link_tcp, 3);
    bed_join(&b, 1, 0);
    b.counts_refused = true;
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < N; i++) {
            char *noise = bed_bytes(3000, i * 3 + round);
            if (i % 3 == 1) memcpy(noise, "TRILINK\n\1\0\0\0", 12); /* a right begin */
            fd[i] = stranger(0);
            if (i % 3) send(fd[i], noise, i % 3 == 1 ? WIRE_HELLO - 1 : 3000, MSG_NOSIGNAL);
            free(noise);
            char *data = bed_send(&b, i % 2, 1 - (int)i % 2, 1000, i);
            bed_arrives(&b, 1 - (int)i % 2, i % 2, 1000, i);
            free(data);
        }
        for (int i = 0; i < N; i++) close(fd[i]);
    }
    for (int host = 0; host < 2; host++) bed_expects_nothing(&b, host);
    assert_int_equal(b.refused, 1);
    over();
}

/* A hundred that say nothing keep nobody from joining, and cost no processor time. */
static void idle_connections(void **state) {
    (void)state;
    int fd[100];
    bed_open(&b, &link_tcp, 3);
    for (size_t i = 0; i < COUNT(fd); i++) fd[i] = stranger(0);
    assert_non_null(strstr(bed_next(&b, 0, LINK_REFUSED).why, "it said nothing"));
    bed_join(&b, 1, 0); /* after all of them */
    bed_settle(&b);
    bed_idles(&b);
    for (size_t i = 0; i < COUNT(fd); i++) close(fd[i]);
    bed_expects_nothing(&b, 0);
    over();
}

/* They have a time for all of their greeting, not for each byte. */
static void a_slow_stranger(void **state) {
    (void)state;
    bed_open(&b, &link_tcp, 2);
    struct link_options o = bed_options(&b, 0);
    o.patience = 100000000;
    with_options(0, o);
    int fd = stranger(0);
    double begun = base_seconds();
    for (struct seen *s = &b.seen[0]; s->first == s->n;) {
        send(fd, "T", 1, MSG_NOSIGNAL);
        if (!bed_turn(&b)) bed_sleep(&b, 5);
        assert_true(base_seconds() < begun + 5);
    }
    assert_non_null(strstr(bed_next(&b, 0, LINK_REFUSED).why, "it did not finish"));
    assert_true(base_seconds() - begun >= 0.1);
    close(fd);
    over();
}

/* Of a peer, or who has taken over its connection: the most that 64 bits can say. */
static void a_length_of_2_to_the_63(void **state) {
    (void)state;
    const uint64_t lengths[] = {1ull << 63, ~0ull, MOST + 1};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        const struct wire_side side = {.self = 1, .hosts = 3, .run = 7, .most = ~0ull};
        const struct link_header h = {.run = 7, .kind = LINK_SUM, .length = lengths[i]};
        uint8_t frame[WIRE_HEADER + WIRE_TAG];
        struct wire w;
        bed_open(&b, &link_tcp, 3);
        struct link_options o = bed_options(&b, 0);
        o.key = NULL;
        with_options(0, o);
        assert_int_equal(link_peer(b.l[0], 1, 0, NULL), TRI_OK);
        int fd = stranger(0);
        assert_int_equal(wire_begin(&w, &side, 0, 0, NULL), TRI_OK);
        net_put_all(fd, w.greeting, w.n_greeting);
        bed_next_of(&b, 0, LINK_JOINED, 1);
        net_put_all(fd, frame, wire_put_header(&w, &h, frame));
        ends_with("it sent a message of ");
        close(fd);
        over();
    }
}

/* ---- addresses and descriptors ---- */

static void addresses_and_ports(void **state) {
    (void)state;
    struct link *l;
    bed_open(&b, &link_tcp, 2);
    struct link_options o = bed_options(&b, 0);
    int taken = atoi(strrchr(link_address(b.l[0]), ':') + 1);
    o.port[0] = o.port[1] = taken;
    assert_int_equal(link_open(&link_tcp, &o, &l), TRI_FAILED);
    assert_non_null(strstr(tri_message(), "cannot listen at 127.0.0.1:"));
    o.port[1] = taken + 50; /* another of these is free */
    assert_int_equal(link_open(&link_tcp, &o, &l), TRI_OK);
    assert_in_range(atoi(strrchr(link_address(l), ':') + 1), taken + 1, taken + 50);
    char closed[LINK_ADDRESS];
    strcpy(closed, link_address(l));
    link_close(l);
    assert_int_equal(link_peer(b.l[1], 0, 0, closed), TRI_OK);
    assert_non_null(strstr(bed_next_of(&b, 1, LINK_ENDED, 0).why, strerror(ECONNREFUSED)));
    const char *wrong[] = {"", "host", "127.0.0.1", "127.0.0.1:x", "name.example:1", "[::1:4000",
                           "[]:1", ":"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(link_peer(b.l[1], 0, 0, wrong[i]), TRI_USAGE);
    o.address = "::1";
    o.port[0] = o.port[1] = 0;
    if (!link_open(&link_tcp, &o, &l)) {
        link_close(b.l[0]);
        b.l[0] = l;
        bed_join(&b, 1, 0);
    }
    over();
}

/* The descriptor reports what link_peer itself has found. */
static void told_before_any_work(void **state) {
    (void)state;
    bed_open(&b, &link_tcp, 2);
    assert_int_equal(link_peer(b.l[1], 0, 0, "255.255.255.255:9"), TRI_OK);
    assert_true(bed_sleep(&b, 1000));
    bed_next_of(&b, 1, LINK_ENDED, 0);
    bed_idles(&b);
    bed_expects_nothing(&b, 1);
    assert_int_equal(link_peer(b.l[1], 0, 0, link_address(b.l[0])), TRI_OK);
    for (int i = 0; i < 10; i++) bed_settle(&b); /* host 0 holds it */
    assert_int_equal(link_peer(b.l[0], 1, 0, NULL), TRI_OK);
    b.deaf[1] = true;
    assert_true(bed_sleep(&b, 1000));
    bed_next_of(&b, 0, LINK_JOINED, 1);
    over();
}

static void no_descriptor_is_left(void **state) {
    (void)state;
    struct rlimit was, few;
    bed_open(&b, &link_tcp, 2);
    bed_join(&b, 1, 0);
    int fd = stranger(0), next = dup(fd);
    getrlimit(RLIMIT_NOFILE, &was);
    few = was;
    few.rlim_cur = (rlim_t)next + 1;
    setrlimit(RLIMIT_NOFILE, &few);
    for (int i = 0; i < 5; i++) bed_turn(&b);
    bed_idles(&b);
    setrlimit(RLIMIT_NOFILE, &was);
    char *data = bed_send(&b, 1, 0, 10, 2);
    bed_arrives(&b, 0, 1, 10, 2);
    free(data);
    close(fd);
    close(next);
    bed_next(&b, 0, LINK_REFUSED); /* it was taken a second later */
    over();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_changed_bit_ends_it),
        cmocka_unit_test(a_changed_greeting_is_refused),
        cmocka_unit_test(a_message_counts_once),
        cmocka_unit_test(a_message_counts_one_way),
        cmocka_unit_test(a_message_counts_in_its_session),
        cmocka_unit_test(a_session_counts_once),
        cmocka_unit_test(cut_inside_a_message),
        cmocka_unit_test(a_byte_at_a_time),
        cmocka_unit_test(who_does_not_belong),
        cmocka_unit_test(hostile_connections),
        cmocka_unit_test(idle_connections),
        cmocka_unit_test(a_slow_stranger),
        cmocka_unit_test(a_length_of_2_to_the_63),
        cmocka_unit_test(addresses_and_ports),
        cmocka_unit_test(told_before_any_work),
        cmocka_unit_test(no_descriptor_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
