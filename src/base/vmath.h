/* SPDX-License-Identifier: Apache-2.0
 * fp32 functions for loops of kernels. They have no branches and no calls, so that compilers
 * vectorise loops over them; vector code includes the same text (vmath_body.h) with vectors as
 * numbers. Every form has the same bits on every processor and with every compiler: each step is an
 * IEEE or an integer operation, and multiplications and additions are fused only where that is
 * written. The file that includes this must be compiled with -ffp-contract=off. Subnormals are not
 * flushed to zero. Largest error over all arguments, in units in the last place: exp 0.85, log
 * 0.82, tanh 1.31, sigmoid 2.2, erf 0.95, log1p_exp 1.71, pow 0.9 (1.5 where its result is beyond
 * 2^-64 or 2^64). */
#ifndef BASE_VMATH_H
#define BASE_VMATH_H

#include <stdint.h>
#include <string.h>

/* As a call, a function would keep its loop scalar. */
#define VMATH static inline __attribute__((always_inline))

#define VMATH_INFINITY 0x7f800000u
/* the only NaN that is returned: processors differ in the sign of theirs */
#define VMATH_NAN 0x7fc00000u
#define VMATH_SIGN 0x80000000u
#define VMATH_LOG2E 0x1.715476p0f
#define VMATH_LN2_HI 0x1.62e4p-1f /* 15 bits: its product with an exponent is exact */
#define VMATH_LN2_LO 0x1.7f7d1cp-20f
#define VMATH_ROUNDER 0x1.8p23f /* adding and subtracting it rounds to an integer, below 2^22 */

VMATH float vmath_set(float x) { return x; }

VMATH uint32_t vmath_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

VMATH float vmath_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

VMATH float vmath_fma(float a, float b, float c) {
#if defined __FMA__ || defined __FP_FAST_FMAF || defined VMATH_CLONES
    return __builtin_fmaf(a, b, c);
#else
    /* The product is exact in double. The sum is rounded to odd: its last bit says whether anything
     * was lost, so that rounding it to float is correct. */
    double p = (double)a * (double)b, d = (double)c, s = p + d, t = s - p;
    double lost = (p - (s - t)) + (d - t);
    uint64_t bits;
    memcpy(&bits, &s, sizeof bits);
    uint64_t inexact = 0u - (uint64_t)((lost < 0) | (lost > 0)), even = (bits & 1) - 1;
    uint64_t away = (uint64_t)((lost < 0) ^ (s < 0)); /* s is the larger one in magnitude */
    bits += (1 - 2 * away) & inexact & even;
    memcpy(&s, &bits, sizeof s);
    return (float)s;
#endif
}

/* A mask is all ones or all zeros; comparisons with NaN give zeros. A ternary would mean the same,
 * but compilers move arithmetic into its arms and then branch. */
VMATH uint32_t vmath_mask(int condition) { return 0u - (uint32_t)condition; }
VMATH uint32_t vmath_less(float a, float b) { return vmath_mask(a < b); }
VMATH uint32_t vmath_equal(float a, float b) { return vmath_mask(a == b); }
VMATH uint32_t vmath_both(uint32_t a, uint32_t b) { return a & b; }
VMATH uint32_t vmath_either(uint32_t a, uint32_t b) { return a | b; }
VMATH uint32_t vmath_not(uint32_t a) { return ~a; }

VMATH float vmath_select(uint32_t mask, float yes, float no) {
    return vmath_of_bits((vmath_bits(yes) & mask) | (vmath_bits(no) & ~mask));
}

VMATH float vmath_at_least(float x, float low) { return vmath_select(vmath_less(x, low), low, x); }
VMATH float vmath_at_most(float x, float high) {
    return vmath_select(vmath_less(high, x), high, x);
}

/* Half of the exponent each time: the first product is exact, so subnormals are rounded once. */
VMATH float vmath_scale(float p, float k) {
    int32_t n = (int32_t)(vmath_bits(k + VMATH_ROUNDER) - vmath_bits(VMATH_ROUNDER)), half = n >> 1;
    return p * vmath_of_bits((uint32_t)(half + 127) << 23) *
           vmath_of_bits((uint32_t)(n - half + 127) << 23);
}

#define VF float
#define VU uint32_t
#define VM uint32_t
#define F(name) vmath_##name
#include "base/vmath_body.h"
#undef VF
#undef VU
#undef VM
#undef F

#endif
