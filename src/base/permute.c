/* SPDX-License-Identifier: Apache-2.0
 * A Feistel network over the smallest even number of bits that holds n is a permutation of its
 * range; walking along its cycle until the value lies below n restricts it to [0, n). */
#include "base/permute.h"

#define ROUNDS 6

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t encrypt(uint64_t key, int half, uint64_t x) {
    uint64_t mask = ((uint64_t)1 << half) - 1, left = x >> half, right = x & mask;
    for (uint64_t r = 0; r < ROUNDS; r++) {
        uint64_t next = left ^ (mix(key + r * 0x9e3779b97f4a7c15u + right) & mask);
        left = right;
        right = next;
    }
    return left << half | right;
}

uint64_t permute_index(uint64_t key, uint64_t n, uint64_t i) {
    int half = 1;
    while (((uint64_t)1 << (2 * half)) < n) half++;
    do i = encrypt(key, half, i);
    while (i >= n);
    return i;
}
