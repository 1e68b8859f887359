/* SPDX-License-Identifier: Apache-2.0
 * Control connections: what goes through them, how they end, how hosts find one another. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <netdb.h>
#include <sys/resource.h>

#include "link/control_bed.h"

/* ---- messages ---- */

static void both_directions(void **state) {
    (void)state;
    const size_t sizes[] = {0, 1, 15, 16, 17, 70000, 0, 64};
    begin(2);
    struct pair p = join(1);
    for (unsigned i = 0; i < 3 * COUNT(sizes); i++) {
        send_to(1, p.here, sizes[i % COUNT(sizes)], i);
        send_to(0, p.there, sizes[i % COUNT(sizes)], i + 50);
    }
    for (unsigned i = 0; i < 3 * COUNT(sizes); i++) {
        arrives(0, p.there, sizes[i % COUNT(sizes)], i);
        arrives(1, p.here, sizes[i % COUNT(sizes)], i + 50);
    }
    over();
}

static void the_largest(void **state) {
    (void)state;
    begin(2);
    struct pair p = join(1);
    for (unsigned i = 0; i < 2; i++) send_to(i ? 1 : 0, i ? p.here : p.there, CONTROL_MOST, i);
    arrives(1, p.here, CONTROL_MOST, 0);
    arrives(0, p.there, CONTROL_MOST, 1);
    side[1].deaf = true;
    for (unsigned i = 0; i < 2; i++) send_to(0, p.there, 4000000, i);
    settle();
    side[1].deaf = false;
    for (unsigned i = 0; i < 2; i++) arrives(1, p.here, 4000000, i);
    for (unsigned i = 0; i < 3000; i++) send_to(1, p.here, 900, i); /* a queue that is read late */
    for (unsigned i = 0; i < 3000; i++) arrives(0, p.there, 900, i);
    over();
}

static void two_hundred_at_once(void **state) {
    (void)state;
    enum { N = 200 };
    int here[N], there[N];
    begin(3);
    for (int i = 0; i < N; i++) here[i] = connect_to(1 + i % 2, bed_address());
    for (int i = 0; i < N; i++) {
        next(1 + i % 2, CONTROL_JOINED);
        there[i] = next(0, CONTROL_JOINED).conn;
        for (int k = 0; k < i; k++) assert_int_not_equal(there[k], there[i]);
    }
    for (int i = 0; i < N; i++) send_to(0, there[i], 100, 0);
    for (int i = 0; i < N; i++) {
        assert_int_equal(next(1 + i % 2, CONTROL_ARRIVED).n, 100);
        send_to(1 + i % 2, here[i], 30, (unsigned)i);
    }
    bool seen[N] = {0};
    for (int i = 0; i < N; i++) {
        struct control_event e = next(0, CONTROL_ARRIVED);
        unsigned of = (unsigned)N;
        for (unsigned k = 0; k < N; k++) {
            char *data = bytes_of(30, k);
            if (!seen[k] && !memcmp(data, e.bytes, 30)) of = k;
            free(data);
        }
        assert_true(of < N);
        seen[of] = true;
    }
    for (int i = 0; i < N; i++) control_end(side[0].c, there[i]);
    for (int i = 0; i < N; i++) next(1 + i % 2, CONTROL_ENDED);
    expect_nothing(0);
    over();
}

/* ---- ends ---- */

static void in_order(void **state) {
    (void)state;
    for (int both = 0; both < 2; both++) {
        begin(2);
        struct pair p = join(1);
        send_to(1, p.here, 3 << 20, 1);
        send_to(1, p.here, 0, 2);
        send_to(0, p.there, 500, 3); /* dropped: nobody waits for it any more */
        control_finish(side[1].c, p.here);
        for (unsigned i = 0; i < 3; i++) send_to(1, p.here, CONTROL_MOST, i); /* too late */
        if (both) control_finish(side[0].c, p.there);
        if (!both) {
            arrives(0, p.there, 3 << 20, 1);
            arrives(0, p.there, 0, 2);
        }
        ends(0, p.there, true, "it has left");
        ends(1, p.here, true, "it has left");
        control_send(side[0].c, p.there, "x", 1);
        control_finish(side[0].c, p.there);
        expect_nothing(0);
        expect_nothing(1);
        over();
    }
}

/* What the other has sent, and nobody has read, must not take what was sent before the end. */
static void the_last_message_arrives(void **state) {
    (void)state;
    begin(2);
    struct pair p = join(1);
    side[0].deaf = true;
    for (unsigned i = 0; i < 2; i++) send_to(1, p.here, 4000000, i);
    send_to(0, p.there, 2000, 7);
    control_finish(side[0].c, p.there);
    side[0].deaf = false;
    arrives(1, p.here, 2000, 7);
    ends(1, p.here, true, "it has left");
    ends(0, p.there, true, "it has left");
    over();
}

