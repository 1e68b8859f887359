/* SPDX-License-Identifier: Apache-2.0 */
#include "link/secret.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "TRICTRL\n"
#define VERSION 1
#define HEADER crypto_secretstream_xchacha20poly1305_HEADERBYTES
#define BEFORE 16 /* bytes of memory before a message, which so begins at a multiple of 16 */
#define MESSAGE crypto_secretstream_xchacha20poly1305_TAG_MESSAGE
#define FINAL crypto_secretstream_xchacha20poly1305_TAG_FINAL

_Static_assert(SECRET_MORE == crypto_secretstream_xchacha20poly1305_ABYTES &&
               SECRET_PROOF == HEADER + SECRET_MORE && SECRET_LENGTH == 8 + SECRET_MORE,
               "as secret.h says");
_Static_assert(LINK_KEY == crypto_secretstream_xchacha20poly1305_KEYBYTES, "as link.h says");

enum { HELLO_IN, ANSWER_IN, PROOF_IN, LENGTH_IN, BODY_IN, OVER };

/* In memory that is neither swapped nor dumped. */
struct secret_keys {
    crypto_secretstream_xchacha20poly1305_state in, out;
    uint8_t key[LINK_KEY];
};

/* ---- secretstreams ---- */

static void seal(struct secret *s, const void *bytes, size_t n, uint8_t tag, uint8_t *to) {
    CHECK(!crypto_secretstream_xchacha20poly1305_push(&s->keys->out, to, NULL, bytes, n, NULL, 0,
                                                      tag));
}

static bool unseal(struct secret *s, const uint8_t *from, size_t n, uint8_t *to, uint8_t *tag) {
    return !crypto_secretstream_xchacha20poly1305_pull(&s->keys->in, to, NULL, tag, from,
                                                       n + SECRET_MORE, NULL, 0);
}

/* The key of a direction: 0 is that of the side that connects. */
static const uint8_t *derive(struct secret *s, uint8_t direction) {
    uint8_t of[sizeof s->hello + 1];
    memcpy(of, s->hello, sizeof s->hello);
    of[sizeof s->hello] = direction;
    crypto_generichash(s->keys->key, LINK_KEY, of, sizeof of, s->key, LINK_KEY);
    return s->keys->key;
}

/* Both hellos are there. Adds this side's proof to the greeting. */
static tri_status make_keys(struct secret *s) {
    uint8_t *to = s->greeting + s->n_greeting;
    s->keys = sodium_malloc(sizeof *s->keys);
    if (!s->keys) return base_no_memory("the keys of a connection");
    crypto_secretstream_xchacha20poly1305_init_push(&s->keys->out, to, derive(s, !s->connects));
    seal(s, NULL, 0, MESSAGE, to + HEADER);
    s->n_greeting += SECRET_PROOF;
    return TRI_OK;
}

static tri_status check_proof(struct secret *s, const uint8_t *proof) {
    uint8_t tag, none[1];
    bool is_right = !crypto_secretstream_xchacha20poly1305_init_pull(&s->keys->in, proof,
                                                                     derive(s, s->connects));
    sodium_memzero(s->keys->key, sizeof s->keys->key);
    if (is_right && unseal(s, proof + HEADER, 0, none, &tag)) return TRI_OK;
    return base_fail(TRI_FAILED, "it has another key");
}

/* ---- the greeting ---- */

static void put_hello(struct secret *s, uint8_t hello[SECRET_HELLO]) {
    memset(hello, 0, 16);
    memcpy(hello, MAGIC, 8);
    hello[8] = VERSION;
    randombytes_buf(hello + 16, SECRET_HELLO - 16);
    memcpy(s->greeting, hello, SECRET_HELLO);
    s->n_greeting = SECRET_HELLO;
}

static tri_status read_hello(struct secret *s, uint8_t hello[SECRET_HELLO]) {
    uint32_t version = 0;
    memcpy(hello, s->in, SECRET_HELLO);
    if (memcmp(hello, MAGIC, 8)) return base_fail(TRI_FAILED, "it is no trireme");
    for (int i = 0; i < 4; i++) version |= (uint32_t)hello[8 + i] << 8 * i;
    if (version != VERSION)
        return base_fail(TRI_FAILED, "it speaks version %u of the protocol, this host %d", version,
                         VERSION);
    return TRI_OK;
}

tri_status secret_begin(struct secret *s, const uint8_t *key, uint64_t most, bool connects) {
    *s = (struct secret){.key = key, .most = most, .connects = connects};
    if (sodium_init() < 0) return base_fail(TRI_FAILED, "libsodium cannot be initialised");
    s->stage = connects ? ANSWER_IN : HELLO_IN;
    if (connects) put_hello(s, s->hello[0]);
    return TRI_OK;
}

