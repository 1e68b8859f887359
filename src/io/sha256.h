/* SPDX-License-Identifier: Apache-2.0
 * SHA-256 of bytes that arrive in pieces. */
#ifndef IO_SHA256_H
#define IO_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct sha256 {
    uint64_t state[13]; /* the library's state, so that only sha256.c includes it */
};

void sha256_begin(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *data, size_t bytes);
/* Writes 64 lower-case digits and a zero. To hash again, call begin first. */
void sha256_end_hex(struct sha256 *h, char hex[65]);

#endif
