/* SPDX-License-Identifier: Apache-2.0
 * The same random bits in every run (splitmix64). */
#ifndef BITS_H
#define BITS_H

#include <stdint.h>

static uint64_t sequence;

static inline uint64_t next_bits(void) {
    uint64_t x = sequence += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

#endif
