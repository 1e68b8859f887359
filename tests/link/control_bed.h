/* SPDX-License-Identifier: Apache-2.0
 * Several ends of control connections in one thread, for their tests; include it after cmocka.h. */
#ifndef CONTROL_BED_H
#define CONTROL_BED_H

#include <errno.h>
#include <poll.h>

#include "link/control.h"
#include "link/net.h"

#define SIDES 4

static const uint8_t key[LINK_KEY] = "0123456789abcdefghijklmnopqrstuv";

/* Side 0 listens; the bytes of events are copies. */
static struct side {
    struct control *c;
    bool deaf; /* control_next is not called */
    struct control_event *event;
    size_t first, n, capacity;
} side[SIDES];
static int stale;        /* an errno that is set before each call */
static bool counts;      /* CONTROL_REFUSED, in `refused`, and passes over these events */
static int refused;

static inline struct control_options options(bool listens) {
    return (struct control_options){.key = key, .listens = listens, .address = "127.0.0.1"};
}

static inline void open_with(int at, struct control_options o) {
    control_close(side[at].c);
    assert_int_equal(control_open(&o, &side[at].c), TRI_OK);
}

static inline void begin(int sides) {
    for (int i = 0; i < sides; i++) open_with(i, options(!i));
}

static inline int clean(void **state) {
    (void)state;
    net_end();
    for (int i = 0; i < SIDES; i++) {
        control_close(side[i].c);
        for (size_t e = 0; e < side[i].n; e++) free(side[i].event[e].memory);
        free(side[i].event);
        side[i] = (struct side){0};
    }
    stale = refused = 0;
    counts = false;
    return 0;
}

static inline void over(void) { clean(NULL); }

/* One call for each side. False: nothing has happened. */
static inline bool turn(void) {
    bool some = false;
    if (net.work) net_turn(NULL);
    for (int i = 0; i < SIDES; i++) {
        struct side *s = &side[i];
        struct control_event e;
        if (!s->c || s->deaf) continue;
        if (stale) errno = stale;
        assert_int_equal(control_next(s->c, &e), TRI_OK);
        if (e.what == CONTROL_NOTHING) continue;
        some = true;
        if (e.n) {
            assert_int_equal((uintptr_t)e.bytes % 16, 0);
            e.memory = malloc(e.n);
            assert_non_null(e.memory);
            e.bytes = memcpy(e.memory, e.bytes, e.n);
        }
        assert_true(ARRAY_GROW(s->event, s->n, s->capacity));
        s->event[s->n++] = e;
    }
    return some;
}

/* Sleeps until a side has work, at most so long. Returns whether one has. */
static inline bool nap(int milliseconds) {
    struct pollfd p[SIDES];
    nfds_t n = 0;
    for (int i = 0; i < SIDES; i++)
        if (side[i].c && !side[i].deaf)
            p[n++] = (struct pollfd){.fd = control_fd(side[i].c), .events = POLLIN};
    return poll(p, n, net.work && milliseconds ? 1 : milliseconds) > 0;
}

/* The side's next event, which must be `what`. The caller frees `memory` if it holds a message. */
static inline struct control_event next(int at, enum control_what what) {
    struct side *s = &side[at];
    for (double late = base_seconds() + 20;;) {
        while (s->first < s->n) {
            struct control_event *e = &s->event[s->first++];
            if (counts && e->what == CONTROL_REFUSED) {
                refused++;
                continue;
            }
            if (e->what != what)
                fail_msg("side %d: event %d (%s) instead of %d", at, e->what, e->why, what);
            return *e;
        }
        if (!turn()) nap(100);
        if (base_seconds() > late) fail_msg("side %d: no event %d in 20 s", at, what);
    }
}

static inline void settle(void) {
    do while (turn()) {}
    while (nap(3));
}

static inline void expect_nothing(int at) {
    settle();
    for (struct side *s = &side[at]; s->first < s->n; s->first++) {
        if (counts && s->event[s->first].what == CONTROL_REFUSED) refused++;
        else fail_msg("side %d: event %d (%s)", at, s->event[s->first].what,
                      s->event[s->first].why);
    }
}

static inline void ends(int at, int conn, bool left, const char *words) {
    struct control_event e = next(at, CONTROL_ENDED);
    assert_int_equal(e.conn, conn);
    if (!strstr(e.why, words)) fail_msg("\"%s\" without \"%s\"", e.why, words);
    assert_int_equal(e.left, left);
}

static inline int connect_to(int from, const char *address) {
    int conn = -1;
    assert_int_equal(control_connect(side[from].c, address, &conn), TRI_OK);
    assert_true(conn >= 0);
    return conn;
}

/* Side `from` joins side 0: the numbers of the connection at both. */
struct pair { int here, there; };

static inline struct pair join_at(int from, const char *address) {
    struct pair p = {connect_to(from, address), -1};
    assert_int_equal(next(from, CONTROL_JOINED).conn, p.here);
    p.there = next(0, CONTROL_JOINED).conn;
    return p;
}

/* Of side 0, by IPv4. */
static inline const char *bed_address(void) {
    static char text[LINK_ADDRESS];
    snprintf(text, sizeof text, "127.0.0.1:%d", control_port(side[0].c));
    return text;
}

static inline struct pair join(int from) { return join_at(from, bed_address()); }

static inline char *bytes_of(size_t n, unsigned of) {
    char *data = malloc(n + 1);
    assert_non_null(data);
    for (size_t i = 0; i < n; i++) data[i] = (char)(i * 31 + of * 7 + (i >> 8) * 5);
    return data;
}

static inline void send_to(int from, int conn, size_t n, unsigned of) {
    char *data = bytes_of(n, of);
    assert_int_equal(control_send(side[from].c, conn, data, n), TRI_OK);
    memset(data, 0, n); /* it was copied */
    free(data);
}

static inline void arrives(int at, int conn, size_t n, unsigned of) {
    struct control_event e = next(at, CONTROL_ARRIVED);
    char *data = bytes_of(n, of);
    assert_int_equal(e.conn, conn);
    assert_int_equal(e.n, n);
    assert_true(!n == !e.bytes);
    if (n) assert_memory_equal(e.bytes, data, n);
    free(data);
}

#define TEST(test) cmocka_unit_test_teardown(test, clean)

#endif
