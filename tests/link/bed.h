/* SPDX-License-Identifier: Apache-2.0
 * Several hosts of one row in one thread, for tests of links; include it after cmocka.h. */
#ifndef BED_H
#define BED_H

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "link/link.h"
#include "link/world.h"

#ifndef HOSTS
#define HOSTS 4
#endif
#define MOST (8u << 20) /* bytes of a payload */

static const uint8_t bed_key[LINK_KEY] = "0123456789abcdefghijklmnopqrstuv";

struct bed {
    int hosts;
    uint32_t epoch; /* of the sessions */
    struct link_world *world;
    struct link *l[HOSTS];
    struct seen { /* the events of a host, from `first` on not looked at yet */
        struct link_event *event;
        size_t first, n, capacity;
    } seen[HOSTS];
    bool deaf[HOSTS];      /* link_next is not called */
    bool drops;            /* messages of odd epochs */
    bool later[HOSTS];     /* nothing is taken from this peer */
    void **given;          /* memory for payloads, until the bed is closed */
    size_t n_given, given_capacity;
    bool counts_refused;   /* in `refused`, and passes over these events */
    int refused;
    int stale;             /* an errno that is set before each call */
    void (*beside)(void *); /* called in each turn; null */
    void *beside_user;
};

static inline void *bed_where(void *user, int host, const struct link_header *h) {
    struct bed *b = user;
    if (b->later[host]) return LINK_LATER;
    if (b->drops && h->epoch % 2) return NULL;
    assert_true(h->length <= SIZE_MAX - 1 && ARRAY_GROW(b->given, b->n_given, b->given_capacity));
    return b->given[b->n_given++] = malloc((size_t)h->length + 1);
}

static inline struct link_options bed_options(struct bed *b, int self) {
    return (struct link_options){.self = self, .hosts = b->hosts, .run = 7, .key = bed_key,
                                 .most = MOST, .where = bed_where, .user = b,
                                 .address = "127.0.0.1"};
}

static inline void bed_open(struct bed *b, const struct link_row *row, int hosts) {
    *b = (struct bed){.hosts = hosts};
    if (row == &link_local) assert_int_equal(world_open(hosts, 11, &b->world), TRI_OK);
    for (int i = 0; i < hosts; i++) {
        struct link_options o = bed_options(b, i);
        assert_int_equal(link_open(row, &o, &b->l[i]), TRI_OK);
    }
}

static inline void bed_close(struct bed *b) {
    for (int i = 0; i < b->hosts; i++) link_close(b->l[i]);
    for (int i = 0; i < b->hosts; i++) free(b->seen[i].event);
    while (b->n_given) free(b->given[--b->n_given]);
    free(b->given);
    world_close(b->world);
}

/* One call for each host. False: nothing has happened. */
static inline bool bed_turn(struct bed *b) {
    bool some = false;
    if (b->beside) b->beside(b->beside_user);
    for (int i = 0; i < b->hosts; i++) {
        struct seen *s = &b->seen[i];
        struct link_event e;
        if (!b->l[i] || b->deaf[i]) continue;
        if (b->stale) errno = b->stale;
        assert_int_equal(link_next(b->l[i], &e), TRI_OK);
        if (e.what == LINK_NOTHING) continue;
        some = true;
        assert_true(ARRAY_GROW(s->event, s->n, s->capacity));
        s->event[s->n++] = e;
    }
    return some;
}

/* Sleeps until a link has work, at most so long. Returns whether one has. */
static inline bool bed_sleep(struct bed *b, int milliseconds) {
    struct pollfd p[HOSTS];
    nfds_t n = 0;
    for (int i = 0; i < b->hosts; i++)
        if (b->l[i] && !b->deaf[i])
            p[n++] = (struct pollfd){.fd = link_fd(b->l[i]), .events = POLLIN};
    return poll(p, n, b->beside && milliseconds ? 1 : milliseconds) > 0;
}

/* The host's next event, of which ENDED, JOINED and so on must be `what`; those of SENT are passed
 * over if others are asked for. */
