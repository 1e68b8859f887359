/* SPDX-License-Identifier: Apache-2.0
 * A shuffled order that needs no memory. */
#ifndef BASE_PERMUTE_H
#define BASE_PERMUTE_H

#include <stdint.h>

/* Where i stands in a permutation of [0, n) chosen by the key; n from 1 to 2^48. */
uint64_t permute_index(uint64_t key, uint64_t n, uint64_t i);

#endif
