/* SPDX-License-Identifier: Apache-2.0
 * The loops have a fixed length and no branches, so that they vectorise. Floats are only scaled by
 * powers of two and converted; each of these is exact, or rounds as IEEE 754 says. */
#include "wire/blocks.h"

#include "base/clones.h"
#include "base/convert.h"

#define EACH_NUMBER for (int i = 0; i < WIRE_BLOCK; i++)
#define MAGNITUDE 0x7fffffffu
#define INFINITE 0x7f800000u
#define NOT_A_NUMBER 0x7fc00000u

/* 2^(exponent - 127), for exponents from 1 to 254 */
static inline float power(uint32_t exponent) { return convert_of_bits(exponent << 23); }

/* All bits, or none; gcc makes branches of a `?:` between numbers that it knows something of. */
static inline uint32_t mask(bool all) { return 0u - (uint32_t)all; }

static inline uint32_t within(uint32_t x, uint32_t least, uint32_t most) {
    return x < least ? least : x > most ? most : x;
}

/* ---- f32 ---- */

static void round_f32(float *x, size_t blocks, uint64_t draws, uint64_t first) {
    (void)x, (void)blocks, (void)draws, (void)first;
}

static void put_f32(const float *x, size_t blocks, uint8_t *to) {
    memcpy(to, x, blocks * WIRE_BLOCK * sizeof *x);
}

static bool take_f32(const uint8_t *from, size_t blocks, float *x) {
    memcpy(x, from, blocks * WIRE_BLOCK * sizeof *x);
    return true;
}

/* ---- fp16 ---- */

/* The exponent is that of the largest finite number after it is rounded to 11 bits, as a float has
 * it; so the scaled number is below 2^15 also when it is rounded up. With exponents below 16 the
 * numbers could be no multiples of 2^-149, the least that a float can be. A number that is rounded
 * up to 2^128 is infinite. */
#define FP16_LEAST 16
#define FP16_MOST 254
#define FP16_SCALE(exponent) power(14 + 254 - (exponent))
#define FP16_STEP(exponent) power((exponent) - 14)
#define FP16_BYTES (1 + 2 * WIRE_BLOCK)

/* The product; NaN has one form. */
static inline float fp16_scale(float x, float by) {
    const uint32_t bits = convert_bits(x * by), nan = mask((bits & MAGNITUDE) > INFINITE);
    return convert_of_bits((bits & ~nan) | (NOT_A_NUMBER & nan));
}

static inline uint32_t fp16_exponent(const float *x) {
    int32_t most = 0;
    EACH_NUMBER {
        int32_t magnitude = (int32_t)(convert_bits(x[i]) & MAGNITUDE);
        magnitude = magnitude < (int32_t)INFINITE ? magnitude : 0;
        most = most > magnitude ? most : magnitude;
    }
    const uint32_t m = (uint32_t)most;
    return within((m + 0xfff + (m >> 13 & 1)) >> 23, FP16_LEAST, FP16_MOST);
}

CLONES static void round_fp16(float *x, size_t blocks, uint64_t draws, uint64_t first) {
    (void)draws, (void)first;
    for (; blocks--; x += WIRE_BLOCK) {
        const uint32_t exponent = fp16_exponent(x);
        const float scale = FP16_SCALE(exponent), step = FP16_STEP(exponent);
        EACH_NUMBER {
            /* as convert_f32_to_f16 rounds: to 11 bits, or to a multiple of 2^-24 */
            uint32_t bits = convert_bits(fp16_scale(x[i], scale)), magnitude = bits & MAGNITUDE;
            uint32_t normal = (magnitude + 0xfff + (magnitude >> 13 & 1)) & ~0x1fffu;
            uint32_t small = convert_bits(convert_of_bits(magnitude) + 0.5f - 0.5f);
            uint32_t is_small = mask(magnitude < 0x38800000u), sign = bits & ~MAGNITUDE;
            magnitude = (small & is_small) | (normal & ~is_small);
            x[i] = fp16_scale(convert_of_bits(magnitude | sign), step);
        }
    }
}

