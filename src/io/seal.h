/* SPDX-License-Identifier: Apache-2.0
 * Sealed files: encrypted, and authenticated to the last byte, by libsodium's secretstream
 * (XChaCha20 and Poly1305) with a key of 32 bytes. Numbers are little-endian.
 *      0   8  "TRISEAL\n"
 *      8   4  version, 1
 *     12   4  the most bytes in a piece, unsealed
 *     16   8  step
 *     24  32  name, padded with zeros: what the file is, so that no file can replace another
 *     56  16  fingerprint of the key, which tells a wrong key from damage
 *     72  24  the stream's header
 *     96 pieces: 4 bytes of length n; n bytes; 17 bytes that authenticate them, the pieces before
 *             them, and the first 56 bytes of the file. The last piece is marked as the last. */
#ifndef IO_SEAL_H
#define IO_SEAL_H

#include "base/base.h"

#define SEAL_KEY 32 /* bytes */
struct seal_key;    /* in memory that is neither swapped nor dumped */

/* A file of 32 bytes, or of 64 hexadecimal digits, that no other user may read. */
tri_status seal_key_open(const char *path, struct seal_key **key);
void seal_key_free(struct seal_key *key); /* nullable */
/* The same, for keys with another use, as that of a run. The caller clears it after use. */
tri_status seal_key_read(const char *path, uint8_t key[SEAL_KEY]);
/* Creates such a file, which must not exist yet. */
tri_status seal_key_make(const char *path);

/* What a file is sealed with, and as what. */
struct seal {
    const struct seal_key *key;
    const char *name; /* up to 32 bytes; when opening, null: any */
    int64_t step;     /* at least 0; when opening, -1: any */
};

/* Receives the bytes of a sealed file. */
struct seal_sink {
    tri_status (*put)(void *to, const void *data, size_t bytes);
    void *to;
};

struct sealing; /* a file that is being written */
tri_status sealing_begin(const struct seal *seal, const struct seal_sink *sink, struct sealing **s);
tri_status sealing_add(struct sealing *s, const void *data, size_t bytes);
tri_status sealing_finish(struct sealing *s);
void sealing_free(struct sealing *s); /* nullable */

/* Whether the data start as sealed files do. */
bool seal_is(const void *data, size_t bytes);
/* Decrypts in place: data[0 to *bytes - 1] is the sealed file, and afterwards its content. `path`
 * is used in messages. TRI_USAGE for another key, TRI_FAILED for damage. */
tri_status seal_open(const char *path, const struct seal *seal, char *data, size_t *bytes);
/* Reads a file that must be sealed; *data is freed with free(). */
tri_status seal_read(const char *path, const struct seal *seal, char **data, size_t *bytes);

#endif
