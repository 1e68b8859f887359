/* SPDX-License-Identifier: Apache-2.0
 * The polynomials are near-minimax fits. Their coefficients were rounded one by one, and the rest
 * was fitted again after each. */
#include "base/math.h"

#include <math.h> /* INFINITY, NAN, and exact functions: fabs, floor */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/clones.h"

#define INV_LN2 0x1.71547652b82fep+0
#define LN2_HI 0x1.62e42feep-1 /* 32 bits: its product with an exponent is exact */
#define LN2_LO 0x1.a39ef35793c76p-33

#define SQRT_HALF_BITS 0x3fe6a09e667f3bcdu
#define ROUNDER 0x1.8p52 /* adding and subtracting it rounds to an integer, below 2^51 */

/* Makes loops over arrays vectorise. */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define INLINE static inline __attribute__((always_inline))

/* Horner's rule, written so that the order of operations is fixed. */
#define POLY(x, c) poly(x, c, (int)(sizeof(c) / sizeof *(c)))

INLINE double poly(double x, const double *c, int n) {
    double sum = c[n - 1];
    UNROLL for (int i = n - 2; i >= 0; i--) sum = sum * x + c[i];
    return sum;
}

INLINE uint64_t to_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINE double of_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

INLINE double round_to_integer(double x) { return (x + ROUNDER) - ROUNDER; }

/* 2^n for -1022 <= n <= 1023 */
static double power_of_two(int n) { return of_bits((uint64_t)(1023 + n) << 52); }

/* x * 2^n for x near 1 and |n| < 2000. The first product is exact, so the result is rounded once,
 * even if it is subnormal. */
static double scale(double x, int n) {
    int half = n / 2;
    return x * power_of_two(half) * power_of_two(n - half);
}

/* An unrounded sum: hi is the double nearest to it, lo the rest. */
struct pair {
    double hi, lo;
};

static struct pair add_fast(double a, double b) { /* |a| >= |b|, or a = 0 */
    double s = a + b;
    return (struct pair){s, b - (s - a)};
}

INLINE struct pair add_exact(double a, double b) {
    double s = a + b, t = s - a;
    return (struct pair){s, (a - (s - t)) + (b - t)};
}

