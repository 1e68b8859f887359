/* SPDX-License-Identifier: Apache-2.0
 * The functions of vmath.h, as a text that is included once per number type: float there, vectors
 * of floats in dev/cpu/vec.h. The including file defines the types
 *   VF  numbers    VU  their bits    VM  masks, the results of comparisons
 * and F(name), which names the functions, and defines these:
 *   set               a number from a float
 *   bits, of_bits
 *   fma               a * b + c, rounded once
 *   less, equal, both, either, not    masks
 *   select            one of two numbers, by a mask
 *   at_least, at_most of a number and a bound; they keep a NaN
 *   scale             p * 2^k for p near 1 and an integer k, |k| <= 252, rounded once */

#define C(x) F(set)(x)
#define FMA(a, b, c) F(fma)(a, b, c)
#define INFINITE C(vmath_of_bits(VMATH_INFINITY))

VMATH VF F(abs)(VF x) { return F(of_bits)(F(bits)(x) & ~VMATH_SIGN); }

VMATH VF F(with_sign)(VF magnitude, VF x) {
    return F(of_bits)(F(bits)(magnitude) | (F(bits)(x) & VMATH_SIGN));
}

/* y, or the one NaN where x is NaN. Which of two NaN operands an operation keeps is up to the
 * compiler, which may swap them. */
VMATH VF F(unless_nan)(VF x, VF y) {
    return F(select)(F(equal)(x, x), y, C(vmath_of_bits(VMATH_NAN)));
}

/* exp(x) = result * 2^k, |x| <= 105 */
VMATH VF F(exp_parts)(VF x, VF *k) {
    *k = FMA(x, C(VMATH_LOG2E), C(VMATH_ROUNDER)) - VMATH_ROUNDER;
    VF r = FMA(*k, C(-VMATH_LN2_LO), FMA(*k, C(-VMATH_LN2_HI), x));
    VF p = FMA(C(0x1.6a5e42p-10f), r, C(0x1.123adap-7f));
    p = FMA(p, r, C(0x1.5558a2p-5f));
    p = FMA(p, r, C(0x1.55549p-3f));
    p = FMA(p, r, C(0x1.fffffcp-2f));
    p = FMA(p, r, C(1.0f));
    return FMA(p, r, C(1.0f));
}

VMATH VF F(exp)(VF x) {
    VF k, p = F(exp_parts)(F(at_most)(F(at_least)(x, C(-105.0f)), C(89.0f)), &k);
    return F(unless_nan)(x, F(scale)(p, k));
}

/* exp(x) for x <= 0; for NaN any NaN. */
VMATH VF F(exp_negative)(VF x) {
    VF k, p = F(exp_parts)(F(at_least)(x, C(-105.0f)), &k);
    return F(scale)(p, k);
}

/* log(1 + f) - f for sqrt(1/2) - 1 <= f <= sqrt(2) - 1 */
VMATH VF F(log1p_tail)(VF f) {
    VF p = FMA(C(0x1.13c3ep-4f), f, C(-0x1.dda2a8p-4f));
    p = FMA(p, f, C(0x1.e6dfcep-4f));
    p = FMA(p, f, C(-0x1.fc3d1p-4f));
    p = FMA(p, f, C(0x1.233abcp-3f));
    p = FMA(p, f, C(-0x1.555b9p-3f));
    p = FMA(p, f, C(0x1.99a47ap-3f));
    p = FMA(p, f, C(-0x1.000008p-2f));
    p = FMA(p, f, C(0x1.555548p-2f));
    return FMA(p, f, C(-0.5f)) * (f * f);
}

/* x = 2^k m, sqrt(1/2) <= m < sqrt(2), for a positive finite x */
VMATH VF F(split_exponent)(VF x, VF *k) {
    VM small = F(less)(x, C(0x1p-126f));
    VU b = F(bits)(F(select)(small, x * 0x1p23f, x));
    VU n = (b - 0x3504f3u) >> 23; /* of x / sqrt(1/2), so 126 more than k */
    VF above = F(select)(small, C(126.0f + 23.0f), C(126.0f));
    *k = (F(of_bits)(n | 0x4b400000u) - VMATH_ROUNDER) - above;
    return F(of_bits)((b - (n << 23)) + 0x3f000000u);
}

