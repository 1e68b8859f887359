/* SPDX-License-Identifier: Apache-2.0
 * A shuffle that takes no memory. */
#ifndef BASE_PERMUTE_H
#define BASE_PERMUTE_H

#include <stdint.h>

#define PERMUTE_MAX ((uint64_t)1 << 48)

/* Where i comes to lie: for each key a bijection of [0, n). 1 <= n <= PERMUTE_MAX, i < n. */
uint64_t permute_index(uint64_t key, uint64_t n, uint64_t i);

#endif
