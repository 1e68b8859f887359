/* SPDX-License-Identifier: Apache-2.0
 * SHA-256 by libsodium. No other file includes it. */
#include "io/sha256.h"

#include <sodium/crypto_hash_sha256.h>
#include <sodium/utils.h>
#include <string.h>

typedef crypto_hash_sha256_state library_state;
_Static_assert(sizeof(library_state) == sizeof(struct sha256), "libsodium's state changed");

/* The state is copied in and out, 104 bytes, which avoids aliasing. */
static library_state load(const struct sha256 *h) {
    library_state s;
    memcpy(&s, h->state, sizeof s);
    return s;
}

static void store(struct sha256 *h, const library_state *s) { memcpy(h->state, s, sizeof *s); }

void sha256_begin(struct sha256 *h) {
    library_state s;
    crypto_hash_sha256_init(&s);
    store(h, &s);
}

void sha256_add(struct sha256 *h, const void *data, size_t bytes) {
    if (!bytes) return;
    library_state s = load(h);
    crypto_hash_sha256_update(&s, data, bytes);
    store(h, &s);
}

void sha256_end_hex(struct sha256 *h, char hex[65]) {
    unsigned char digest[crypto_hash_sha256_BYTES];
    library_state s = load(h);
    crypto_hash_sha256_final(&s, digest);
    sodium_bin2hex(hex, 65, digest, sizeof digest);
}
