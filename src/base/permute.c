/* SPDX-License-Identifier: Apache-2.0 */
#include "base/permute.h"

#include <math.h> /* sqrt */

#include "base/base.h"
#include "base/random.h"

/* Even, so that both halves are changed equally often. Shuffles of very few elements become uniform
 * only with many rounds: those of 5 elements are visibly uneven after 12. */
#define ROUNDS(n) ((n) < 1024 ? PERMUTE_ROUNDS : 8)

static uint64_t ceiling_of_root(uint64_t n) {
    uint64_t root = (uint64_t)sqrt((double)n);
    while (root * root < n) root++;
    return root;
}

void permute_make(uint64_t key, uint64_t n, struct permutation *p) {
    CHECK(n >= 1 && n <= PERMUTE_MAX);
    p->n = n;
    p->height = ceiling_of_root(n);
    p->width = (n + p->height - 1) / p->height;
    p->rounds = ROUNDS(n);
    for (unsigned i = 0; i < p->rounds; i++) {
        uint32_t r[4];
        random_block(key, ~(uint64_t)0, i, r); /* no stream of draws reaches this number */
        p->key[i] = (uint64_t)r[1] << 32 | r[0];
    }
}

/* A number below `size` (at most 2^24) from 64 bits: mixes them as splitmix64 does and uses 39 of
 * the bits as a fraction. */
static uint64_t draw(uint64_t x, uint64_t size) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return (x >> 25) * size >> 39;
}

static uint64_t add(uint64_t a, uint64_t b, uint64_t size) {
    uint64_t sum = a + b;
    return sum < size ? sum : sum - size;
}

#define TOGETHER 8 /* independent chains of multiplications at a time, to hide their latency */

/* An index is left * width + right in a grid of height * width >= n cells, fewer than `height` of
 * them beyond n. Each round adds a random function of one half to the other. That can be undone, so
 * the rounds permute the grid. */
static void turn(const struct permutation *p, uint64_t *i) {
    uint64_t left[TOGETHER], right[TOGETHER];
    for (int k = 0; k < TOGETHER; k++) {
        left[k] = i[k] / p->width;
        right[k] = i[k] % p->width;
    }
    for (unsigned round = 0; round < p->rounds; round += 2)
        for (int k = 0; k < TOGETHER; k++) {
            left[k] = add(left[k], draw(p->key[round] + right[k], p->height), p->height);
            right[k] = add(right[k], draw(p->key[round + 1] + left[k], p->width), p->width);
        }
    for (int k = 0; k < TOGETHER; k++) i[k] = left[k] * p->width + right[k];
}

/* An index outside [0, n) goes through the rounds again until it is inside, on average after 1 +
 * 1/height times. The mapping stays a bijection, since each cycle of the grid's permutation only
 * loses elements. */
static uint64_t come_back(const struct permutation *p, uint64_t i) {
    uint64_t path[TOGETHER] = {i};
    while (path[0] >= p->n) turn(p, path);
    return path[0];
}

void permute_fill(const struct permutation *p, uint64_t first, size_t count, uint64_t *out) {
    CHECK(first <= p->n && count <= p->n - first);
    for (size_t done = 0; done < count; done += TOGETHER) {
        uint64_t i[TOGETHER];
        for (size_t k = 0; k < TOGETHER; k++) i[k] = first + (done + k < count ? done + k : done);
        turn(p, i);
        for (size_t k = 0; k < TOGETHER && done + k < count; k++)
            out[done + k] = i[k] < p->n ? i[k] : come_back(p, i[k]);
    }
}
