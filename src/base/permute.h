/* SPDX-License-Identifier: Apache-2.0
 * A shuffle without memory: each position is computed by itself. */
#ifndef BASE_PERMUTE_H
#define BASE_PERMUTE_H

#include <stddef.h>
#include <stdint.h>

#define PERMUTE_MAX ((uint64_t)1 << 48)
#define PERMUTE_ROUNDS 24

/* State common to all positions of one permutation of [0, n). */
struct permutation {
    uint64_t n, height, width;
    unsigned rounds;
    uint64_t key[PERMUTE_ROUNDS];
};

/* For each key a bijection of [0, n), 1 <= n <= PERMUTE_MAX. */
void permute_make(uint64_t key, uint64_t n, struct permutation *out);
/* The images of `count` consecutive indices from `first`. */
void permute_fill(const struct permutation *p, uint64_t first, size_t count, uint64_t *out);

#endif
