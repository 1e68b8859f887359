/* SPDX-License-Identifier: Apache-2.0
 * math.h against libm in long double, vmath.h against libm in double, and the bits of both; vectors
 * (dev/cpu/vec.h) against scalars. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/math.h"
#include "base/vmath.h"
#include "dev/cpu/vec.h"
#include "unit/bits.h"

/* ---- points, distances, hashes ------------------------------------------------------------- */

static double between(double low, double high) {
    return low + (high - low) * ((double)(next_bits() >> 11) * 0x1p-53);
}

static double any_double(void) {
    uint64_t bits = next_bits();
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float any_float(void) { return vmath_of_bits((uint32_t)next_bits()); }

/* The distance in units in the last place, for a format with `digits` bits and the smallest normal
 * number 2^(low-1). Infinity counts as the value after the largest number. */
static double units(long double got, long double want, int digits, int low, long double max) {
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want) ? 0 : INFINITY;
    if (isinf(got) && isinf(want)) return got == want ? 0 : INFINITY;
    if (isinf(got)) return signbit(got) == signbit(want) && fabsl(want) > max ? 0 : INFINITY;
    int e;
    frexpl(fminl(fabsl(want), max), &e);
    if (want == 0 || e < low) e = low;
    return (double)(fabsl(got - want) / ldexpl(1, e - digits));
}

static double units_double(double got, long double want) {
    return units(got, want, DBL_MANT_DIG, DBL_MIN_EXP, DBL_MAX);
}

static double units_float(float got, double want) {
    return units(got, want, FLT_MANT_DIG, FLT_MIN_EXP, FLT_MAX);
}

static bool same(double a, double b) {
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

#define HASH_START 0xcbf29ce484222325u
static uint64_t hash(uint64_t h, double x) { /* all NaNs are equal */
    uint64_t bits = 0x7ff8u;
    if (!isnan(x)) memcpy(&bits, &x, sizeof bits);
    h = (h ^ bits) * 0x100000001b3u;
    return h ^ h >> 32;
}

static const double special[] = {
    0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 1.5, -1.5, INFINITY, -INFINITY, NAN, DBL_MAX,
    -DBL_MAX, DBL_MIN, -DBL_MIN, 0x1p-1074, -0x1p-1074, 0x1p51 + 1, 0x1p52 + 1, -0x1p52 - 1, 0x1p53,
    -0x1p53, 0x1p53 + 2, 1e300, -1e300, 1 - 0x1p-53, 1 + 0x1p-52, 709.78, 709.79, -744.4, -745.2,
    -708.4, 1e-300, -1e-300, 0x1p-60, 22, 37.5, 1e5,
};

/* ---- double -------------------------------------------------------------------------------- */

struct double_row {
    const char *name;
    double (*f)(double);
    long double (*reference)(long double);
    double range[4][2]; /* 0, 0: any double */
    double limit;
};

#define TAU 6.283185307179586
static const struct double_row doubles[] = {
    {"exp", math_exp, expl, {{-1, 1}, {-745.2, -700}, {-700, 710}}, 0.9},
    {"log", math_log, logl, {{0.3, 3}, {0.9, 1.1}, {0, 1e6}}, 0.9},
    {"log1p", math_log1p, log1pl, {{-1, 3}, {-0.5, 0.5}, {-1e-5, 1e-5}}, 0.9},
    {"expm1", math_expm1, expm1l, {{-1, 1}, {-2, 5}, {-50, 60}}, 1.4},
    {"tanh", math_tanh, tanhl, {{-1, 1}, {-2, 2}, {-25, 25}}, 2.6},
    {"erf", math_erf, erfl, {{-1, 1}, {0.8, 3}, {-7, 7}}, 1.3},
    {"sin", math_sin, sinl, {{-TAU, TAU}, {-0.01, 0.01}, {-1e6, 1e6}, {-1, 1}}, 0.8},
    {"cos", math_cos, cosl, {{-TAU, TAU}, {1.57, 1.571}, {-1e6, 1e6}, {-1, 1}}, 0.8},
};

static void double_accuracy(void **state) {
    (void)state;
    sequence = 1;
    for (size_t k = 0; k < COUNT(doubles); k++) {
        const struct double_row *row = &doubles[k];
        double worst = 0, at = 0;
        for (int i = 0; i < 120000; i++) {
            const double *range = row->range[i % 4];
            double x = range[0] == range[1] ? any_double() : between(range[0], range[1]);
            double error = units_double(row->f(x), row->reference(x));
            if (error > worst) worst = error, at = x;
        }
        print_message("%s: %.3f units at %.17g\n", row->name, worst, at);
        if (worst > row->limit) fail_msg("%s is off by %g units", row->name, worst);
    }
}

static void double_specials(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(doubles); k++) {
        const struct double_row *row = &doubles[k];
        bool angle = row->f == math_sin || row->f == math_cos;
        for (size_t i = 0; i < COUNT(special); i++) {
            double x = special[i], got = row->f(x), want = (double)row->reference(x);
            if (angle && fabs(x) > MATH_ANGLE_MAX) want = NAN;
            if (!same(got, want) && (got == 0 || !(units_double(got, want) <= 3)))
                fail_msg("%s(%a) is %a, not %a", row->name, x, got, want);
        }
    }
}

