/* SPDX-License-Identifier: Apache-2.0
 * random_u32_fill (base/random.h) in vectors: Philox4x32-10 with VEC / 2 blocks per vector and
 * DRAW_CHAINS vectors at a time, to hide the latency of multiplications. */
#ifndef DEV_CPU_DRAW_H
#define DEV_CPU_DRAW_H

#include "base/random.h"
#include "dev/cpu/vec.h"

#define DRAW_CHAINS 4
#define DRAW_BLOCKS (DRAW_CHAINS * VEC / 2)

typedef uint64_t draw_words __attribute__((vector_size(4 * VEC)));

/* Products of the low halves: elements 0, 2, … and 1, 3, … of a and b. */
#if VEC == 16
#define DRAW_PRODUCT(a, b) ((draw_words)_mm512_mul_epu32((__m512i)(a), (__m512i)(b)))
#define DRAW_EVENS(a, b) ((draw_words)_mm512_unpacklo_epi64((__m512i)(a), (__m512i)(b)))
#define DRAW_ODDS(a, b) ((draw_words)_mm512_unpackhi_epi64((__m512i)(a), (__m512i)(b)))
#elif VEC == 8
#define DRAW_PRODUCT(a, b) ((draw_words)_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))
#define DRAW_EVENS(a, b) ((draw_words)_mm256_unpacklo_epi64((__m256i)(a), (__m256i)(b)))
#define DRAW_ODDS(a, b) ((draw_words)_mm256_unpackhi_epi64((__m256i)(a), (__m256i)(b)))
#else
#ifdef CPU_NEON
#define DRAW_PRODUCT(a, b) \
    ((draw_words)vmull_u32(vmovn_u64((uint64x2_t)(a)), vmovn_u64((uint64x2_t)(b))))
#else
#define DRAW_PRODUCT(a, b) (((a) & 0xffffffffu) * ((b) & 0xffffffffu))
#endif
#define DRAW_EVENS(a, b) ((draw_words){(a)[0], (b)[0]})
#define DRAW_ODDS(a, b) ((draw_words){(a)[1], (b)[1]})
#endif

/* The numbers of DRAW_BLOCKS blocks. The low halves of a, b, c, d are the four words of a block. */
static void draw_blocks(uint64_t key, uint64_t stream, uint64_t block, uint32_t *out) {
    draw_words a[DRAW_CHAINS], b[DRAW_CHAINS], c[DRAW_CHAINS], d[DRAW_CHAINS], none = {0};
    const unsigned width = VEC / 2;
    for (unsigned i = 0; i < DRAW_CHAINS; i++) {
        /* In this order the even elements are the first half of the blocks and the odd ones the
         * second. */
        for (unsigned j = 0; j < width; j++)
            a[i][j] = block + i * width + j / 2 + j % 2 * (width / 2);
        b[i] = a[i] >> 32;
        c[i] = none + stream;
        d[i] = none + (stream >> 32);
    }
    uint64_t k = key & 0xffffffffu, l = key >> 32;
    for (int round = 0; round < 10; round++, k += 0x9e3779b9u, l += 0xbb67ae85u)
        UNROLL for (int i = 0; i < DRAW_CHAINS; i++) {
            draw_words p = DRAW_PRODUCT(a[i], none + 0xd2511f53u);
            draw_words q = DRAW_PRODUCT(c[i], none + 0xcd9e8d57u);
            a[i] = (q >> 32) ^ b[i] ^ (none + k);
            b[i] = q;
            c[i] = (p >> 32) ^ d[i] ^ (none + l);
            d[i] = p;
        }
    for (unsigned i = 0; i < DRAW_CHAINS; i++) {
        draw_words x = (a[i] & 0xffffffffu) | b[i] << 32, y = (c[i] & 0xffffffffu) | d[i] << 32;
        draw_words first = DRAW_EVENS(x, y), second = DRAW_ODDS(x, y);
        memcpy(out + i * 4 * width, &first, sizeof first);
        memcpy(out + i * 4 * width + 2 * width, &second, sizeof second);
    }
}

/* out[i] = random_u32(key, stream, first + i) */
static void draw_fill(uint64_t key, uint64_t stream, uint64_t first, size_t n, uint32_t *out) {
    const size_t at_once = 4 * DRAW_BLOCKS;
    size_t i = (4 - first % 4) % 4; /* in the middle of a block */
    if (i >= n || n - i < at_once / 4) i = n;
    random_u32_fill(key, stream, first, i, out);
    for (; n - i >= at_once; i += at_once) draw_blocks(key, stream, (first + i) / 4, out + i);
    if (i == n) return;
    uint32_t rest[4 * DRAW_BLOCKS];
    draw_blocks(key, stream, (first + i) / 4, rest);
    memcpy(out + i, rest, (n - i) * sizeof *out);
}

#endif
