/* SPDX-License-Identifier: Apache-2.0 */
#include "link/wire.h"

#include <sodium.h>
#include <string.h>

#define MAGIC "TRILINK\n"
#define VERSION 1

_Static_assert(WIRE_TAG == crypto_aead_chacha20poly1305_ietf_ABYTES, "as wire.h says");
_Static_assert(LINK_KEY == crypto_aead_chacha20poly1305_ietf_KEYBYTES, "as link.h says");

/* In memory that is neither swapped nor dumped. */
struct wire_keys {
    struct {
        uint8_t key[LINK_KEY];
        uint64_t count; /* of tags */
    } in, out;
};

/* ---- numbers ---- */

static void put(uint8_t *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *from, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value |= (uint64_t)from[i] << 8 * i;
    return value;
}

static uint32_t get4(const uint8_t *from) { return (uint32_t)get(from, 4); }

/* ---- tags ---- */

static uint8_t nothing[1]; /* a message of 0 bytes: all is associated data */

static size_t tag_bytes(const struct wire *w) { return w->keys ? WIRE_TAG : 0; }

static void nonce(uint64_t count, uint8_t to[crypto_aead_chacha20poly1305_ietf_NPUBBYTES]) {
    memset(to, 0, crypto_aead_chacha20poly1305_ietf_NPUBBYTES);
    put(to + 4, count, 8);
}

