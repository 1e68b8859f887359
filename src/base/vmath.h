/* SPDX-License-Identifier: Apache-2.0
 * fp32 functions for loops of kernels. They have no branches and no calls: a compiler turns a loop
 * over one into vector code of any width, with the same bits as one element at a time, since
 * every step is an IEEE operation or an integer one and selection is by masks. The file that
 * includes this must be compiled with -ffp-contract=off. Subnormals are neither taken nor returned
 * as zero. Largest error over all arguments, in units in the last place: exp 0.99, log 0.88, tanh
 * 1.34, sigmoid 2.41, erf 1.44, log1p_exp 1.71. Of pow, sampled: 1.5 where the result lies between
 * 2^-64 and 2^64, 5 at the ends of the range. */
#ifndef BASE_VMATH_H
#define BASE_VMATH_H

#include <stdint.h>
#include <string.h>

/* Left as a call, a function would keep its loop scalar. */
#define VMATH static inline __attribute__((always_inline))

#define VMATH_INFINITY 0x7f800000u
#define VMATH_NAN 0x7fc00000u /* the one NaN returned: processors differ in the sign of theirs */
#define VMATH_SIGN 0x80000000u
#define VMATH_LN2_HI 0x1.62e4p-1f /* 15 bits: times an exponent it is exact */
#define VMATH_LN2_LO 0x1.7f7d1cp-20f
#define VMATH_ROUNDER 0x1.8p23f /* adding and subtracting it rounds to an integer, below 2^22 */

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

VMATH float vmath_abs(float x) { return vmath_of_bits(vmath_bits(x) & ~VMATH_SIGN); }

/* A mask is all ones or all zeros; comparisons with NaN give zeros. A ternary would say the same,
 * but compilers move arithmetic into its arms, and then there is a branch. */
VMATH uint32_t vmath_mask(int condition) { return 0u - (uint32_t)condition; }

VMATH float vmath_select(uint32_t mask, float yes, float no) {
    return vmath_of_bits((vmath_bits(yes) & mask) | (vmath_bits(no) & ~mask));
}

/* These keep a NaN in x. */
VMATH float vmath_at_least(float x, float low) { return vmath_select(vmath_mask(x < low), low, x); }
VMATH float vmath_at_most(float x, float high) {
    return vmath_select(vmath_mask(x > high), high, x);
}

/* y, or the one NaN where x is any NaN: which of two NaN an operation keeps is for the compiler to
 * say, who may swap operands */
VMATH float vmath_unless_nan(float x, float y) {
    return vmath_select(vmath_mask(x == x), y, vmath_of_bits(VMATH_NAN));
}

/* 2^n, -126 <= n <= 127; some number for any other n */
VMATH float vmath_power_of_two(int32_t n) {
    return vmath_of_bits(((uint32_t)n + 127u) << 23);
}

/* The integer nearest to x, |x| < 2^22, as a float and in *n. */
VMATH float vmath_round(float x, int32_t *n) {
    float t = x + VMATH_ROUNDER;
    *n = (int32_t)(vmath_bits(t) - vmath_bits(VMATH_ROUNDER));
    return t - VMATH_ROUNDER;
}

/* p * 2^n for p near 1, |n| <= 252: the first product is exact, so that subnormals are rounded
 * once */
VMATH float vmath_scale(float p, int32_t n) {
    int32_t half = n >> 1;
    return p * vmath_power_of_two(half) * vmath_power_of_two(n - half);
}

/* exp(x) = result * 2^n, |x| <= 105 */
VMATH float vmath_exp_parts(float x, int32_t *n) {
    float k = vmath_round(x * 0x1.715476p0f, n);
    float r = (x - k * VMATH_LN2_HI) - k * VMATH_LN2_LO;
    float q = 0x1.6a5e42p-10f;
    q = q * r + 0x1.123adap-7f;
    q = q * r + 0x1.5558a2p-5f;
    q = q * r + 0x1.55549p-3f;
    q = q * r + 0x1.fffffcp-2f;
    return 1.0f + (r + r * r * q);
}

/* exp(x) for |x| <= 80 */
VMATH float vmath_exp_within(float x) {
    int32_t n;
    float p = vmath_exp_parts(x, &n);
    return p * vmath_power_of_two(n);
}

VMATH float vmath_exp(float x) {
    int32_t n;
    float p = vmath_exp_parts(vmath_at_most(vmath_at_least(x, -105.0f), 89.0f), &n);
    return vmath_unless_nan(x, vmath_scale(p, n));
}

