/* SPDX-License-Identifier: Apache-2.0
 * Conversion between tensor types. To a float type: rounds once, to nearest, ties to even, from any
 * source; too large becomes infinite; NaN stays NaN, quiet. To an integer: rounds toward zero,
 * saturates; NaN becomes 0. To bool: v != 0, so NaN is true. */
#ifndef BASE_CONVERT_H
#define BASE_CONVERT_H

#include <string.h>

#include "base/base.h"

/* Element by element. The arrays must not overlap. */
void convert(tri_type to, void *dst, tri_type from, const void *src, size_t n);

/* Element i of an array as a double, which holds every value of every type except i64: those beyond
 * +-2^53 lose their last bits. */
double convert_load(tri_type type, const void *p, size_t i);
void convert_store(tri_type type, void *p, size_t i, double v);

static inline uint32_t convert_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float convert_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* These four have no branches, so that loops over them vectorise. */

static inline float convert_bf16_to_f32(uint16_t x) { return convert_of_bits((uint32_t)x << 16); }

static inline uint16_t convert_f32_to_bf16(float x) {
    uint32_t bits = convert_bits(x), nan = 0u - (uint32_t)((bits & 0x7fffffffu) > 0x7f800000u);
    uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    return (uint16_t)(((rounded & ~nan) | ((bits | 0x400000u) & nan)) >> 16);
}

static inline float convert_f16_to_f32(uint16_t x) {
    uint32_t magnitude = x & 0x7fffu, sign = (uint32_t)(x & 0x8000u) << 16;
    uint32_t large = 0u - (uint32_t)(magnitude >= 0x7c00u); /* infinity, NaN */
    uint32_t small = 0u - (uint32_t)(magnitude < 0x400u);   /* subnormal, a multiple of 2^-24 */
    uint32_t quiet = 0u - (uint32_t)(magnitude > 0x7c00u);
    uint32_t bits = (magnitude << 13) + (112u << 23) + (large & (112u << 23));
    uint32_t subnormal = convert_bits((float)(int32_t)magnitude * 0x1p-24f);
    bits = (bits & ~small) | (subnormal & small) | (quiet & 0x400000u);
    return convert_of_bits(bits | sign);
}

static inline uint16_t convert_f32_to_f16(float x) {
    uint32_t bits = convert_bits(x), magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
    uint32_t nan = 0u - (uint32_t)(magnitude > 0x7f800000u);
    uint32_t large = 0u - (uint32_t)(magnitude >= 0x477ff000u); /* 65520 rounds to infinity */
    uint32_t small = 0u - (uint32_t)(magnitude < 0x38800000u);  /* below 2^-14 */
    uint32_t half = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    /* The last place of a float in [0.5, 1) is 2^-24, the same as that of a subnormal f16. */
    uint32_t subnormal = convert_bits(convert_of_bits(magnitude & small) + 0.5f) - 0x3f000000u;
    half = (half & ~small) | (subnormal & small);
    half = (half & ~large) | (0x7c00u & large);
    half |= (0x200u | (magnitude >> 13 & 0x3ffu)) & nan;
    return (uint16_t)(half | sign);
}

#endif
