/* SPDX-License-Identifier: Apache-2.0
 * Any bytes of a peer: as a stranger that connects, as the host that was connected to, as a peer
 * without authentication. And an authenticated session with some bytes changed, left out or sent
 * twice: what arrives is what was sent. Each refusal is one line. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "link/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST 4096
static const uint8_t key[LINK_KEY] = "0123456789abcdefghijklmnopqrstuv";
static char spare[WIRE_PIECE];

struct end {
    struct wire w;
    char *at;      /* of the payload; of its very length */
    size_t n_out;  /* bytes to send */
    uint8_t out[3 * MOST];
    int whole;     /* messages that have come */
};

static void begin(struct end *e, const struct wire_side *side, int host) {
    *e = (struct end){0};
    CHECK(!wire_begin(&e->w, side, host, 5, spare));
    memcpy(e->out, e->w.greeting, e->w.n_greeting);
    e->n_out = e->w.n_greeting;
}

static void over(struct end *e) {
    free(e->at);
    wire_free(&e->w);
}

static char content(uint64_t i, uint32_t item) { return (char)(i * 7 + item); }

/* For messages of this target's own: it must be one that was sent. */
static void check_message(const struct end *e, const struct link_header *h) {
    CHECK(h->item == (uint32_t)e->whole && h->length == 1000u * h->item && h->kind == LINK_VALUE);
    for (uint64_t i = 0; i < h->length; i++) CHECK(e->at[i] == content(i, h->item));
}

/* False: the session is over. */
static bool feed(struct end *e, const uint8_t *data, size_t size, bool own) {
    while (size) {
        struct iovec to[2];
        enum wire_event event;
        wire_want(&e->w, to);
        size_t n = size < to[0].iov_len ? size : to[0].iov_len;
        CHECK(n);
        memcpy(to[0].iov_base, data, n);
        data += n;
        size -= n;
        if (wire_got(&e->w, n, &event)) {
            CHECK(tri_message()[0] && !strchr(tri_message(), '\n'));
            return false;
        }
        if (event == WIRE_ANSWER || event == WIRE_JOINED) {
            memcpy(e->out + e->n_out, e->w.greeting, e->w.n_greeting);
            e->n_out += e->w.n_greeting;
        }
        if (event == WIRE_BEGUN) {
            CHECK(e->w.header.length <= MOST && e->w.header.kind < WIRE_KINDS);
            free(e->at);
            e->at = malloc((size_t)e->w.header.length + 1);
            CHECK(e->at);
            e->w.at = e->w.header.item % 7 == 6 ? NULL : e->at; /* dropped */
        }
        if (event == WIRE_WHOLE || (event == WIRE_BEGUN && !e->w.header.length)) {
            if (own) check_message(e, &e->w.header);
            e->whole++;
        }
    }
    return true;
}

static void any_bytes(const uint8_t *data, size_t size, const uint8_t *k, int host) {
    const struct wire_side side = {0, 3, 7, MOST, k};
    struct end e;
    begin(&e, &side, host);
    feed(&e, data, size, false);
    over(&e);
}

/* A peer that greets as it should. */
static void any_messages(const uint8_t *data, size_t size) {
    const struct wire_side side = {0, 3, 7, MOST, NULL}, peer = {1, 3, 7, MOST, NULL};
    struct end e, p;
    begin(&e, &side, -1);
    begin(&p, &peer, 0);
    CHECK(feed(&e, p.out, p.n_out, false));
    feed(&e, data, size, false);
    over(&e);
    over(&p);
}

/* data: four bytes say what happens to the session's bytes. */
static void harm(const uint8_t *data) {
    const struct wire_side side = {0, 3, 7, MOST, key}, peer = {1, 3, 7, MOST, key};
    struct end e, p;
    begin(&e, &side, -1);
    begin(&p, &peer, 0);
    CHECK(feed(&e, p.out, p.n_out, true) && feed(&p, e.out, e.n_out, true));
    size_t n = p.n_out;
    for (uint32_t item = 0; item < 4; item++) {
        const struct link_header h = {.run = 7, .kind = LINK_VALUE, .item = item,
                                      .length = 1000 * item};
        n += wire_put_header(&p.w, &h, p.out + n);
        for (uint64_t i = 0; i < h.length; i++) p.out[n + i] = (uint8_t)content(i, item);
        if (h.length) n += h.length + wire_put_tag(&p.w, p.out + n, h.length, p.out + n + h.length);
    }
    size_t from = WIRE_HELLO, at = from + (data[0] | (size_t)data[1] << 8) % (n - from);
    size_t cut = at + data[3] % 64 < n ? data[3] % 64 : 0;
    p.out[at] ^= data[2];
    const bool twice = data[3] & 128;
    bool good = feed(&e, p.out + from, at - from + (twice ? cut : 0), true);
    if (good) good = feed(&e, p.out + at + (twice ? 0 : cut), n - at - (twice ? 0 : cut), true);
    CHECK(data[2] || cut || (good && e.whole == 4));
    over(&e);
    over(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    any_bytes(data, size, key, -1);
    any_bytes(data, size, key, 1);
    any_bytes(data, size, NULL, -1);
    any_messages(data, size);
    if (size >= 4) harm(data);
    return 0;
}