static inline struct link_event bed_next(struct bed *b, int host, enum link_what what) {
    struct seen *s = &b->seen[host];
    for (double late = base_seconds() + 20;;) {
        while (s->first < s->n) {
            struct link_event e = s->event[s->first++];
            if (e.what == LINK_SENT && what != LINK_SENT) continue;
            if (b->counts_refused && e.what == LINK_REFUSED) {
                b->refused++;
                continue;
            }
            if (e.what != what)
                fail_msg("host %d: event %d (%s) instead of %d", host, e.what, e.why, what);
            return e;
        }
        if (!bed_turn(b)) bed_sleep(b, 100);
        if (base_seconds() > late) fail_msg("host %d: no event %d in 20 s", host, what);
    }
}

static inline struct link_event bed_next_of(struct bed *b, int host, enum link_what what,
                                            int peer) {
    struct link_event e = bed_next(b, host, what);
    assert_int_equal(e.host, peer);
    return e;
}

/* Nothing happens any more, apart from what the test has not looked at. */
static inline void bed_settle(struct bed *b) {
    int calls = 0; /* a deaf host of a world always has something */
    do while (bed_turn(b)) {}
    while (bed_sleep(b, 5) && calls++ < 1000);
}

static inline void bed_expects_nothing(struct bed *b, int host) {
    bed_settle(b);
    for (struct seen *s = &b->seen[host]; s->first < s->n; s->first++)
        if (s->event[s->first].what != LINK_SENT)
            fail_msg("host %d: event %d (%s)", host, s->event[s->first].what,
                     s->event[s->first].why);
}

static inline void bed_join(struct bed *b, int x, int y) {
    assert_int_equal(link_peer(b->l[x], y, b->epoch, link_address(b->l[y])), TRI_OK);
    assert_int_equal(link_peer(b->l[y], x, b->epoch, link_address(b->l[x])), TRI_OK);
    bed_next_of(b, x, LINK_JOINED, y);
    bed_next_of(b, y, LINK_JOINED, x);
}

static inline void bed_join_all(struct bed *b) {
    for (int x = 0; x < b->hosts; x++)
        for (int y = 0; y < x; y++) bed_join(b, x, y);
}

/* The bytes of message number `of`. */
static inline char *bed_bytes(size_t n, unsigned of) {
    char *data = malloc(n + 1);
    assert_non_null(data);
    for (size_t i = 0; i < n; i++) data[i] = (char)(i * 31 + of * 7 + (i >> 8) * 5);
    return data;
}

/* The payload is kept: bed_arrives frees it. */
static inline char *bed_send(struct bed *b, int from, int to, size_t n, unsigned of) {
    const struct link_header h = {.epoch = of % 2, .step = 3, .kind = LINK_EDGE, .item = of,
                                  .node = 5, .part = 6, .format = 1, .offset = 1ull << 40};
    char *data = bed_bytes(n, of);
    assert_int_equal(link_send(b->l[from], to, &h, data, n, data), TRI_OK);
    return data;
}

/* Message number `of` has arrived, and as it was sent. */
static inline void bed_arrives(struct bed *b, int at, int from, size_t n, unsigned of) {
    struct link_event e = bed_next_of(b, at, LINK_ARRIVED, from);
    const struct link_header h = e.header;
    char *data = bed_bytes(n, of);
    assert_int_equal(h.item, of);
    assert_true(h.run == 7 && h.epoch == of % 2 && h.step == 3 && h.kind == LINK_EDGE);
    assert_true(h.node == 5 && h.part == 6 && h.format == 1 && h.offset == 1ull << 40);
    assert_int_equal(h.length, n);
    assert_memory_equal(e.at, data, n);
    free(data);
}

static inline double bed_processor_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Polls for a while, in which nothing happens; fails if that costs more than 0.2 % of a core. What
 * the machine does beside it may be counted here: one of a few times must be without. */
static inline void bed_idles(struct bed *b) {
    const double seconds = 0.2, most = seconds * 0.002;
    double used = 2 * most;
    for (int i = 0; i < 5 && used > most; i++) {
        const double before = bed_processor_seconds(), until = base_seconds() + seconds;
        for (double now; (now = base_seconds()) < until;)
            if (bed_sleep(b, (int)(1000 * (until - now)) + 1)) bed_turn(b);
        used = bed_processor_seconds() - before;
    }
    if (used > most) fail_msg("%.6f s of processor time in %.1f s", used, seconds);
}

#endif