VMATH VF F(log)(VF x) {
    VF k, f = F(split_exponent)(x, &k) - 1.0f;
    VF y = FMA(k, C(VMATH_LN2_HI), f + FMA(k, C(VMATH_LN2_LO), F(log1p_tail)(f)));
    y = F(select)(F(equal)(x, INFINITE), x, y);
    y = F(select)(F(equal)(x, C(0.0f)), -INFINITE, y);
    y = F(select)(F(less)(x, C(0.0f)), C(vmath_of_bits(VMATH_NAN)), y);
    return F(unless_nan)(x, y);
}

VMATH VF F(tanh)(VF x) {
    VF a = F(abs)(x), z = x * x;
    VF p = FMA(C(0x1.1a4658p-9f), z, C(-0x1.0c64eap-7f));
    p = FMA(p, z, C(0x1.63a618p-6f));
    p = FMA(p, z, C(-0x1.b9f19p-5f));
    p = FMA(p, z, C(0x1.11107ap-3f));
    p = FMA(p, z, C(-0x1.555554p-2f));
    VF near = FMA(a * z, p, a), k;
    VF e = F(exp_parts)(2.0f * F(at_most)(a, C(10.0f)), &k);
    VF far = 1.0f - 2.0f / (F(scale)(e, k) + 1.0f);
    VF y = F(select)(F(less)(a, C(0.625f)), near, far);
    return F(unless_nan)(x, F(with_sign)(y, x));
}

/* 1 / (1 + exp(-x)), accurate also where it is nearly 0 */
VMATH VF F(sigmoid)(VF x) {
    VF e = F(exp_negative)(-F(abs)(x));
    VF y = F(select)(F(less)(x, C(0.0f)), e, C(1.0f)) / (1.0f + e);
    return F(unless_nan)(x, y);
}

VMATH VF F(erf)(VF x) {
    /* Near 0: x (1 + P(x^2)). From 0.9: 1 - exp(-Q(x)), which is 1 from 4 on. */
    VF a = F(abs)(x), z = x * x, b = F(at_most)(a, C(4.0f)), k;
    VF p = FMA(C(-0x1.3ed096p-11f), z, C(0x1.485414p-8f));
    p = FMA(p, z, C(-0x1.b6b806p-6f));
    p = FMA(p, z, C(0x1.ce1d3cp-4f));
    p = FMA(p, z, C(-0x1.8126f4p-2f));
    p = FMA(p, z, C(0x1.06eba6p-3f));
    VF q = FMA(C(0x1.9da41cp-13f), b, C(-0x1.90943ep-9f));
    q = FMA(q, b, C(0x1.6d060cp-6f));
    q = FMA(q, b, C(-0x1.aa2784p-4f));
    q = FMA(q, b, C(-0x1.462c2p-1f));
    q = FMA(q, b, C(-0x1.20b458p+0f));
    q = FMA(q, b, C(-0x1.734248p-13f));
    VF e = F(exp_parts)(q, &k);
    VF y = F(select)(F(less)(a, C(0.9f)), FMA(a, p, a), 1.0f - F(scale)(e, k));
    return F(unless_nan)(x, F(with_sign)(y, x));
}

/* Softplus, log(1 + exp(x)). With e = exp(-|x|) it is max(x, 0) + log(1 + e); 1 + e is halved where
 * it exceeds sqrt(2). */
VMATH VF F(log1p_exp)(VF x) {
    VF e = F(exp_negative)(-F(abs)(x));
    VM small = F(less)(e, C(0x1.a8p-2f));
    VF f = F(select)(small, e, 0.5f * (e - 1.0f));
    VF high = F(select)(small, C(0.0f), C(VMATH_LN2_HI));
    VF low = F(select)(small, C(0.0f), C(VMATH_LN2_LO));
    VF y = high + (f + (F(log1p_tail)(f) + low));
    return F(unless_nan)(x, F(at_least)(x, C(0.0f)) + y);
}