void secret_free(struct secret *s) {
    sodium_free(s->keys);
    free(s->body);
    s->keys = NULL;
    s->body = NULL;
}

static tri_status hello_came(struct secret *s, enum secret_event *event) {
    tri_status status = read_hello(s, s->hello[0]);
    if (status) return status;
    put_hello(s, s->hello[1]);
    s->stage = PROOF_IN;
    *event = SECRET_ANSWER;
    return make_keys(s);
}

static tri_status proof_came(struct secret *s, enum secret_event *event) {
    s->stage = LENGTH_IN;
    *event = SECRET_JOINED;
    return check_proof(s, s->connects ? s->in + SECRET_HELLO : s->in);
}

static tri_status answer_came(struct secret *s, enum secret_event *event) {
    tri_status status = read_hello(s, s->hello[1]);
    if (!status) status = make_keys(s);
    return status ? status : proof_came(s, event);
}

/* ---- messages ---- */

static tri_status changed(void) {
    return base_fail(TRI_FAILED, "its bytes were changed on the way");
}

static tri_status length_came(struct secret *s, enum secret_event *event) {
    uint8_t number[8], tag;
    uint64_t n = 0;
    if (!unseal(s, s->in, sizeof number, number, &tag)) return changed();
    for (int i = 0; i < 8; i++) n |= (uint64_t)number[i] << 8 * i;
    if (n > s->most)
        return base_fail(TRI_FAILED, "it sent a message of %llu bytes; the most is %llu",
                         (unsigned long long)n, (unsigned long long)s->most);
    *event = tag == FINAL ? SECRET_OVER : n ? SECRET_NOTHING : SECRET_WHOLE;
    s->stage = tag == FINAL ? OVER : n ? BODY_IN : LENGTH_IN;
    s->n = (size_t)n;
    if (*event != SECRET_NOTHING) return TRI_OK;
    s->body = malloc(BEFORE + s->n + SECRET_MORE);
    return s->body ? TRI_OK : base_no_memory("a message");
}

/* Where the sealed bytes go: the secretstream's own byte, the message, the rest of what
 * authenticates it. The message is decrypted in its place. */
static uint8_t *sealed(const struct secret *s) { return s->body + BEFORE - 1; }

static tri_status body_came(struct secret *s, enum secret_event *event) {
    uint8_t tag;
    if (!unseal(s, sealed(s), s->n, s->body + BEFORE, &tag)) return changed();
    s->stage = LENGTH_IN;
    *event = SECRET_WHOLE;
    return TRI_OK;
}

const uint8_t *secret_take(struct secret *s, void **memory) {
    const uint8_t *bytes = s->body ? s->body + BEFORE : NULL;
    *memory = s->body;
    s->body = NULL;
    return bytes;
}

size_t secret_size(size_t n) { return SECRET_LENGTH + (n ? n + SECRET_MORE : 0); }

void secret_put_length(struct secret *s, uint64_t n, bool last, uint8_t *to) {
    uint8_t number[8];
    for (int i = 0; i < 8; i++) number[i] = (uint8_t)(n >> 8 * i);
    seal(s, number, sizeof number, last ? FINAL : MESSAGE, to);
}

void secret_put(struct secret *s, const void *bytes, size_t n, uint8_t *to) {
    secret_put_length(s, n, !bytes, to);
    if (n) seal(s, bytes, n, MESSAGE, to + SECRET_LENGTH);
}

/* ---- bytes ---- */

/* By stage. */
static tri_status (*const came[])(struct secret *, enum secret_event *) = {
    [HELLO_IN] = hello_came, [ANSWER_IN] = answer_came, [PROOF_IN] = proof_came,
    [LENGTH_IN] = length_came, [BODY_IN] = body_came};

static size_t whole(const struct secret *s) {
    static const size_t bytes[] = {SECRET_HELLO, SECRET_HELLO + SECRET_PROOF, SECRET_PROOF,
                                   SECRET_LENGTH};
    if (s->stage == OVER) return 0;
    return s->stage == BODY_IN ? s->n + SECRET_MORE : bytes[s->stage];
}

size_t secret_want(struct secret *s, uint8_t **to) {
    *to = (s->stage == BODY_IN ? sealed(s) : s->in) + s->have;
    return whole(s) - s->have;
}

tri_status secret_got(struct secret *s, size_t n, enum secret_event *event) {
    *event = SECRET_NOTHING;
    s->have += n;
    CHECK(s->stage != OVER && s->have <= whole(s));
    if (s->have < whole(s)) return TRI_OK;
    s->have = 0;
    s->n_greeting = 0;
    return came[s->stage](s, event);
}

bool secret_is_inside(const struct secret *s) {
    return s->stage < LENGTH_IN || s->stage == BODY_IN || s->have;
}
