/* SPDX-License-Identifier: Apache-2.0
 * Random numbers without a state: each is a function of (key, stream, index), by Philox4x32-10. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

void random_block(uint64_t key, uint64_t counter_hi, uint64_t counter_lo, uint32_t out[4]);

/* A key from a run's seed and the hash of a name. */
uint64_t random_key(uint64_t seed, uint64_t name_hash);

uint32_t random_u32(uint64_t key, uint64_t stream, uint64_t index);
/* out[i] = random_u32(key, stream, first + i). */
void random_u32_fill(uint64_t key, uint64_t stream, uint64_t first, size_t n, uint32_t *out);
double random_uniform(uint64_t key, uint64_t stream, uint64_t index); /* in [0, 1), 53 bits */
double random_normal(uint64_t key, uint64_t stream, uint64_t index);
/* Standard normal given that it lies within two deviations. */
double random_truncated_normal(uint64_t key, uint64_t stream, uint64_t index);

#endif