/* log(1 + f) - f for sqrt(1/2) - 1 <= f <= sqrt(2) - 1 */
VMATH float vmath_log1p_tail(float f) {
    float p = 0x1.13c3ep-4f, z = f * f;
    p = p * f - 0x1.dda2a8p-4f;
    p = p * f + 0x1.e6dfcep-4f;
    p = p * f - 0x1.fc3d1p-4f;
    p = p * f + 0x1.233abcp-3f;
    p = p * f - 0x1.555b9p-3f;
    p = p * f + 0x1.99a47ap-3f;
    p = p * f - 0x1.000008p-2f;
    p = p * f + 0x1.555548p-2f;
    return f * z * p - 0.5f * z;
}

/* x = 2^k m, sqrt(1/2) <= m < sqrt(2), for a positive finite x */
VMATH float vmath_split_exponent(float x, float *k) {
    uint32_t small = vmath_mask(x < 0x1p-126f);
    uint32_t bits = vmath_bits(vmath_select(small, x * 0x1p23f, x));
    int32_t n = (int32_t)(bits - 0x3f3504f3u) >> 23;
    *k = (float)(n - (int32_t)(small & 23u));
    return vmath_of_bits(bits - ((uint32_t)n << 23));
}

VMATH float vmath_log(float x) {
    float k, f = vmath_split_exponent(x, &k) - 1.0f;
    float y = k * VMATH_LN2_HI + (f + (vmath_log1p_tail(f) + k * VMATH_LN2_LO));
    y = vmath_select(vmath_mask(vmath_bits(x) == VMATH_INFINITY), x, y);
    y = vmath_select(vmath_mask(x >= 0.0f), y, vmath_of_bits(VMATH_NAN));
    return vmath_select(vmath_mask(x == 0.0f), vmath_of_bits(VMATH_INFINITY | VMATH_SIGN), y);
}

VMATH float vmath_tanh(float x) {
    float a = vmath_abs(x), z = x * x;
    float p = 0x1.1a4658p-9f;
    p = p * z - 0x1.0c64eap-7f;
    p = p * z + 0x1.63a618p-6f;
    p = p * z - 0x1.b9f19p-5f;
    p = p * z + 0x1.11107ap-3f;
    p = p * z - 0x1.555554p-2f;
    float near = a + a * z * p;
    float far = 1.0f - 2.0f / (vmath_exp_within(2.0f * vmath_at_most(a, 10.0f)) + 1.0f);
    float y = vmath_select(vmath_mask(a < 0.625f), near, far);
    return vmath_unless_nan(x, vmath_of_bits(vmath_bits(y) | (vmath_bits(x) & VMATH_SIGN)));
}

/* 1 / (1 + exp(-x)), without loss where it is nearly 0 */
VMATH float vmath_sigmoid(float x) {
    float e = vmath_exp(-vmath_abs(x));
    return vmath_unless_nan(x, vmath_select(vmath_mask(x < 0.0f), e, 1.0f) / (1.0f + e));
}

VMATH float vmath_erf(float x) {
    /* Near 0 as x (1 + P(x^2)); from 0.9 on as 1 - exp(-Q(x)), which is 1 from 4 on. */
    float a = vmath_abs(x), z = x * x, b = vmath_at_most(a, 4.0f);
    float p = -0x1.3ed096p-11f;
    p = p * z + 0x1.485414p-8f;
    p = p * z - 0x1.b6b806p-6f;
    p = p * z + 0x1.ce1d3cp-4f;
    p = p * z - 0x1.8126f4p-2f;
    p = p * z + 0x1.06eba6p-3f;
    float q = -0x1.9da41cp-13f;
    q = q * b + 0x1.90943ep-9f;
    q = q * b - 0x1.6d060cp-6f;
    q = q * b + 0x1.aa2784p-4f;
    q = q * b + 0x1.462c2p-1f;
    q = q * b + 0x1.20b458p+0f;
    q = q * b + 0x1.734248p-13f;
    float y = vmath_select(vmath_mask(a < 0.9f), a + a * p, 1.0f - vmath_exp_within(-q));
    return vmath_unless_nan(x, vmath_of_bits(vmath_bits(y) | (vmath_bits(x) & VMATH_SIGN)));
}

/* log(1 + exp(x)): softplus. With e = exp(-|x|) it is max(x, 0) + log(1 + e), and 1 + e is halved
 * where it passes sqrt(2). */