static void pow_point(int kind, double *x, double *y) {
    switch (kind % 6) {
    case 0: *x = between(0, 10), *y = between(-10, 10); break;
    case 1: *x = between(0, 1000), *y = between(-100, 100); break;
    case 2: *x = any_double(), *y = between(-2, 2); break;
    case 3: *x = any_double(), *y = any_double(); break;
    case 4: *x = between(0.99, 1.01), *y = between(-70000, 70000); break;
    default: *x = between(-30, 30), *y = floor(between(-200, 200));
    }
}

static void double_pow(void **state) {
    (void)state;
    double worst = 0;
    sequence = 2;
    for (int i = 0; i < 240000; i++) {
        double x, y;
        pow_point(i, &x, &y);
        double error = units_double(math_pow(x, y), powl(x, y));
        if (error > worst) worst = error;
        if (error > 0.9) fail_msg("pow(%a, %a) is off by %g units", x, y, error);
    }
    print_message("pow: %.3f units\n", worst);
    for (size_t i = 0; i < COUNT(special); i++)
        for (size_t j = 0; j < COUNT(special); j++) {
            double x = special[i], y = special[j], got = math_pow(x, y), want = pow(x, y);
            if (!same(got, want) && (got == 0 || !(units_double(got, want) <= 2)))
                fail_msg("pow(%a, %a) is %a, not %a", x, y, got, want);
        }
    for (int base = 2; base < 1000; base++) {
        double power = 1;
        for (int n = 0; power <= 0x1p53; n++, power *= base) {
            if (math_pow(base, n) != power) fail_msg("%d^%d is not exact", base, n);
            if (math_pow(-base, n) != (n % 2 ? -power : power)) fail_msg("(-%d)^%d", base, n);
        }
    }
}

/* ---- float --------------------------------------------------------------------------------- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double softplus(double x) { return fmax(x, 0) + log1p(exp(-fabs(x))); }

#define ARRAY 1024
/* Each function three times: in a loop of fixed length, which becomes vector code, on vectors, and
 * on a scalar. */
#define FLOATS(name)                                                            \
    static void name##_array(float *restrict y, const float *restrict x) {      \
        for (int i = 0; i < ARRAY; i++) y[i] = vmath_##name(x[i]);              \
    }                                                                           \
    static void name##_vector(float *restrict y, const float *restrict x) {     \
        ROW(ARRAY, STORE(TRI_F32, y, vec_##name(LOAD(TRI_F32, x, 0))));         \
    }                                                                           \
    static __attribute__((noinline)) float name##_one(float x) { return vmath_##name(x); }
FLOATS(exp)
FLOATS(log)
FLOATS(tanh)
FLOATS(sigmoid)
FLOATS(erf)
FLOATS(log1p_exp)

static void pow_array(float *restrict z, const float *restrict x, const float *restrict y) {
    for (int i = 0; i < ARRAY; i++) z[i] = vmath_pow(x[i], y[i]);
}
static void pow_vector(float *restrict z, const float *restrict x, const float *restrict y) {
    ROW(ARRAY, STORE(TRI_F32, z, vec_pow(LOAD(TRI_F32, x, 0), LOAD(TRI_F32, y, 0))));
}
static __attribute__((noinline)) float pow_one(float x, float y) { return vmath_pow(x, y); }

static const struct float_row {
    const char *name;
    void (*array)(float *restrict, const float *restrict);
    void (*vector)(float *restrict, const float *restrict);
    float (*one)(float);
    double (*reference)(double);
    double limit;
} floats[] = {
    {"exp", exp_array, exp_vector, exp_one, exp, 0.9},
    {"log", log_array, log_vector, log_one, log, 0.85},
    {"tanh", tanh_array, tanh_vector, tanh_one, tanh, 1.4},
    {"sigmoid", sigmoid_array, sigmoid_vector, sigmoid_one, sigmoid, 2.3},
    {"erf", erf_array, erf_vector, erf_one, erf, 1.0},
    {"log1p_exp", log1p_exp_array, log1p_exp_vector, log1p_exp_one, softplus, 1.8},
};

/* Every 3203rd float, and all floats around the places where the method changes. */
static size_t float_points(const float **points) {
    static float x[ARRAY * 1500];
    static const float around[] = {
        0,           1,           FLT_MIN,    INFINITY,   88.72284f,   87.33655f,   103.97208f,
        0.8813736f,  0.70710678f, 1.4142135f, 0.625f,     0.9f,        4,           10,
        0.41421356f, 0x1p-12f,    0.3465736f, 1.0397208f, 16,          89,          105,
    };
    size_t n = 0;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 3203)
        x[n++] = vmath_of_bits((uint32_t)bits);
    for (size_t k = 0; k < COUNT(around); k++)
        for (uint32_t d = 0; d < 2000; d++) {
            uint32_t bits = vmath_bits(around[k]) + d - 1000;
            x[n++] = vmath_of_bits(bits & ~VMATH_SIGN);
            x[n++] = vmath_of_bits(bits | VMATH_SIGN);
        }
    while (n % ARRAY) x[n++] = 0;
    assert_true(n <= COUNT(x));
    *points = x;
    return n;
}