CLONES static void put_fp16(const float *x, size_t blocks, uint8_t *to) {
    for (; blocks--; x += WIRE_BLOCK, to += FP16_BYTES) {
        uint16_t h[WIRE_BLOCK];
        const uint32_t exponent = fp16_exponent(x);
        const float scale = FP16_SCALE(exponent);
        EACH_NUMBER h[i] = convert_f32_to_f16(fp16_scale(x[i], scale));
        *to = (uint8_t)exponent;
        memcpy(to + 1, h, sizeof h);
    }
}

CLONES static bool take_fp16(const uint8_t *from, size_t blocks, float *x) {
    for (; blocks--; x += WIRE_BLOCK, from += FP16_BYTES) {
        uint16_t h[WIRE_BLOCK];
        const uint32_t exponent = *from;
        if (exponent < FP16_LEAST || exponent > FP16_MOST) return false;
        memcpy(h, from + 1, sizeof h);
        const float step = FP16_STEP(exponent);
        int32_t most = 0, wrong = 0;
        EACH_NUMBER {
            int32_t magnitude = h[i] & 0x7fff;
            wrong |= (magnitude > 0x7c00) & (h[i] != 0x7e00); /* a NaN of another form */
            magnitude = magnitude < 0x7c00 ? magnitude : 0;
            most = most > magnitude ? most : magnitude;
        }
        /* the largest is scaled to [2^14, 2^15) */
        if (wrong || most >= 0x7800 || (most < 0x7400 && exponent > FP16_LEAST)) return false;
        EACH_NUMBER x[i] = fp16_scale(convert_f16_to_f32(h[i]), step);
    }
    return true;
}

/* ---- bf16 ---- */

#define BF16_BYTES (2 * WIRE_BLOCK)

CLONES static void round_bf16(float *x, size_t blocks, uint64_t draws, uint64_t first) {
    (void)draws, (void)first;
    for (; blocks--; x += WIRE_BLOCK)
        EACH_NUMBER x[i] = convert_bf16_to_f32(convert_f32_to_bf16(x[i]));
}

CLONES static void put_bf16(const float *x, size_t blocks, uint8_t *to) {
    for (; blocks--; x += WIRE_BLOCK, to += BF16_BYTES) {
        uint16_t h[WIRE_BLOCK];
        EACH_NUMBER h[i] = (uint16_t)(convert_bits(x[i]) >> 16);
        memcpy(to, h, sizeof h);
    }
}

CLONES static bool take_bf16(const uint8_t *from, size_t blocks, float *x) {
    int32_t wrong = 0;
    for (; blocks--; x += WIRE_BLOCK, from += BF16_BYTES) {
        uint16_t h[WIRE_BLOCK];
        memcpy(h, from, sizeof h);
        EACH_NUMBER {
            wrong |= ((h[i] & 0x7fff) > 0x7f80) & !(h[i] & 0x40); /* a signalling NaN */
            x[i] = convert_bf16_to_f32(h[i]);
        }
    }
    return !wrong;
}

/* ---- int8 ---- */

/* The exponent is that of the step, as a float has it: the least step of which no number is more
 * than 127. It is at least 2^-103, and rounding makes no subnormal numbers of it. */
#define INT8_LEAST 24
#define INT8_LARGEST 0x7f7e0000u /* 127 * 2^121: the largest number for which there is a step */
#define INT8_MOST 248
#define INT8_NAN 255
#define INT8_BYTES (1 + WIRE_BLOCK)

