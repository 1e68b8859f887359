/* SPDX-License-Identifier: Apache-2.0
 * Random numbers as a function of (key, stream, index), without state: any part of a tensor can be
 * drawn by any worker, in any order. Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel
 * random numbers: as easy as 1, 2, 3" (2011). The kinds of draws use disjoint counters: a u32 and a
 * normal with the same key, stream and index are independent. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* The generator itself: 128 random bits for a 64-bit key and a 128-bit counter. */
void random_block(uint64_t key, uint64_t counter_hi, uint64_t counter_lo, uint32_t out[4]);

/* A key from a seed and the hash of a name, or from a key and any other 64 bits. */
uint64_t random_key(uint64_t seed, uint64_t name_hash);

/* Indices are below 2^62; those of truncated normals below 2^48. */
uint32_t random_u32(uint64_t key, uint64_t stream, uint64_t index);
double random_uniform(uint64_t key, uint64_t stream, uint64_t index); /* [0, 1), 53 bits */
double random_normal(uint64_t key, uint64_t stream, uint64_t index);  /* within +-8.6 */
double random_truncated_normal(uint64_t key, uint64_t stream, uint64_t index); /* within +-2 */

/* out[i] = random_u32(key, stream, first + i) */
void random_u32_fill(uint64_t key, uint64_t stream, uint64_t first, size_t n, uint32_t *out);
/* out[i] = random_normal(key, stream, first + i) */
void random_normal_fill(uint64_t key, uint64_t stream, uint64_t first, size_t n, double *out);

#endif