size_t wire_put_tag(struct wire *w, const void *data, size_t n, uint8_t to[WIRE_TAG]) {
    uint8_t number[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
    if (!w->keys) return 0;
    nonce(w->keys->out.count++, number);
    crypto_aead_chacha20poly1305_ietf_encrypt_detached(nothing, to, NULL, nothing, 0, data, n,
                                                       NULL, number, w->keys->out.key);
    return WIRE_TAG;
}

static bool is_authentic(struct wire *w, const void *data, size_t n, const uint8_t *tag) {
    uint8_t number[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
    if (!w->keys) return true;
    nonce(w->keys->in.count++, number);
    return !crypto_aead_chacha20poly1305_ietf_decrypt_detached(nothing, NULL, nothing, 0, tag, data,
                                                               n, number, w->keys->in.key);
}

/* The key of a direction: 0 is that of the host that connects. */
static void derive(const struct wire *w, uint8_t direction, uint8_t key[LINK_KEY]) {
    uint8_t of[sizeof w->hello + 1];
    memcpy(of, w->hello, sizeof w->hello);
    of[sizeof w->hello] = direction;
    crypto_generichash(key, LINK_KEY, of, sizeof of, w->side->key, LINK_KEY);
}

static tri_status make_keys(struct wire *w) {
    if (!w->side->key) return TRI_OK;
    w->keys = sodium_malloc(sizeof *w->keys);
    if (!w->keys) return base_no_memory("the keys of a session");
    memset(w->keys, 0, sizeof *w->keys);
    derive(w, !w->connects, w->keys->out.key);
    derive(w, w->connects, w->keys->in.key);
    return TRI_OK;
}

/* ---- the greeting ---- */

static void put_hello(const struct wire *w, uint8_t to[WIRE_HELLO]) {
    memcpy(to, MAGIC, 8);
    put(to + 8, VERSION, 4);
    put(to + 12, (uint64_t)w->side->self, 4);
    put(to + 16, (uint64_t)w->host, 4);
    put(to + 20, !!w->side->key, 4);
    put(to + 24, w->side->run, 8);
    put(to + 32, w->epoch, 8);
    randombytes_buf(to + 40, 24);
}

static tri_status read_hello(struct wire *w, const uint8_t *hello) {
    const uint32_t version = get4(hello + 8), from = get4(hello + 12), to = get4(hello + 16);
    if (memcmp(hello, MAGIC, 8)) return base_fail(TRI_FAILED, "it is no trireme");
    if (version != VERSION)
        return base_fail(TRI_FAILED, "it speaks version %u of the protocol, this host %d", version,
                         VERSION);
    if (get(hello + 24, 8) != w->side->run) return base_fail(TRI_FAILED, "it is of another run");
    if (to != (uint32_t)w->side->self || from >= (uint32_t)w->side->hosts || from == to ||
        (w->host >= 0 && from != (uint32_t)w->host))
        return base_fail(TRI_FAILED, "it is host %u and looks for host %u; this is host %d", from,
                         to, w->side->self);
    if (get4(hello + 20) != (uint32_t) !!w->side->key)
        return base_fail(TRI_FAILED, "it sends messages %s authentication, this host %s",
                         w->side->key ? "without" : "with", w->side->key ? "with" : "without");
    if (w->connects && get4(hello + 32) != w->epoch)
        return base_fail(TRI_FAILED, "it is of another epoch");
    w->epoch = get4(hello + 32);
    w->host = (int)from;
    return TRI_OK;
}

tri_status wire_begin(struct wire *w, const struct wire_side *side, int host, uint32_t epoch,
                      char *spare) {
    *w = (struct wire){.side = side, .host = host, .connects = host >= 0, .epoch = epoch,
                       .spare = spare};
    if (sodium_init() < 0) return base_fail(TRI_FAILED, "libsodium cannot be initialised");
    w->stage = w->connects ? WIRE_ANSWER_IN : WIRE_HELLO_IN;
    if (!w->connects) return TRI_OK;
    put_hello(w, w->hello[0]);
    memcpy(w->greeting, w->hello[0], WIRE_HELLO);
    w->n_greeting = WIRE_HELLO;
    return TRI_OK;
}

void wire_free(struct wire *w) {
    sodium_free(w->keys);
    w->keys = NULL;
}

static tri_status hello_came(struct wire *w, enum wire_event *event) {
    tri_status status = read_hello(w, w->in);
    if (status) return status;
    memcpy(w->hello[0], w->in, WIRE_HELLO);
    put_hello(w, w->hello[1]);
    memcpy(w->greeting, w->hello[1], WIRE_HELLO);
    status = make_keys(w);
    if (status) return status;
    w->n_greeting = WIRE_HELLO;
    w->n_greeting += wire_put_tag(w, w->hello, sizeof w->hello, w->greeting + WIRE_HELLO);
    w->stage = w->keys ? WIRE_PROOF_IN : WIRE_HEADER_IN;
    *event = w->keys ? WIRE_ANSWER : WIRE_JOINED;
    return TRI_OK;
}

static tri_status proof_came(struct wire *w, const uint8_t *proof, enum wire_event *event) {
    if (!is_authentic(w, w->hello, sizeof w->hello, proof))
        return base_fail(TRI_FAILED, "it has another key");
    w->stage = WIRE_HEADER_IN;
    *event = WIRE_JOINED;
    return TRI_OK;
}

static tri_status answer_came(struct wire *w, enum wire_event *event) {
    tri_status status = read_hello(w, w->in);
    if (status) return status;
    memcpy(w->hello[1], w->in, WIRE_HELLO);
    status = make_keys(w);
    if (!status) status = proof_came(w, w->in + WIRE_HELLO, event);
    if (!status) w->n_greeting = wire_put_tag(w, w->hello, sizeof w->hello, w->greeting);
    return status;
}

/* ---- messages ---- */

size_t wire_put_header(struct wire *w, const struct link_header *h,
                       uint8_t to[WIRE_HEADER + WIRE_TAG]) {
    put(to, VERSION, 4);
    put(to + 4, h->kind, 4);
    put(to + 8, h->run, 8);
    put(to + 16, h->epoch, 4);
    put(to + 20, h->step, 4);
    put(to + 24, h->item, 4);
    put(to + 28, h->node, 4);
    put(to + 32, h->part, 4);
    put(to + 36, h->format, 4);
    put(to + 40, h->offset, 8);
    put(to + 48, h->length, 8);
    return WIRE_HEADER + wire_put_tag(w, to, WIRE_HEADER, to + WIRE_HEADER);
}

static tri_status read_header(const struct wire *w, const uint8_t *from, struct link_header *h) {
    *h = (struct link_header){
        .kind = get4(from + 4), .run = get(from + 8, 8), .epoch = get4(from + 16),
        .step = get4(from + 20), .item = get4(from + 24), .node = get4(from + 28),
        .part = get4(from + 32), .format = get4(from + 36), .offset = get(from + 40, 8),
        .length = get(from + 48, 8)};
    if (get4(from) != VERSION || h->kind >= WIRE_KINDS || h->run != w->side->run)
        return base_fail(TRI_FAILED, "it sent a message of another kind or run");
    if (h->length > (h->kind < LINK_KINDS ? w->side->most : 0))
        return base_fail(TRI_FAILED, "it sent a message of %llu bytes; the most is %llu",
                         (unsigned long long)h->length, (unsigned long long)w->side->most);
    return TRI_OK;
}

static tri_status header_came(struct wire *w, enum wire_event *event) {
    if (!is_authentic(w, w->in, WIRE_HEADER, w->in + WIRE_HEADER))
        return base_fail(TRI_FAILED, "its bytes were changed on the way");
    tri_status status = read_header(w, w->in, &w->header);
    if (status) return status;
    w->done = 0;
    w->at = NULL;
    w->stage = w->header.length ? WIRE_PIECE_IN : WIRE_HEADER_IN;
    *event = WIRE_BEGUN;
    return TRI_OK;
}

static size_t piece_bytes(const struct wire *w) {
    uint64_t left = w->header.length - w->done;
    return left < WIRE_PIECE ? (size_t)left : WIRE_PIECE;
}

static char *piece_at(const struct wire *w) { return w->at ? w->at + w->done : w->spare; }

static tri_status piece_came(struct wire *w, enum wire_event *event) {
    const size_t n = piece_bytes(w);
    if (!is_authentic(w, piece_at(w), n, w->in))
        return base_fail(TRI_FAILED, "its bytes were changed on the way");
    w->done += n;
    if (w->done < w->header.length) return TRI_OK;
    w->stage = WIRE_HEADER_IN;
    *event = WIRE_WHOLE;
    return TRI_OK;
}

/* ---- bytes ---- */

static void wanted(struct wire *w, struct iovec to[2]) {
    to[0] = to[1] = (struct iovec){w->in, 0};
    switch (w->stage) {
    case WIRE_HELLO_IN: to[0].iov_len = WIRE_HELLO; break;
    case WIRE_ANSWER_IN: to[0].iov_len = WIRE_HELLO + (w->side->key ? WIRE_TAG : 0); break;
    case WIRE_PROOF_IN: to[0].iov_len = WIRE_TAG; break;
    case WIRE_HEADER_IN: to[0].iov_len = WIRE_HEADER + tag_bytes(w); break;
    case WIRE_PIECE_IN:
        to[0] = (struct iovec){piece_at(w), piece_bytes(w)};
        to[1].iov_len = tag_bytes(w);
        break;
    }
}

int wire_want(struct wire *w, struct iovec to[2]) {
    size_t have = w->have;
    wanted(w, to);
    for (int i = 0; i < 2; i++) {
        size_t n = have < to[i].iov_len ? have : to[i].iov_len;
        to[i].iov_base = (char *)to[i].iov_base + n;
        to[i].iov_len -= n;
        have -= n;
    }
    if (!to[0].iov_len) to[0] = to[1];
    return to[0].iov_base == to[1].iov_base || !to[1].iov_len ? 1 : 2;
}

tri_status wire_got(struct wire *w, size_t n, enum wire_event *event) {
    struct iovec all[2];
    *event = WIRE_MORE;
    wanted(w, all);
    w->have += n;
    CHECK(w->have <= all[0].iov_len + all[1].iov_len);
    if (w->have < all[0].iov_len + all[1].iov_len) return TRI_OK;
    w->have = 0;
    w->n_greeting = 0;
    switch (w->stage) {
    case WIRE_HELLO_IN: return hello_came(w, event);
    case WIRE_ANSWER_IN: return answer_came(w, event);
    case WIRE_PROOF_IN: return proof_came(w, w->in, event);
    case WIRE_HEADER_IN: return header_came(w, event);
    default: return piece_came(w, event);
    }
}

bool wire_is_inside(const struct wire *w) { return w->stage != WIRE_HEADER_IN || w->have; }