/* A second, not more, for a peer that reads nothing. */
static void an_end_that_nobody_reads(void **state) {
    (void)state;
    begin(2);
    struct pair p = join(1), q = join(1);
    side[1].deaf = true;
    double begun = base_seconds();
    control_finish(side[0].c, p.there);
    send_to(0, q.there, 7 << 20 >> 1, 1);
    send_to(0, q.there, 7 << 20 >> 1, 2);
    control_finish(side[0].c, q.there);
    ends(0, p.there, false, "it did not end in time");
    ends(0, q.there, false, "it did not end in time");
    assert_true(base_seconds() - begun >= 1 && base_seconds() - begun < 3);
    over();
}

static void at_once(void **state) {
    (void)state;
    begin(3);
    struct pair p = join(1), q = join(2);
    send_to(0, p.there, 10, 1);
    send_to(1, p.here, 10, 2);
    while (!side[0].n || side[0].event[side[0].n - 1].what != CONTROL_ARRIVED)
        if (!turn()) nap(5);
    side[0].first = side[0].n; /* told */
    send_to(1, p.here, 10, 3);
    send_to(1, p.here, 10, 4);
    send_to(2, q.here, 10, 5);
    nap(20);
    struct control_event e;
    do assert_int_equal(control_next(side[0].c, &e), TRI_OK);
    while (e.what == CONTROL_NOTHING);
    int other = e.conn == p.there ? p.there : q.there;
    control_end(side[0].c, other); /* what has arrived is forgotten */
    control_end(side[0].c, other);
    if (other == p.there) arrives(0, q.there, 10, 5);
    expect_nothing(0);
    assert_int_equal(control_send(side[0].c, other, "x", 1), TRI_OK);
    if (other == p.there) {
        arrives(1, p.here, 10, 1);
        struct control_event ended = next(1, CONTROL_ENDED);
        assert_false(ended.left);
    }
    over();
}

/* A closed connection sets no errno: an old one must not be taken for its. */
static void close_after_a_stale_errno(void **state) {
    (void)state;
    const int old[] = {EAGAIN, EINTR};
    for (size_t i = 0; i < COUNT(old); i++) {
        begin(2);
        struct pair p = join(1);
        stale = old[i];
        control_close(side[1].c);
        side[1].c = NULL;
        ends(0, p.there, false, "it closed the connection, as when a process dies");
        over();
    }
}

static void sending_to_one_that_is_gone(void **state) {
    (void)state;
    begin(2);
    struct pair p = join(1);
    control_close(side[1].c);
    side[1].c = NULL;
    for (unsigned i = 0; i < 3; i++) send_to(0, p.there, 100, i); /* and no signal comes */
    ends(0, p.there, false, "");
    over();
}

static void a_peer_that_does_not_read(void **state) {
    (void)state;
    begin(3);
    struct pair p = join(1), q = join(2);
    side[1].deaf = true;
    for (int i = 0; i < 40; i++) {
        send_to(0, p.there, 1 << 19, 1);
        send_to(2, q.here, 10, 2); /* others do not wait */
        if (!turn()) nap(1);
        struct side *s = &side[0];
        if (s->first < s->n && s->event[s->first].what == CONTROL_ENDED) break;
        arrives(0, q.there, 10, 2);
    }
    ends(0, p.there, false, "it does not read");
    side[1].deaf = false;
    over();
}

/* The descriptor reports what a call itself has found. */
static void told_before_any_work(void **state) {
    (void)state;
    begin(2);
    int conn = connect_to(1, "255.255.255.255:9");
    assert_true(nap(1000));
    ends(1, conn, false, "cannot connect to 255.255.255.255:9: ");
    settle();
    side[0].deaf = true;
    conn = connect_to(1, bed_address());
    control_finish(side[1].c, conn);
    assert_true(nap(1000));
    ends(1, conn, false, "it had not joined yet");
    side[0].deaf = false;
    settle();
    assert_false(nap(10));
    over();
}

/* ---- addresses and descriptors ---- */

static void addresses_and_ports(void **state) {
    (void)state;
    struct control *c;
    char own[LINK_ADDRESS];
    begin(2);
    struct control_options o = options(true);
    int taken = control_port(side[0].c);
    o.port[0] = o.port[1] = taken;
    assert_int_equal(control_open(&o, &c), TRI_FAILED);
    assert_non_null(strstr(tri_message(), "cannot listen at 127.0.0.1:"));
    assert_null(c);
    o.port[1] = taken + 50; /* another of these is free */
    assert_int_equal(control_open(&o, &c), TRI_OK);
    assert_in_range(control_port(c), taken + 1, taken + 50);
    char closed[LINK_ADDRESS];
    snprintf(closed, sizeof closed, "127.0.0.1:%d", control_port(c));
    control_close(c);
    ends(1, connect_to(1, closed), false, strerror(ECONNREFUSED));
    const char *wrong[] = {"", "host", "127.0.0.1", "127.0.0.1:x", "[::1:4000", "[]:1", ":", "::1"};
    int conn;
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(control_connect(side[1].c, wrong[i], &conn), TRI_USAGE);
    assert_int_equal(control_connect(side[1].c, "no..name:1", &conn), TRI_FAILED);
    assert_non_null(strstr(tri_message(), "cannot find \"no..name\""));
    assert_int_equal(control_port(side[1].c), 0);

    struct pair p = join(1);
    control_own_address(side[1].c, p.here, own);
    assert_string_equal(own, "127.0.0.1");
    assert_string_equal(side[0].event[side[0].n - 1].address, "127.0.0.1");
    control_own_address(side[1].c, p.here + 1, own);
    assert_string_equal(own, "?");
    over();
}