static struct pair mul_exact(double a, double b) { /* by Dekker; no operand above 2^990 */
    double p = a * b, s = a * 0x1.000002p27, t = b * 0x1.000002p27;
    double ah = s - (s - a), bh = t - (t - b), al = a - ah, bl = b - bh;
    return (struct pair){p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

/* ---- exponentials -------------------------------------------------------------------------- */

/* e^r - 1 - r for |r| <= ln2 / 2 */
static double exp_tail(double r) {
    static const double c[] = {
        0x1.5555555555559p-3,  0x1.5555555555557p-5,  0x1.111111110f63ap-7,  0x1.6c16c16c156c2p-10,
        0x1.a01a01b015377p-13, 0x1.a01a01ab79f87p-16, 0x1.71ddf7d54de61p-19, 0x1.27e4d024f0787p-22,
        0x1.af5fa48bfa26bp-26, 0x1.1f85ec7bd5645p-29,
    };
    return r * r * (0.5 + r * POLY(r, c));
}

/* x - n ln2 with |hi| <= ln2 / 2, for an x that is itself a sum of two */
static struct pair reduce_exp(double hi, double lo, double n) {
    return add_exact(hi - n * LN2_HI, lo - n * LN2_LO);
}

static double exp_of_sum(double hi, double lo) { /* -800 < hi < 800 */
    double n = round_to_integer(hi * INV_LN2);
    struct pair r = reduce_exp(hi, lo, n);
    return scale(1 + (r.hi + (r.lo + exp_tail(r.hi))), (int)n);
}

double math_exp(double x) {
    if (x != x) return x;
    if (x > 710) return INFINITY;
    if (x < -746) return 0;
    return exp_of_sum(x, 0);
}

double math_expm1(double x) {
    if (x != x || fabs(x) < 0x1p-54) return x;
    if (x > 710) return INFINITY;
    if (x < -40) return -1;
    double n = round_to_integer(x * INV_LN2);
    struct pair r = reduce_exp(x, 0, n);
    double e = exp_tail(r.hi) + (r.lo + r.lo * r.hi);
    if (n == 0) return r.hi + e;
    /* 2^n (1 + r + e) - 1; the 1 is subtracted before scaling, and the largest terms come first */
    return scale(((1 - power_of_two(n > 1000 ? -1000 : (int)-n)) + r.hi) + e, (int)n);
}

double math_tanh(double x) {
    double a = fabs(x), y;
    if (x != x || a < 0x1p-28) return x;
    if (a > 22) {
        y = 1;
    } else if (a >= 0.5) {
        y = 1 - 2 / (math_exp(2 * a) + 1);
    } else {
        double e = math_expm1(2 * a);
        y = e / (e + 2);
    }
    return x < 0 ? -y : y;
}

/* ---- logarithms ---------------------------------------------------------------------------- */

/* x = 2^n m with sqrt(1/2) <= m < sqrt(2), for a positive normal x */
INLINE double split_normal(double x, int64_t *n) {
    uint64_t bits = to_bits(x);
    *n = (int64_t)(bits - SQRT_HALF_BITS) >> 52;
    return of_bits(bits - ((uint64_t)*n << 52));
}

/* The same for a positive finite x. */
static double split_exponent(double x, int *k) {
    int shift = x < 0x1p-1022 ? 54 : 0;
    int64_t n;
    double m = split_normal(shift ? x * 0x1p54 : x, &n);
    *k = (int)n - shift;
    return m;
}

/* n ln2 + log(1 + f) + c, for sqrt(1/2) <= 1 + f < sqrt(2) and a tiny c. With s = f / (2 + f), the
 * logarithm is 2 atanh(s), and 2 s = f - s f. */
INLINE double log_of(double f, double n, double c) {
    static const double coefficients[] = {
        0x1.5555555555593p-1, 0x1.999999997fa54p-2, 0x1.2492494221bcep-2, 0x1.c71c51e0e43d2p-3,
        0x1.746647758fec9p-3, 0x1.39a0d713cc996p-3, 0x1.2f0ea2acc607cp-3,
    };
    double s = f / (2 + f), z = s * s, square = 0.5 * f * f;
    double series = z * POLY(z, coefficients);
    return n * LN2_HI + (f - (square - (s * (square + series) + (n * LN2_LO + c))));
}

double math_log(double x) {
    if (x != x) return x;
    if (x < 0) return NAN;
    if (x == 0) return -INFINITY;
    if (x == INFINITY) return x;
    int k;
    double m = split_exponent(x, &k);
    return log_of(m - 1, k, 0);
}

CLONES void math_log_each(const double *x, double *y) {
    double f[MATH_EACH], n[MATH_EACH];
    for (int i = 0; i < MATH_EACH; i++) {
        int64_t k;
        f[i] = split_normal(x[i], &k) - 1;
        n[i] = of_bits((uint64_t)k + to_bits(ROUNDER)) - ROUNDER;
    }
    for (int i = 0; i < MATH_EACH; i++) f[i] = log_of(f[i], n[i], 0);
    memcpy(y, f, sizeof f);
}

double math_log1p(double x) {
    if (x != x || fabs(x) < 0x1p-54 || x == INFINITY) return x;
    if (x < -1) return NAN;
    if (x == -1) return -INFINITY;
    int k;
    struct pair u = add_exact(1, x);
    double m = split_exponent(u.hi, &k);
    return k ? log_of(m - 1, k, u.lo / u.hi) : log_of(x, 0, 0);
}

/* log(x) as a sum of two, to a relative 2^-64, for a positive finite x: 2 s (1 + z (1/3 + z Q(z)))
 * with s = (m - 1) / (m + 1), z = s^2; all but Q in double-double. */
static struct pair log_as_sum(double x) {
    static const double c[] = {
        0x1.9999999999996p-3, 0x1.2492492492f55p-3, 0x1.c71c71c595c44p-4, 0x1.745d1829d48c3p-4,
        0x1.3b1364a1d7eb9p-4, 0x1.112075cf24ba7p-4, 0x1.de3c4c21faacp-5,  0x1.eacfe4079caddp-5,
    };
    int k;
    double m = split_exponent(x, &k), f = m - 1, n = k;
    struct pair d = add_exact(m, 1), s, z, t, w, u, sum;

    s.hi = f / d.hi;
    u = mul_exact(s.hi, d.hi);
    s.lo = (((f - u.hi) - u.lo) - s.hi * d.lo) / d.hi;

    z = mul_exact(s.hi, s.hi);
    z.lo += 2 * s.hi * s.lo;

    t = add_fast(0x1.5555555555555p-2, z.hi * POLY(z.hi, c));
    t.lo += 0x1.5555555555555p-56;

    w = mul_exact(z.hi, t.hi);
    w.lo += z.hi * t.lo + z.lo * t.hi;

    u = mul_exact(s.hi, w.hi);
    u.lo += s.hi * w.lo + s.lo * w.hi;

    sum = add_fast(s.hi, u.hi);
    sum.lo += s.lo + u.lo;
    u = add_fast(n * LN2_HI, 2 * sum.hi);
    return add_fast(u.hi, u.lo + (2 * sum.lo + n * LN2_LO));
}

double math_pow(double x, double y) {
    if (y == 0 || x == 1) return 1;
    if (x != x || y != y) return NAN;
    double a = fabs(x), b = fabs(y), magnitude;
    bool integer = floor(b) == b, odd = integer && floor(b / 2) != b / 2;
    if (a == 0 || a == INFINITY) {
        magnitude = (a == 0) == (y < 0) ? INFINITY : 0;
    } else if (x < 0 && !integer) {
        return NAN;
    } else {
        /* No logarithm of a double except 0 is below 2^-53, so 2^65 overflows as any larger y
         * would. */
        if (b > 0x1p65) y = y < 0 ? -0x1p65 : 0x1p65;
        struct pair l = log_as_sum(a), p = mul_exact(l.hi, y);
        if (p.hi > 720) magnitude = INFINITY;
        else if (p.hi < -760) magnitude = 0;
        else magnitude = exp_of_sum(p.hi, p.lo + l.lo * y);
    }
    return odd && to_bits(x) >> 63 ? -magnitude : magnitude;
}

/* ---- the error function -------------------------------------------------------------------- */

double math_erf(double x) {
    /* erf(x) / x - 1 in x^2, up to 0.875 */
    static const double near[] = {
        0x1.06eba8214db69p-3,   -0x1.812746b037a28p-2,  0x1.ce2f21a045e4ap-4,
        -0x1.b82ce3137eb3fp-6,  0x1.565bcd35088dap-8,   -0x1.c02dbb12d9609p-11,
        0x1.f9a3f4f90c05ep-14,  -0x1.f4e14849775e3p-17, 0x1.ba953a4942e32p-20,
        -0x1.642e0f9d3affp-23,  0x1.0e53790c344a5p-26,  -0x1.565589ac2e013p-30,
    };
    /* exp(x^2) erfc(x) in (x - 2) / (x + 2), from 0.875 to 6 */
    static const double far[] = {
        0x1.058671b52c776p-2,   -0x1.b57034efd3f82p-2,  0x1.eeea7dc8a75d7p-3,
        -0x1.437f0b68bdf5p-4,   0x1.e94715a3c981ap-9,   0x1.ca95ed66fc91ep-8,
        -0x1.bc25aeec00c77p-11, -0x1.016b847fca4e4p-10, 0x1.6d5fd6a0d8d26p-15,
        0x1.6dc6c24bc18aap-13,  0x1.d0c0e90457e7ep-16,  -0x1.d033ca9d57ba7p-16,
        -0x1.0620990d49026p-16, -0x1.4b8a163dffe6bp-19,
    };
    double a = fabs(x), y;
    if (x != x) return x;
    if (a < 0.875) return x + x * POLY(x * x, near);
    y = a > 6 ? 1 : 1 - math_exp(-a * a) * POLY((a - 2) / (a + 2), far);
    return x < 0 ? -y : y;
}

/* ---- sine and cosine ----------------------------------------------------------------------- */

/* x - n pi/2 as a sum of two, and an integer congruent to n modulo 4. pi/2 is split into 33, 33 and
 * 53 bits; n has at most 20, so the first two products are exact. */
INLINE struct pair reduce_angle(double x, uint64_t *quadrant) {
    double n = round_to_integer(x * 0x1.45f306dc9c883p-1);
    struct pair r = add_exact(x - n * 0x1.921fb544p+0, -(n * 0x1.0b4611a6p-34));
    *quadrant = to_bits(n + ROUNDER);
    return add_exact(r.hi, r.lo - n * 0x1.3198a2e037073p-69);
}

INLINE double sin_of(struct pair r) { /* |r| <= pi/4 */
    static const double c[] = {
        -0x1.5555555555548p-3, 0x1.111111110f746p-7,   -0x1.a01a019bed93p-13,
        0x1.71de355a0e733p-19, -0x1.ae5e4ff5b5a8ep-26, 0x1.5d8cc4682e199p-33,
    };
    double z = r.hi * r.hi;
    return r.hi + (r.hi * z * POLY(z, c) + r.lo * (1 - 0.5 * z));
}

INLINE double cos_of(struct pair r) {
    static const double c[] = {
        0x1.555555555554bp-5,   -0x1.6c16c16c15003p-10, 0x1.a01a019c8c1ecp-16,
        -0x1.27e4f7eeab601p-22, 0x1.1ee9d971979dep-29,  -0x1.8fa51ef0f060ep-37,
    };
    double z = r.hi * r.hi, half = 0.5 * z, w = 1 - half;
    return w + (((1 - w) - half) + (z * z * POLY(z, c) - r.hi * r.lo));
}

/* quarter 0: sine, 1: cosine, of x */
static double sin_shifted(double x, unsigned quarter) {
    if (!(fabs(x) <= MATH_ANGLE_MAX)) return NAN;
    if (quarter == 0 && fabs(x) < 0x1p-28) return x; /* keeps -0 */
    uint64_t quadrant;
    struct pair r = reduce_angle(x, &quadrant);
    quadrant += quarter;
    double y = quadrant & 1 ? cos_of(r) : sin_of(r);
    return quadrant & 2 ? -y : y;
}

double math_sin(double x) { return sin_shifted(x, 0); }
double math_cos(double x) { return sin_shifted(x, 1); }

CLONES void math_cos_each(const double *x, double *y) {
    double result[MATH_EACH];
    for (int i = 0; i < MATH_EACH; i++) {
        uint64_t quadrant;
        struct pair r = reduce_angle(x[i], &quadrant);
        uint64_t odd = 0 - (++quadrant & 1), sign = (quadrant & 2) << 62;
        result[i] = of_bits(((to_bits(cos_of(r)) & odd) | (to_bits(sin_of(r)) & ~odd)) ^ sign);
    }
    memcpy(y, result, sizeof result);
}
