/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include <math.h> /* sqrt */

#include "base/clones.h"
#include "base/math.h"

#define MULTIPLIER_0 0xd2511f53u
#define MULTIPLIER_1 0xcd9e8d57u
#define WEYL_0 0x9e3779b9u
#define WEYL_1 0xbb67ae85u
#define ROUNDS 10

/* The two highest bits of the counter separate the kinds of draws. */
#define KIND_U32 0u
#define KIND_UNIFORM 1u
#define KIND_NORMAL 2u
#define KIND_TRUNCATED 3u
#define KIND(kind, index) ((uint64_t)(kind) << 62 | (index))

static uint32_t low(uint64_t x) { return (uint32_t)x; }
static uint32_t high(uint64_t x) { return (uint32_t)(x >> 32); }

void random_block(uint64_t key, uint64_t counter_hi, uint64_t counter_lo, uint32_t out[4]) {
    uint32_t a = low(counter_lo), b = high(counter_lo), c = low(counter_hi), d = high(counter_hi);
    uint32_t k = low(key), l = high(key);
    for (int i = 0; i < ROUNDS; i++, k += WEYL_0, l += WEYL_1) {
        uint64_t p = (uint64_t)MULTIPLIER_0 * a, q = (uint64_t)MULTIPLIER_1 * c;
        a = high(q) ^ b ^ k;
        b = low(q);
        c = high(p) ^ d ^ l;
        d = low(p);
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

uint64_t random_key(uint64_t seed, uint64_t name_hash) {
    uint32_t r[4]; /* no draw reaches this lower half of the counter */
    random_block(seed, name_hash, KIND(KIND_U32, 0x3fffffffffffffffu), r);
    return (uint64_t)r[1] << 32 | r[0];
}

uint32_t random_u32(uint64_t key, uint64_t stream, uint64_t index) {
    uint32_t r[4];
    random_block(key, stream, KIND(KIND_U32, index / 4), r);
    return r[index % 4];
}

/* 53 bits of two words */
static uint64_t mantissa(const uint32_t *r) { return ((uint64_t)r[1] << 32 | r[0]) >> 11; }

double random_uniform(uint64_t key, uint64_t stream, uint64_t index) {
    uint32_t r[4];
    random_block(key, stream, KIND(KIND_UNIFORM, index), r);
    return (double)mantissa(r) * 0x1p-53;
}

/* Box-Muller: a block gives a point with two normal coordinates, from a radius and an angle. The
 * radius uses a uniform number in (0, 1]. */
static void uniforms(const uint32_t r[4], double *u, double *angle) {
    *u = (double)(mantissa(r) + 1) * 0x1p-53;
    *angle = (double)mantissa(r + 2) * (0x1.921fb54442d18p+2 * 0x1p-53);
}

static void point(const uint32_t r[4], double *radius, double *angle) {
    double u;
    uniforms(r, &u, angle);
    *radius = sqrt(-2 * math_log(u));
}

double random_normal(uint64_t key, uint64_t stream, uint64_t index) {
    uint32_t r[4];
    double radius, angle;
    random_block(key, stream, KIND(KIND_NORMAL, index), r);
    point(r, &radius, &angle);
    return radius * math_cos(angle);
}

double random_truncated_normal(uint64_t key, uint64_t stream, uint64_t index) {
    /* Each attempt yields two coordinates and fails once in 480 times. */
    for (uint64_t attempt = 0;; attempt++) {
        uint32_t r[4];
        double radius, angle, x;
        random_block(key, stream, KIND(KIND_TRUNCATED, (attempt & 0x3fff) << 48 | index), r);
        point(r, &radius, &angle);
        x = radius * math_cos(angle);
        if (x >= -2 && x <= 2) return x;
        x = radius * math_sin(angle);
        if (x >= -2 && x <= 2) return x;
    }
}

/* BLOCKS blocks at a time, arranged so that the inner loops vectorise. */
#define BLOCKS MATH_EACH

CLONES static void fill_blocks(uint64_t key, uint64_t stream, uint64_t first,
                               uint32_t *restrict out) {
    uint32_t a[BLOCKS], b[BLOCKS], c[BLOCKS], d[BLOCKS], k = low(key), l = high(key);
    for (unsigned j = 0; j < BLOCKS; j++) {
        uint64_t counter = first + j;
        a[j] = low(counter);
        b[j] = high(counter);
        c[j] = low(stream);
        d[j] = high(stream);
    }
    for (int i = 0; i < ROUNDS; i++, k += WEYL_0, l += WEYL_1) {
        for (unsigned j = 0; j < BLOCKS; j++) {
            uint64_t p = (uint64_t)MULTIPLIER_0 * a[j], q = (uint64_t)MULTIPLIER_1 * c[j];
            a[j] = high(q) ^ b[j] ^ k;
            b[j] = low(q);
            c[j] = high(p) ^ d[j] ^ l;
            d[j] = low(p);
        }
    }
    for (unsigned j = 0; j < BLOCKS; j++) {
        out[4 * j] = a[j];
        out[4 * j + 1] = b[j];
        out[4 * j + 2] = c[j];
        out[4 * j + 3] = d[j];
    }
}

void random_u32_fill(uint64_t key, uint64_t stream, uint64_t first, size_t n, uint32_t *out) {
    size_t i = 0;
    for (; i < n && (first + i) % 4; i++) out[i] = random_u32(key, stream, first + i);
    for (; n - i >= 4 * BLOCKS; i += 4 * BLOCKS)
        fill_blocks(key, stream, KIND(KIND_U32, (first + i) / 4), out + i);
    for (; n - i >= 4; i += 4) random_block(key, stream, KIND(KIND_U32, (first + i) / 4), out + i);
    for (; i < n; i++) out[i] = random_u32(key, stream, first + i);
}

/* out[j] = random_normal(key, stream, first + j) for BLOCKS numbers. */
CLONES static void fill_normals(uint64_t key, uint64_t stream, uint64_t first,
                                double *restrict out) {
    uint32_t r[4 * BLOCKS];
    double u[BLOCKS], angle[BLOCKS];
    fill_blocks(key, stream, KIND(KIND_NORMAL, first), r);
    for (int j = 0; j < BLOCKS; j++) uniforms(r + 4 * j, &u[j], &angle[j]);
    math_log_each(u, u);
    math_cos_each(angle, angle);
    for (int j = 0; j < BLOCKS; j++) out[j] = sqrt(-2 * u[j]) * angle[j];
}

void random_normal_fill(uint64_t key, uint64_t stream, uint64_t first, size_t n, double *out) {
    size_t i = 0;
    for (; n - i >= BLOCKS; i += BLOCKS) fill_normals(key, stream, first + i, out + i);
    for (; i < n; i++) out[i] = random_normal(key, stream, first + i);
}
