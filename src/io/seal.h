/* SPDX-License-Identifier: Apache-2.0
 * Sealed files: encrypted, and authenticated to their last byte, by libsodium's secretstream (XChaCha20 and
 * Poly1305) with a key of 32 bytes. Numbers are little-endian.
 *      0   8  "TRISEAL\n"
 *      8   4  version, 1
 *     12   4  most bytes of a piece, before they are sealed
 *     16   8  step, and
 *     24  32  name, with zeros behind it: what the file is, so that none can stand for another
 *     56  16  fingerprint of the key, which tells a wrong key from damage
 *     72  24  the stream's own header
 *     96      pieces: 4 bytes of length n; n bytes, and 17 that authenticate them, the pieces before, and
 *             the first 56 bytes of the file. The last piece says that it is the last. */
#ifndef IO_SEAL_H
#define IO_SEAL_H

#include "base/base.h"

struct seal_key; /* in memory that is neither swapped nor dumped */

/* A file of 32 bytes, or of 64 hexadecimal digits, that nobody else may read. */
tri_status seal_key_open(const char *path, struct seal_key **key);
void seal_key_free(struct seal_key *key); /* or null */
/* Makes such a file, which must not be there yet. */
tri_status seal_key_make(const char *path);

/* What a file is sealed with, and as what. */
struct seal {
    const struct seal_key *key;
    const char *name; /* up to 32 bytes; when it is opened, null: whatever it is */
    int64_t step;     /* from 0 up; when it is opened, -1: of any */
};

/* Where bytes of a sealed file go. */
struct seal_sink {
    tri_status (*put)(void *to, const void *data, size_t bytes);
    void *to;
};

struct sealing; /* a file that is being written */
tri_status sealing_begin(const struct seal *seal, const struct seal_sink *sink, struct sealing **s);
tri_status sealing_add(struct sealing *s, const void *data, size_t bytes);
tri_status sealing_finish(struct sealing *s);
void sealing_free(struct sealing *s); /* or null */

/* Whether it begins as sealed files do. */
bool seal_is(const void *data, size_t bytes);
/* Opens a sealed file in place: data[0 to *bytes - 1] is the file, and then what had been sealed. `path`
 * stands in messages. TRI_USAGE if the key is another, TRI_FAILED if it is damaged. */
tri_status seal_open(const char *path, const struct seal *seal, char *data, size_t *bytes);
/* Reads a file that must be sealed; *data is freed with free(). */
tri_status seal_read(const char *path, const struct seal *seal, char **data, size_t *bytes);

#endif
