/* SPDX-License-Identifier: Apache-2.0 */
#include "base/permute.h"

#include <math.h> /* sqrt */

#include "base/base.h"
#include "base/random.h"

/* Even, so that both halves are moved equally often. The shuffles of very few things become equally
 * likely with many rounds only: those of 5 things are visibly uneven after 12. */
#define ROUNDS(n) ((n) < 1024 ? 24u : 8u)

static uint64_t ceiling_of_root(uint64_t n) {
    uint64_t root = (uint64_t)sqrt((double)n);
    while (root * root < n) root++;
    return root;
}

/* A number is left * width + right in a grid of height * width >= n cells, of which fewer than
 * `height` lie beyond n. Each round adds a random function of one half to the other, which can be
 * undone: so the rounds permute the grid. A path that leaves [0, n) is walked on until it comes
 * back, on average after 1 + 1/height steps; this keeps it a bijection, since the path is part of a
 * cycle that passes through i itself. */
uint64_t permute_index(uint64_t key, uint64_t n, uint64_t i) {
    CHECK(n >= 1 && n <= PERMUTE_MAX && i < n);
    uint64_t height = ceiling_of_root(n), width = (n + height - 1) / height;
    do {
        uint64_t left = i / width, right = i % width;
        for (unsigned round = 0; round < ROUNDS(n); round++) {
            uint64_t *from = round & 1 ? &left : &right, *to = round & 1 ? &right : &left;
            uint64_t size = round & 1 ? width : height;
            uint32_t r[4];
            random_block(key, ~(uint64_t)round, *from, r); /* no stream of draws is that high */
            *to = (*to + ((uint64_t)r[1] << 32 | r[0]) % size) % size;
        }
        i = left * width + right;
    } while (i >= n);
    return i;
}