static void float_accuracy(void **state) {
    (void)state;
    const float *x;
    size_t n = float_points(&x);
    for (size_t k = 0; k < COUNT(floats); k++) {
        const struct float_row *row = &floats[k];
        double worst = 0;
        float at = 0, y[ARRAY], v[ARRAY];
        for (size_t first = 0; first < n; first += ARRAY) {
            row->array(y, x + first);
            row->vector(v, x + first);
            assert_memory_equal(v, y, sizeof v);
            for (size_t i = 0; i < ARRAY; i++) {
                double error = units_float(y[i], row->reference((double)x[first + i]));
                if (error > worst) worst = error, at = x[first + i];
                float one = row->one(x[first + i]);
                if (memcmp(&one, &y[i], sizeof one) != 0)
                    fail_msg("%s(%a) is %a alone, %a in a row", row->name, (double)x[first + i],
                             (double)one, (double)y[i]);
            }
        }
        print_message("%s: %.3f units at %.9g\n", row->name, worst, (double)at);
        if (worst > row->limit) fail_msg("%s is off by %g units", row->name, worst);
    }
}

static void float_specials(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(floats); k++) {
        const struct float_row *row = &floats[k];
        for (size_t i = 0; i < COUNT(special); i++) {
            float x = (float)special[i];
            double got = (double)row->one(x), want = (double)(float)row->reference((double)x);
            if (!same(got, want) && (got == 0 || !(units_float((float)got, want) <= 3)))
                fail_msg("%s(%a) is %a, not %a", row->name, (double)x, got, want);
        }
        /* any NaN becomes the same one */
        for (uint32_t payload = 1; payload < 1u << 23; payload *= 2)
            for (uint32_t sign = 0; sign < 2; sign++)
                assert_true(vmath_bits(row->one(vmath_of_bits(
                                sign << 31 | VMATH_INFINITY | payload))) == VMATH_NAN);
    }
}

/* Kinds up to 4 stay in a reasonable range: the result's exponent is at most 64. */
static void pow_point_float(int kind, float *x, float *y) {
    *x = (float)between(0, 10), *y = (float)between(-10, 10);
    switch (kind % 7) {
    case 1: *x = (float)between(0, 1000), *y = (float)between(-6, 6); break;
    case 2: *x = (float)exp(between(-40, 40)), *y = (float)between(-1, 1); break;
    case 3: *x = (float)between(0.99, 1.01), *y = (float)between(-4000, 4000); break;
    case 4: *x = (float)between(-30, 30), *y = (float)floor(between(-12, 13)); break;
    case 5: *x = any_float(), *y = any_float(); break;
    case 6: *x = any_float(), *y = (float)between(-2, 2); break;
    }
}

