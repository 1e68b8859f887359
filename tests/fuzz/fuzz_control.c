/* SPDX-License-Identifier: Apache-2.0
 * Any bytes of a peer of a control connection: as a stranger that connects, as whoever was
 * connected to. A connection with some bytes changed, left out or sent twice, and one whose peer
 * has the key and sends any length: what arrives is what was sent. Each refusal is one line. And
 * any address. */
#include <netdb.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "link/secret.h"
#include "link/sockets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST 4096
static const uint8_t key[LINK_KEY] = "0123456789abcdefghijklmnopqrstuv";

struct end {
    struct secret s;
    size_t n_out; /* bytes to send */
    uint8_t out[4 * MOST];
    int whole;    /* messages that have come */
    bool joined, over;
};

static void greet(struct end *e) {
    memcpy(e->out + e->n_out, e->s.greeting, e->s.n_greeting);
    e->n_out += e->s.n_greeting;
}

static void begin(struct end *e, bool connects) {
    *e = (struct end){0};
    CHECK(!secret_begin(&e->s, key, MOST, connects));
    greet(e);
}

static uint8_t content(size_t i, int of) { return (uint8_t)(i * 7 + (size_t)of); }

/* False: the connection is over. */
static bool feed(struct end *e, const uint8_t *data, size_t size) {
    while (size && !e->over) {
        uint8_t *to;
        enum secret_event event;
        size_t n = secret_want(&e->s, &to);
        CHECK(n && n <= MOST + SECRET_MORE);
        n = size < n ? size : n;
        memcpy(to, data, n);
        data += n;
        size -= n;
        if (secret_got(&e->s, n, &event)) {
            CHECK(tri_message()[0] && !strchr(tri_message(), '\n'));
            return false;
        }
        if (event == SECRET_ANSWER || event == SECRET_JOINED) greet(e);
        if (event == SECRET_JOINED) e->joined = true;
        if (event == SECRET_OVER) e->over = true;
        if (event != SECRET_WHOLE) continue;
        void *memory;
        const uint8_t *bytes = secret_take(&e->s, &memory);
        CHECK(e->s.n == 1000u * (size_t)e->whole);
        for (size_t i = 0; i < e->s.n; i++) CHECK(bytes[i] == content(i, e->whole));
        free(memory);
        e->whole++;
    }
    return true;
}

static void any_bytes(const uint8_t *data, size_t size, bool connects) {
    struct end e;
    begin(&e, connects);
    feed(&e, data, size);
    CHECK(!e.joined);
    secret_free(&e.s);
}

/* `to` has the greeting of `from`, which then has that of `to`. */
static void join(struct end *from, struct end *to) {
    begin(to, false);
    begin(from, true);
    size_t n = from->n_out;
    CHECK(feed(to, from->out, n) && feed(from, to->out, to->n_out) && from->joined);
    CHECK(feed(to, from->out + n, from->n_out - n) && to->joined);
    from->n_out = to->n_out = 0;
}

/* data: four bytes say what happens to the connection's bytes. */
static void harm(const uint8_t *data) {
    struct end e, p;
    uint8_t message[3000];
    join(&p, &e);
    for (int of = 0; of < 4; of++) {
        const size_t n = 1000u * (size_t)of;
        for (size_t i = 0; i < n; i++) message[i] = content(i, of);
        secret_put(&p.s, message, n, p.out + p.n_out);
        p.n_out += secret_size(n);
    }
    secret_put(&p.s, NULL, 0, p.out + p.n_out);
    p.n_out += secret_size(0);
    size_t n = p.n_out, at = (data[0] | (size_t)data[1] << 8) % n;
    size_t cut = at + data[3] % 64 < n ? data[3] % 64 : 0;
    p.out[at] ^= data[2];
    const bool twice = data[3] & 128;
    bool good = feed(&e, p.out, at + (twice ? cut : 0));
    if (good) good = feed(&e, p.out + at + (twice ? 0 : cut), n - at - (twice ? 0 : cut));
    const bool harmed = data[2] || cut;
    CHECK(harmed ? !e.over : good && e.over && e.whole == 4);
    secret_free(&e.s);
    secret_free(&p.s);
}

/* A peer that has the key, and whatever length. */
static void any_length(const uint8_t *data, size_t size) {
    struct end e, p;
    uint64_t n;
    join(&p, &e);
    memcpy(&n, data, sizeof n);
    if (data[8] % 2) n %= 2 * MOST;
    secret_put_length(&p.s, n, false, p.out);
    e.whole = n ? 9 : 0; /* no message may come */
    CHECK(feed(&e, p.out, SECRET_LENGTH) == (n <= MOST));
    data += 9;
    size -= 9;
    if (n && n <= MOST) CHECK(feed(&e, data, size) == (size < n + SECRET_MORE));
    secret_free(&e.s);
    secret_free(&p.s);
}

static void any_address(const uint8_t *data, size_t size) {
    char text[300];
    struct addrinfo *found;
    size = size < sizeof text - 1 ? size : sizeof text - 1;
    memcpy(text, data, size);
    text[size] = 0;
    if (!socket_find(text, false, &found)) freeaddrinfo(found);
    else CHECK(base_last() == TRI_USAGE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    any_bytes(data, size, false);
    any_bytes(data, size, true);
    any_address(data, size);
    if (size >= 4) harm(data);
    if (size >= 9) any_length(data, size);
    return 0;
}