/* |x|^y for finite x != 0. The logarithm to base 2 is k + C atanh(s), s = (m - 1) / (m + 1),
 * C = 2 / ln2; it and its product with y are sums of two floats, hi and lo. */
VMATH VF F(pow_magnitude)(VF x, VF y) {
    VF k, m = F(split_exponent)(F(abs)(x), &k), f = m - 1.0f;
    VF d = m + 1.0f, t = d - m, d_lo = (m - (d - t)) + (1.0f - t);
    VF s = f / d;
    VF s_lo = FMA(-s, d_lo, FMA(-s, d, f)) / d;

    VF z = s * s, p = FMA(C(0x1.f13c9ep-4f), z, C(0x1.23d3dcp-3f));
    p = FMA(p, z, C(0x1.999c26p-3f));
    p = FMA(p, z, C(0x1.555554p-2f));
    VF cube = s * z * p, a = s + cube, a_lo = (cube - (a - s)) + s_lo;

    VF c = C(0x1.715476p+1f), c_lo = C(0x1.4ae0cp-25f);
    VF ca = c * a, ca_lo = FMA(c, a, -ca) + FMA(c_lo, a, c * a_lo);
    VF l = k + ca, l_lo = (ca - (l - k)) + ca_lo; /* k is 0 or above |ca| */

    /* No logarithm except 0 is below 2^-24, so 2^40 overflows as any larger y would. */
    y = F(at_most)(F(at_least)(y, C(-0x1p40f)), C(0x1p40f));
    VF e = l * y, e_lo = FMA(l_lo, y, FMA(l, y, -e));
    e_lo = F(select)(F(less)(C(200.0f), F(abs)(e)), C(0.0f), e_lo);
    e = F(at_most)(F(at_least)(e, C(-200.0f)), C(200.0f));

    VF n = (e + VMATH_ROUNDER) - VMATH_ROUNDER, r = (e - n) + e_lo;
    VF q = FMA(C(0x1.e42ad2p-17f), r, C(0x1.44113cp-13f));
    q = FMA(q, r, C(0x1.5da2c4p-10f));
    q = FMA(q, r, C(0x1.3b2a5ap-7f));
    q = FMA(q, r, C(0x1.c6b07p-5f));
    q = FMA(q, r, C(0x1.ebfbep-3f));
    q = FMA(q, r, C(0x1.62e43p-1f));
    return F(scale)(FMA(r, q, C(1.0f)), n);
}

/* As C's powf: a negative base takes only integer exponents; pow(x, 0) = pow(1, y) = 1. */
VMATH VF F(pow)(VF x, VF y) {
    VF a = F(abs)(x), b = F(abs)(y), half = 0.5f * b;
    /* Every float is an integer from 2^23 on, and even from 2^24 on. */
    VM large = F(not)(F(less)(b, C(0x1p23f)));
    VM integer = F(either)(large, F(equal)((b + 0x1p23f) - 0x1p23f, b));
    VM even = F(either)(F(equal)((half + 0x1p23f) - 0x1p23f, half), F(not)(F(less)(b, C(0x1p24f))));
    VM odd = F(both)(integer, F(not)(even));
    VM zero = F(equal)(a, C(0.0f)), edge = F(either)(zero, F(equal)(a, INFINITE));
    VM negative = F(less)(x, C(0.0f)), falls = F(less)(y, C(0.0f));
    VM not_real = F(both)(negative, F(not)(F(either)(integer, edge)));

    VF of_zero = F(select)(falls, INFINITE, C(0.0f)),
       of_infinity = F(select)(falls, C(0.0f), INFINITE);
    VF p = F(pow_magnitude)(x, y);
    p = F(select)(edge, F(select)(zero, of_zero, of_infinity), p);
    p = F(select)(odd, F(with_sign)(p, x), p);
    p = F(unless_nan)(x, F(unless_nan)(y, p));
    p = F(select)(not_real, C(vmath_of_bits(VMATH_NAN)), p);
    return F(select)(F(either)(F(equal)(x, C(1.0f)), F(equal)(y, C(0.0f))), C(1.0f), p);
}

#undef C
#undef FMA
#undef INFINITE