VMATH float vmath_log1p_exp(float x) {
    float e = vmath_exp(-vmath_abs(x));
    uint32_t large = vmath_mask(e > 0x1.a8p-2f);
    float f = vmath_select(large, 0.5f * (e - 1.0f), e);
    float high = vmath_select(large, VMATH_LN2_HI, 0.0f);
    float low = vmath_select(large, VMATH_LN2_LO, 0.0f);
    float y = high + (f + (vmath_log1p_tail(f) + low));
    return vmath_unless_nan(x, vmath_at_least(x, 0.0f) + y);
}

/* The rounding error of the product p = a * b, by Dekker; no operand above 2^115. */
VMATH float vmath_product_error(float a, float b, float p) {
    float s = a * 4097.0f, t = b * 4097.0f;
    float ah = s - (s - a), bh = t - (t - b), al = a - ah, bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
}

/* |x|^y for finite x != 0. The logarithm to base 2 is k + C atanh(s), s = (m - 1) / (m + 1),
 * C = 2 / ln2; it and its product with y are sums of two floats, hi and lo. */
VMATH float vmath_pow_magnitude(float x, float y) {
    float k, m = vmath_split_exponent(vmath_abs(x), &k), f = m - 1.0f;
    float d = m + 1.0f, t = d - m, d_lo = (m - (d - t)) + (1.0f - t);
    float s = f / d, sd = s * d;
    float s_lo = (((f - sd) - vmath_product_error(s, d, sd)) - s * d_lo) / d;

    float z = s * s, p = 0x1.f13c9ep-4f;
    p = p * z + 0x1.23d3dcp-3f;
    p = p * z + 0x1.999c26p-3f;
    p = p * z + 0x1.555554p-2f;
    float cube = s * z * p, a = s + cube, a_lo = (cube - (a - s)) + s_lo;

    const float c = 0x1.715476p+1f, c_lo = 0x1.4ae0cp-25f;
    float ca = c * a, ca_lo = vmath_product_error(c, a, ca) + (c_lo * a + c * a_lo);
    float l = k + ca, l_lo = (ca - (l - k)) + ca_lo; /* k is 0 or above |ca| */

    /* No logarithm but 0 is below 2^-24, so 2^40 overflows as well as more would. */
    y = vmath_at_most(vmath_at_least(y, -0x1p40f), 0x1p40f);
    float e = l * y, e_lo = vmath_product_error(l, y, e) + l_lo * y;
    e_lo = vmath_select(vmath_mask(vmath_abs(e) > 200.0f), 0.0f, e_lo);
    e = vmath_at_most(vmath_at_least(e, -200.0f), 200.0f);

    int32_t n;
    float r = (e - vmath_round(e, &n)) + e_lo, q = 0x1.e42ad2p-17f;
    q = q * r + 0x1.44113cp-13f;
    q = q * r + 0x1.5da2c4p-10f;
    q = q * r + 0x1.3b2a5ap-7f;
    q = q * r + 0x1.c6b07p-5f;
    q = q * r + 0x1.ebfbep-3f;
    q = q * r + 0x1.62e43p-1f;
    return vmath_scale(1.0f + r * q, n);
}

/* As C's powf: a negative base takes integer exponents only, pow(x, 0) = pow(1, y) = 1. */
VMATH float vmath_pow(float x, float y) {
    float a = vmath_abs(x), b = vmath_abs(y), half = 0.5f * b;
    /* From 2^23 on every float is an integer, from 2^24 on even. */
    uint32_t integer = vmath_mask(b >= 0x1p23f) | vmath_mask((b + 0x1p23f) - 0x1p23f == b);
    uint32_t odd = integer & vmath_mask((half + 0x1p23f) - 0x1p23f != half) &
                   vmath_mask(b < 0x1p24f);
    uint32_t zero = vmath_mask(a == 0.0f);
    uint32_t edge = zero | vmath_mask(vmath_bits(a) == VMATH_INFINITY);
    uint32_t grows = ~(zero ^ vmath_mask(y < 0.0f)); /* of 0 and infinity */
    uint32_t not_real = vmath_mask(x < 0.0f) & ~integer & ~edge;

    float p = vmath_select(edge, vmath_of_bits(VMATH_INFINITY & grows), vmath_pow_magnitude(x, y));
    p = vmath_of_bits(vmath_bits(p) | (vmath_bits(x) & VMATH_SIGN & odd));
    p = vmath_unless_nan(x, vmath_unless_nan(y, p));
    p = vmath_select(not_real, vmath_of_bits(VMATH_NAN), p);
    return vmath_select(vmath_mask(x == 1.0f) | vmath_mask(y == 0.0f), 1.0f, p);
}

#endif
