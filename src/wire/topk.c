/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/topk.h"

#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "base/convert.h"

uint64_t topk_kept(double share, uint64_t n) {
    const double kept = ceil(share * (double)n);
    return kept < 1 ? 1 : kept < (double)n ? (uint64_t)kept : n;
}

static size_t words_of(uint64_t n) { return (size_t)(n / 64 + (n % 64 != 0)); }

size_t topk_mark_bytes(uint64_t n) { return words_of(n) * sizeof(uint64_t); }

/* ---- rounding ---- */

/* A distance has 31 bits, which are in the order of distances. */
#define NOT_A_NUMBER 0x7f800001u
#define MAGNITUDE 0x7fffffffu

static inline uint32_t distance(float x, float from) {
    const uint32_t bits = convert_bits(x - from) & MAGNITUDE;
    return bits < NOT_A_NUMBER ? bits : NOT_A_NUMBER; /* NaN has one form */
}

#define CHUNK 256
#define DIGITS 3
#define BINS 4096
/* The digits of a distance: 12, 10 and 9 bits. */
static const struct {
    int shift, bits;
} digit[DIGITS] = {{19, 12}, {9, 10}, {0, 9}};

CLONES static void measure(const float *x, const float *from, uint32_t *to) {
    for (int i = 0; i < CHUNK; i++) to[i] = distance(x[i], from[i]);
}

/* The distances from `at` on; returns how many there are. */
static size_t next_distances(const float *x, const float *from, uint64_t at, uint64_t n,
                             uint32_t to[CHUNK]) {
    const size_t some = n - at < CHUNK ? (size_t)(n - at) : CHUNK;
    if (some == CHUNK) measure(x + at, from + at, to);
    for (size_t i = 0; some < CHUNK && i < some; i++) to[i] = distance(x[at + i], from[at + i]);
    return some;
}

/* Counts digit d of the distances whose digits before it are those of `is`. */
static void count(const float *x, const float *from, uint64_t n, int d, uint32_t is,
                  uint64_t bin[BINS]) {
    const int shift = digit[d].shift;
    const uint32_t mask = (1u << digit[d].bits) - 1;
    const uint32_t before = d ? ~0u << (shift + digit[d].bits) : 0;
    uint32_t all[CHUNK];
    memset(bin, 0, sizeof *bin * BINS);
    for (uint64_t at = 0; at < n; at += CHUNK) {
        const size_t some = next_distances(x, from, at, n, all);
        for (size_t i = 0; i < some; i++)
            if (!((all[i] ^ is) & before)) bin[all[i] >> shift & mask]++;
    }
}

/* The least distance that is kept. *ties: how many of those that have it. A thread that is late
 * with a node that is done already may see estimates change, and finds anything. */
static uint32_t least_kept(const float *x, const float *from, uint64_t n, uint64_t kept,
                           uint64_t *ties) {
    uint64_t bin[BINS];
    uint32_t is = 0;
    for (int d = 0; d < DIGITS; d++) {
        uint32_t b = (1u << digit[d].bits) - 1;
        count(x, from, n, d, is, bin);
        for (; b && kept > bin[b]; b--) kept -= bin[b];
        is |= b << digit[d].shift;
    }
    *ties = kept;
    return is;
}

void topk_round(float *x, const float *estimate, uint64_t n, uint64_t kept, uint64_t *marks) {
    uint64_t ties;
    uint32_t all[CHUNK];
    const uint32_t least = least_kept(x, estimate, n, kept, &ties);
    memset(marks, 0, topk_mark_bytes(n));
    for (uint64_t at = 0; at < n; at += CHUNK) {
        const size_t some = next_distances(x, estimate, at, n, all);
        for (size_t i = 0; i < some; i++) {
            const bool tie = all[i] == least && ties;
            const bool keeps = all[i] > least || tie;
            ties -= tie;
            marks[(at + i) / 64] |= (uint64_t)keeps << (at + i) % 64;
            x[at + i] = keeps ? x[at + i] : estimate[at + i];
        }
    }
}

/* ---- on the wire ---- */

/* Where the bits of indices are in a message, after the numbers. */
struct places {
    int low;                  /* bits of each */
    uint64_t low_at, unary_at; /* in bytes */
    uint64_t unary;           /* bits */
    uint64_t end;
};

static struct places places_of(uint64_t n, uint64_t kept) {
    struct places p = {.low_at = 4 * kept};
    while (kept << (p.low + 1) <= n) p.low++;
    p.unary = kept + ((n - 1) >> p.low);
    p.unary_at = p.low_at + (kept * (uint64_t)p.low + 7) / 8;
    p.end = p.unary_at + (p.unary + 7) / 8;
    return p;
}

size_t topk_bytes(uint64_t n, uint64_t kept) { return (size_t)places_of(n, kept).end; }

/* Bits that follow one another, from the lowest of the first byte on. */
struct bits {
    uint8_t *at;
    uint64_t word;
    int n; /* bits in the word, below 8 */
};

static inline void put_bits(struct bits *b, uint64_t value, int n) {
    b->word |= value << b->n;
    for (b->n += n; b->n >= 8; b->n -= 8, b->word >>= 8) *b->at++ = (uint8_t)b->word;
}

void topk_put(const float *x, const uint64_t *marks, uint64_t n, uint64_t kept, uint8_t *to) {
    const struct places p = places_of(n, kept);
    struct bits low = {.at = to + p.low_at};
    uint64_t k = 0;
    memset(to + p.unary_at, 0, p.end - p.unary_at);
    for (uint64_t w = 0; w < words_of(n); w++)
        for (uint64_t left = marks[w]; left && k < kept; left &= left - 1, k++) {
            const uint64_t i = 64 * w + (uint64_t)__builtin_ctzll(left);
            const uint64_t one = (i >> p.low) + k;
            memcpy(to + 4 * k, &x[i], sizeof *x);
            put_bits(&low, i & ((1ull << p.low) - 1), p.low);
            to[p.unary_at + one / 8] |= (uint8_t)(1u << one % 8);
        }
    put_bits(&low, 0, 7); /* the last byte */
    CHECK(k == kept);
}

static inline uint64_t take_bits(struct bits *b, int n) {
    for (; b->n < n; b->n += 8) b->word |= (uint64_t)*b->at++ << b->n;
    const uint64_t value = b->word & ((1ull << n) - 1);
    b->word >>= n;
    b->n -= n;
    return value;
}

bool topk_take(const uint8_t *from, const float *estimate, uint64_t n, uint64_t kept, float *x,
               uint64_t *marks) {
    const struct places p = places_of(n, kept);
    struct bits low = {.at = (uint8_t *)from + p.low_at};
    uint64_t k = 0, next = 0; /* the least index that may follow */
    memcpy(x, estimate, n * sizeof *x);
    memset(marks, 0, topk_mark_bytes(n));
    for (uint64_t byte = 0; byte < p.end - p.unary_at; byte++)
        for (uint32_t left = from[p.unary_at + byte]; left; left &= left - 1, k++) {
            const uint64_t one = 8 * byte + (uint64_t)__builtin_ctz(left);
            if (k == kept || one >= p.unary) return false;
            const uint64_t i = (one - k) << p.low | take_bits(&low, p.low);
            if (i < next || i >= n) return false;
            next = i + 1;
            memcpy(&x[i], from + 4 * k, sizeof *x);
            marks[i / 64] |= 1ull << i % 64;
        }
    return k == kept && !low.word; /* the rest of the last byte is zeros */
}