static void float_pow(void **state) {
    (void)state;
    float x[ARRAY], y[ARRAY], z[ARRAY], v[ARRAY];
    double worst[7] = {0};
    sequence = 3;
    for (int round = 0; round < 700; round++) {
        for (int i = 0; i < ARRAY; i++) pow_point_float(i, &x[i], &y[i]);
        pow_array(z, x, y);
        pow_vector(v, x, y);
        assert_memory_equal(v, z, sizeof v);
        for (int i = 0; i < ARRAY; i++) {
            double error = units_float(z[i], pow((double)x[i], (double)y[i]));
            if (error > worst[i % 7]) worst[i % 7] = error;
            float one = pow_one(x[i], y[i]);
            if (error > (i % 7 < 5 ? 1 : 1.6) || memcmp(&one, &z[i], sizeof one) != 0)
                fail_msg("pow(%a, %a) is %a in a row, %a alone, off by %g units", (double)x[i],
                         (double)y[i], (double)z[i], (double)one, error);
        }
    }
    for (int k = 0; k < 7; k++) print_message("pow, kind %d: %.3f units\n", k, worst[k]);
}

static void float_pow_specials(void **state) {
    (void)state;
    static const float more[] = {0x1p23f, 0x1p23f + 1, -0x1p23f - 1, 0x1p24f,      -0x1p24f,
                                 0x1p22f, 0x1p22f + 1, 0x1p22f + .5f, 1 - 0x1p-24f, 0x1p-149f,
                                 -0x1p-149f, FLT_MAX,  -FLT_MAX,      1 + 0x1p-23f, 7, -7};
    float x[COUNT(special) + COUNT(more)];
    for (size_t i = 0; i < COUNT(special); i++) x[i] = (float)special[i];
    memcpy(x + COUNT(special), more, sizeof more);
    for (size_t i = 0; i < COUNT(x); i++)
        for (size_t j = 0; j < COUNT(x); j++) {
            float got = pow_one(x[i], x[j]), want = powf(x[i], x[j]);
            if (!same((double)got, (double)want) &&
                (got == 0 || !(units_float(got, (double)want) <= 8)))
                fail_msg("pow(%a, %a) is %a, not %a", (double)x[i], (double)x[j], (double)got,
                         (double)want);
        }
}

/* ---- bits ---------------------------------------------------------------------------------- */

/* A change of these numbers changes the weights of every run. */
static void bits_stay(void **state) {
    (void)state;
    static const uint64_t want_double[] = {
        0x7ace448db8c0f494u, 0xccc3ec70c5d05e96u, 0x7f37798ee8a1ddb1u, 0xe7d06b2f1c0a2992u,
        0x5ad4cdb524e4be4du, 0x44d979d945047b6cu, 0x779409356c3eabf8u, 0x915e6825e24435e4u,
        0x904ec5009e50eb34u,
    };
    static const uint64_t want_float[] = {
        0xb0e363396ff1d15bu, 0x4b62b02101bda222u, 0x5453c4cff73818a9u, 0x8e0a5788c8310791u,
        0xecb18759de3517b2u, 0xb410b2a9b92bae45u, 0xf1fe725590bd1c9du,
    };
    for (size_t k = 0; k <= COUNT(doubles); k++) {
        uint64_t h = HASH_START;
        sequence = 4;
        for (int i = 0; i < 30000; i++) {
            double x, y;
            pow_point(i, &x, &y);
            if (k < COUNT(doubles)) h = hash(hash(h, doubles[k].f(x)), doubles[k].f(y));
            else h = hash(h, math_pow(x, y));
        }
        if (h != want_double[k]) fail_msg("double row %zu: 0x%016llx", k, (unsigned long long)h);
    }
    const float *x;
    size_t n = float_points(&x);
    for (size_t k = 0; k <= COUNT(floats); k++) {
        uint64_t h = HASH_START;
        for (size_t i = 0; i < n; i += 3)
            h = hash(h, (double)(k < COUNT(floats) ? floats[k].one(x[i])
                                                   : pow_one(x[i], x[n - 1 - i])));
        if (h != want_float[k]) fail_msg("float row %zu: 0x%016llx", k, (unsigned long long)h);
    }
}

static __attribute__((noinline)) int run(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(double_accuracy), cmocka_unit_test(double_specials),
        cmocka_unit_test(double_pow),      cmocka_unit_test(float_accuracy),
        cmocka_unit_test(float_specials),  cmocka_unit_test(float_pow),
        cmocka_unit_test(float_pow_specials), cmocka_unit_test(bits_stay),
    };
    return cmocka_run_group_tests_name("math", tests, NULL, NULL);
}

/* This file is compiled for each instruction set, which the machine may not have. */
int main(void) {
#if VEC == 16
    bool has = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
#elif VEC == 8
    bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    bool has = true;
#endif
    if (has) return run();
    printf("ok math # skipped: the machine has no such instructions\n");
    return 0;
}