static void own_addresses(void **state) {
    (void)state;
    const char *loops[] = {"127.0.0.1", "127.9.9.9", "::1"}, *others[] = {"10.77.0.2", "fe80::1",
                                                                          "?", "128.0.0.1", ""};
    for (size_t i = 0; i < COUNT(loops); i++) assert_true(control_is_loopback(loops[i]));
    for (size_t i = 0; i < COUNT(others); i++) assert_false(control_is_loopback(others[i]));
}

/* In the place of the C library's, which it asks: "two" is the name of two hosts, of which the
 * first is not there. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *like,
                struct addrinfo **found) {
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (strcmp(name, "two")) return real(name, service, like, found);
    int error = real("127.0.0.2", service, like, found);
    return error ? error : real("127.0.0.1", service, like, &(*found)->ai_next);
}

static void names(void **state) {
    (void)state;
    const char *name[] = {"localhost", "two"};
    for (size_t i = 0; i < COUNT(name); i++) {
        char address[LINK_ADDRESS];
        begin(2);
        snprintf(address, sizeof address, "%s:%d", name[i], control_port(side[0].c));
        struct pair p = join_at(1, address);
        send_to(1, p.here, 10, 1);
        arrives(0, p.there, 10, 1);
        over();
    }
}

static void six(void **state) {
    (void)state;
    char address[LINK_ADDRESS];
    struct control_options o = options(true);
    o.address = "::1";
    if (control_open(&o, &side[0].c)) skip(); /* this machine has no IPv6 */
    open_with(1, options(false));
    snprintf(address, sizeof address, "[::1]:%d", control_port(side[0].c));
    struct pair p = join_at(1, address);
    assert_string_equal(side[0].event[side[0].n - 1].address, "::1");
    send_to(1, p.here, 10, 1);
    arrives(0, p.there, 10, 1);
    over();
    o.address = "::"; /* any, also IPv4, which keeps its form */
    open_with(0, o);
    open_with(1, options(false));
    p = join(1);
    assert_string_equal(side[0].event[side[0].n - 1].address, "127.0.0.1");
    control_own_address(side[0].c, p.there, address);
    assert_string_equal(address, "127.0.0.1");
    over();
}

static void a_full_table(void **state) {
    (void)state;
    struct rlimit files;
    int conn, first = -1;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < CONTROL_CONNECTIONS + 100) skip();
    begin(2);
    net_begin("127.0.0.1:0", turn);
    net.busy = true; /* nobody accepts these */
    for (int i = 0; i < CONTROL_CONNECTIONS; i++) {
        conn = connect_to(0, net.address);
        if (first < 0) first = conn;
    }
    assert_int_equal(control_connect(side[0].c, net.address, &conn), TRI_FAILED);
    assert_non_null(strstr(tri_message(), "there are 1024 connections already"));
    conn = connect_to(1, bed_address());
    assert_non_null(strstr(next(0, CONTROL_REFUSED).why, "there are 1024 connections already"));
    next(1, CONTROL_JOINED);
    ends(1, conn, false, "");
    control_end(side[0].c, first); /* another takes its place, and not its number */
    struct pair p = join(1);
    assert_int_equal(p.there % CONTROL_CONNECTIONS, first % CONTROL_CONNECTIONS);
    assert_int_equal(control_send(side[0].c, first, "x", 1), TRI_OK);
    control_end(side[0].c, first);
    send_to(0, p.there, 10, 1);
    arrives(1, p.here, 10, 1);
    over();
}

static void no_descriptor_is_left(void **state) {
    (void)state;
    struct rlimit was, few;
    begin(2);
    struct pair p = join(1);
    int next_fd = dup(0);
    getrlimit(RLIMIT_NOFILE, &was);
    few = was;
    few.rlim_cur = (rlim_t)next_fd + 1;
    setrlimit(RLIMIT_NOFILE, &few);
    ends(1, connect_to(1, bed_address()), false, strerror(EMFILE));
    setrlimit(RLIMIT_NOFILE, &was);
    send_to(1, p.here, 10, 2);
    arrives(0, p.there, 10, 2);
    close(next_fd);
    over();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(both_directions),
        TEST(the_largest),
        TEST(two_hundred_at_once),
        TEST(in_order),
        TEST(the_last_message_arrives),
        TEST(an_end_that_nobody_reads),
        TEST(at_once),
        TEST(close_after_a_stale_errno),
        TEST(sending_to_one_that_is_gone),
        TEST(a_peer_that_does_not_read),
        TEST(told_before_any_work),
        TEST(a_full_table),
        TEST(addresses_and_ports),
        TEST(own_addresses),
        TEST(names),
        TEST(six),
        TEST(no_descriptor_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
