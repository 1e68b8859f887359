/* SPDX-License-Identifier: Apache-2.0
 * Between the types: bf16 and fp16 are kept as 16 bits and computed with as fp32. */
#ifndef BASE_CONVERT_H
#define BASE_CONVERT_H

#include <string.h>

#include "base/base.h"

static inline uint32_t convert_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float convert_float(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline float convert_from_bf16(uint16_t h) { return convert_float((uint32_t)h << 16); }

/* To nearest, ties to even; a NaN stays one, made quiet. */
static inline uint16_t convert_to_bf16(float x) {
    uint32_t u = convert_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

static inline float convert_from_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu;
    if (rest >= 0x7c00u) return convert_float(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    if (rest >= 0x0400u) return convert_float(sign | ((rest << 13) + 0x38000000u));
    /* Denormal: rest * 2^-24, exact in fp32. */
    return convert_float(sign | convert_bits((float)rest * 0x1p-24f));
}

/* To nearest, ties to even; too large gives infinity. */
static inline uint16_t convert_to_f16(float x) {
    uint32_t u = convert_bits(x), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (a >> 13 & 0x3ffu));
    if (a >= 0x47800000u) return (uint16_t)(sign | 0x7c00u);
    if (a < 0x38800000u) {
        /* Adding 0.5 puts the unit 2^-24 at the end of the mantissa, and rounds. */
        float shifted = convert_float(a) + 0.5f;
        return (uint16_t)(sign | (convert_bits(shifted) - 0x3f000000u));
    }
    return (uint16_t)(sign | ((a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13));
}

/* All pairs of types. From floating-point to integers: toward zero, saturating, NaN is 0; to bool:
 * whether it is not 0. */
void convert(tri_type to, void *dst, tri_type from, const void *src, size_t n);

/* Element i as a double, and back, rounded to nearest or as above. i64 beyond 2^53 lose bits. */
double convert_load(tri_type type, const void *p, size_t i);
void convert_store(tri_type type, void *p, size_t i, double v);

#endif