/* 32 random bits for an element of a block; a multiply-xorshift hash, with a key. */
static inline uint32_t draw(uint64_t key, uint32_t i) {
    uint32_t x = (uint32_t)key + i * 0x9e3779b9u;
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15 ^ (uint32_t)(key >> 32)) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* The key of a block (splitmix64). */
static uint64_t block_key(uint64_t draws, uint64_t block) {
    uint64_t x = draws + block * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static inline uint32_t int8_exponent(const float *x) {
    int32_t most = 0;
    EACH_NUMBER {
        int32_t magnitude = (int32_t)(convert_bits(x[i]) & MAGNITUDE);
        most = most > magnitude ? most : magnitude;
    }
    if (most > (int32_t)INT8_LARGEST) return INT8_NAN;
    /* 127 * 2^k has the exponent k + 6; what is above it takes the next step */
    const uint32_t above = ((uint32_t)most + 0x1ffff) >> 23;
    return within(above, INT8_LEAST + 6, INT8_MOST + 6) - 6;
}

CLONES static void round_int8(float *x, size_t blocks, uint64_t draws, uint64_t first) {
    for (; blocks--; x += WIRE_BLOCK, first++) {
        const uint32_t exponent = int8_exponent(x);
        if (exponent == INT8_NAN) {
            EACH_NUMBER x[i] = convert_of_bits(NOT_A_NUMBER);
            continue;
        }
        /* In steps, with 24 bits after the point: below 2^31 also with the random bits added. */
        const float scale = power(254 + 24 - exponent), step = power(exponent);
        const uint64_t key = block_key(draws, first);
        EACH_NUMBER {
            int32_t fixed = (int32_t)(x[i] * scale) + (int32_t)(draw(key, (uint32_t)i) >> 8);
            x[i] = (float)(fixed >> 24) * step;
        }
    }
}

CLONES static void put_int8(const float *x, size_t blocks, uint8_t *to) {
    for (; blocks--; x += WIRE_BLOCK, to += INT8_BYTES) {
        const uint32_t exponent = int8_exponent(x);
        *to = (uint8_t)exponent;
        if (exponent == INT8_NAN) {
            memset(to + 1, 0, WIRE_BLOCK);
            continue;
        }
        int8_t q[WIRE_BLOCK];
        const float scale = power(254 - exponent);
        EACH_NUMBER q[i] = (int8_t)(int32_t)(x[i] * scale);
        memcpy(to + 1, q, sizeof q);
    }
}

CLONES static bool take_int8(const uint8_t *from, size_t blocks, float *x) {
    for (; blocks--; x += WIRE_BLOCK, from += INT8_BYTES) {
        int8_t q[WIRE_BLOCK];
        const uint32_t exponent = *from;
        const bool nan = exponent == INT8_NAN;
        memcpy(q, from + 1, sizeof q);
        int32_t most = 0;
        EACH_NUMBER {
            int32_t magnitude = q[i] < 0 ? -q[i] : q[i];
            most = most > magnitude ? most : magnitude;
        }
        if (nan ? most : exponent < INT8_LEAST || exponent > INT8_MOST || most > 127 ||
                  (most < 64 && exponent > INT8_LEAST))
            return false;
        if (nan) {
            EACH_NUMBER x[i] = convert_of_bits(NOT_A_NUMBER);
            continue;
        }
        const float step = power(exponent);
        EACH_NUMBER x[i] = (float)q[i] * step;
    }
    return true;
}

const struct wire_row wire_rows[WIRE_FORMATS] = {
    [WIRE_F32] = {0, 4, round_f32, put_f32, take_f32},
    [WIRE_FP16] = {1, 2, round_fp16, put_fp16, take_fp16},
    [WIRE_BF16] = {0, 2, round_bf16, put_bf16, take_bf16},
    [WIRE_INT8] = {1, 1, round_int8, put_int8, take_int8},
};

CLONES void wire_add_blocks(const float *left, const float *right, size_t blocks, float *to) {
    for (; blocks--; left += WIRE_BLOCK, right += WIRE_BLOCK, to += WIRE_BLOCK) {
        float sum[WIRE_BLOCK];
        EACH_NUMBER sum[i] = left[i] + right[i];
        memcpy(to, sum, sizeof sum);
    }
}
