/* SPDX-License-Identifier: Apache-2.0
 * Conversions against a simple model: a value is rounded to a multiple of its last place. */
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

#include "base/convert.h"
#include "unit/bits.h"

/* v rounded to a format with `digits` bits, smallest normal number 2^low, and overflow from 2^high
 * on. */
static long double rounded(long double v, int digits, int low, int high) {
    if (v == 0 || isnan(v) || isinf(v)) return v;
    int e = ilogbl(v) < low ? low : ilogbl(v);
    long double unit = ldexpl(1, e - digits + 1), r = nearbyintl(v / unit) * unit;
    return fabsl(r) < ldexpl(1, high) ? r : copysignl(INFINITY, v);
}

static long double to_f16(long double v) { return rounded(v, 11, -14, 16); }
static long double to_bf16(long double v) { return rounded(v, 8, -126, 128); }
static long double to_f32(long double v) { return rounded(v, 24, -126, 128); }

static bool same(long double a, long double b) {
    return (isnan(a) && isnan(b)) || (a == b && !signbit(a) == !signbit(b));
}

static float of_bits(uint64_t bits) { return convert_of_bits((uint32_t)bits); }

/* ---- sixteen bits -------------------------------------------------------------------------- */

static void every_f16(void **state) {
    (void)state;
    for (uint32_t h = 0; h <= 0xffff; h++) {
        int exponent = h >> 10 & 31, fraction = h & 1023;
        double want = exponent == 31  ? (fraction ? NAN : INFINITY)
                      : exponent == 0 ? ldexp(fraction, -24)
                                      : ldexp(1024 + fraction, exponent - 25);
        float got = convert_f16_to_f32((uint16_t)h);
        bool negative = signbit(got) != 0;
        assert_true(negative == (h >> 15));
        assert_true(same((long double)got, (long double)(negative ? -want : want)));
        uint32_t quiet = isnan(got) ? 0x200 : 0;
        assert_int_equal(convert_f32_to_f16(got), h | quiet);
        if (isnan(got)) assert_true(convert_bits(got) >> 22 & 1);
    }
}

static void every_bf16(void **state) {
    (void)state;
    for (uint32_t h = 0; h <= 0xffff; h++) {
        float got = convert_bf16_to_f32((uint16_t)h);
        assert_true(convert_bits(got) == h << 16);
        assert_int_equal(convert_f32_to_bf16(got), h | (isnan(got) ? 0x40u : 0));
    }
}

static void check_narrow(float x) {
    float f16 = convert_f16_to_f32(convert_f32_to_f16(x));
    float bf16 = convert_bf16_to_f32(convert_f32_to_bf16(x));
    if (!same((long double)f16, to_f16((long double)x))) fail_msg("f16 of %a is %a", (double)x,
                                                                  (double)f16);
    if (!same((long double)bf16, to_bf16((long double)x))) fail_msg("bf16 of %a is %a", (double)x,
                                                                    (double)bf16);
}

static void floats_to_sixteen(void **state) {
    (void)state;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 16411) check_narrow(of_bits(bits));
    /* Halfway between neighbours, and next to it. */
    for (uint32_t h = 0; h <= 0xffff; h += 7)
        for (uint32_t d = 0; d < 3; d++) {
            check_narrow(of_bits((h << 16) + 0x8000 - 1 + d));
            float x = convert_f16_to_f32((uint16_t)h), y = convert_f16_to_f32((uint16_t)(h + 1));
            if (isfinite(x) && isfinite(y))
                check_narrow(of_bits(convert_bits((x + y) / 2) - 1 + d));
        }
    static const float edge[] = {65504, 65519.996f, 65520, 65536, 0x1p-24f, 0x1p-25f,
                                 0x1.000002p-25f, 0x1.8p-24f, 0x1p-14f, 0x1.ffcp-15f, 0x1.ffep-15f,
                                 FLT_MAX, 0x1.fep127f, 0x1.fefffep127f, 0x1.ffp127f, 0x1p-149f};
    for (size_t i = 0; i < COUNT(edge); i++) check_narrow(edge[i]), check_narrow(-edge[i]);
}

/* ---- doubles ------------------------------------------------------------------------------- */

static double stored(tri_type type, double v) {
    uint64_t room[3] = {0};
    convert_store(type, room, 1, v);
    return convert_load(type, room, 1);
}

static void check_double(double v) {
    double f32 = stored(TRI_F32, v), f16 = stored(TRI_F16, v), bf16 = stored(TRI_BF16, v);
    if (!same((long double)f32, to_f32((long double)v))) fail_msg("f32 of %a is %a", v, f32);
    if (!same((long double)f16, to_f16((long double)v))) fail_msg("f16 of %a is %a", v, f16);
    if (!same((long double)bf16, to_bf16((long double)v))) fail_msg("bf16 of %a is %a", v, bf16);
}

/* Rounding through float would be wrong for those that float moves to halfway. */
static void doubles_round_once(void **state) {
    (void)state;
    sequence = 1;
    for (int i = 0; i < 30000; i++) {
        uint64_t bits = next_bits();
        double any;
        memcpy(&any, &bits, sizeof any);
        check_double(any);
        float x = of_bits((next_bits() & 0xffff0000u) | 0x8000u); /* halfway for bf16 */
        float y = convert_f16_to_f32((uint16_t)next_bits());
        double h = (double)of_bits(convert_bits(y) | 0x1000u); /* where f16 is normal */
        double step = ldexp(1, -(int)(next_bits() % 40));
        for (int d = -1; d <= 1; d++) {
            check_double((double)x * (1 + d * 0x1p-30 * step));
            check_double(h * (1 + d * 0x1p-12 * step));
        }
    }
    static const double edge[] = {0, 1, DBL_MAX, DBL_MIN, 0x1p-1074, INFINITY, NAN, 0x1p-150,
                                  0x1.0000000000001p-150, 0x1p-134, 0x1.0000000000001p-134, 0x1p-25,
                                  0x1.0000000000001p-25, 65520, 65519.999999999993, FLT_MAX,
                                  0x1.fffffefffffffp127, 0x1.ffffffp127, 0x1.fefffffffffffp127};
    for (size_t i = 0; i < COUNT(edge); i++) check_double(edge[i]), check_double(-edge[i]);
}

static void to_integers(void **state) {
    (void)state;
    static const struct {
        double v, i32, i64, u8, truth;
    } rows[] = {
        {0, 0, 0, 0, 0}, {-0.0, 0, 0, 0, 0}, {0.999, 0, 0, 0, 1}, {-0.999, 0, 0, 0, 1},
        {1.5, 1, 1, 1, 1}, {-1.5, -1, -1, 0, 1}, {255.9, 255, 255, 255, 1},
        {256, 256, 256, 255, 1}, {2147483647.5, 2147483647, 2147483647, 255, 1},
        {2147483648, 2147483647, 2147483648, 255, 1}, {-2147483648.5, -0x1p31, -0x1p31, 0, 1},
        {-2147483650, -0x1p31, -2147483650, 0, 1}, {0x1p62, 2147483647, 0x1p62, 255, 1},
        {0x1p63, 2147483647, 0x1p63, 255, 1}, {-0x1p63, -0x1p31, -0x1p63, 0, 1},
        {-0x1p64, -0x1p31, -0x1p63, 0, 1}, {1e300, 2147483647, 0x1p63, 255, 1},
        {INFINITY, 2147483647, 0x1p63, 255, 1}, {-INFINITY, -0x1p31, -0x1p63, 0, 1},
        {NAN, 0, 0, 0, 1}, {0x1p-1074, 0, 0, 0, 1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        double v = rows[i].v, want[] = {rows[i].i32, rows[i].i64, rows[i].u8, rows[i].truth};
        tri_type type[] = {TRI_I32, TRI_I64, TRI_U8, TRI_BOOL};
        for (int k = 0; k < 4; k++)
            if (stored(type[k], v) != want[k])
                fail_msg("%s of %g is %g", tri_type_name(type[k]), v, stored(type[k], v));
    }
    int64_t most; /* a double cannot distinguish it from 2^63 */
    convert_store(TRI_I64, &most, 0, 1e19);
    assert_true(most == INT64_MAX);
}

/* ---- arrays -------------------------------------------------------------------------------- */

#define N 1111 /* enough for vector code, and odd */

static void fill(tri_type type, void *p) {
    static const double some[] = {
        0,    -0.0, 1,      -1,      0.5,    -2.75,   254.5,  255,  300,   -300,  65504,   65520,
        1e5,  -1e5, 0x1p31, -0x1p31, 0x1p40, -0x1p63, 0x1p63, 1e30, -1e30, 1e-30, 0x1p-24, 0x1p-149,
        INFINITY, -INFINITY, NAN, 0x1.008p8, 0x1.018p8,
    };
    for (size_t i = 0; i < N; i++) {
        uint64_t bits = next_bits();
        size_t size = tri_type_size(type);
        if (type == TRI_BOOL) bits &= bits >> 20 & 1 ? 0xff : 0; /* true may be any byte but 0 */
        if (i % 3 == 0 || type == TRI_BOOL) memcpy((char *)p + i * size, &bits, size);
        else if (i % 3 == 1) convert_store(type, p, i, some[i / 3 % COUNT(some)]);
        else convert_store(type, p, i, ldexp((double)(int64_t)bits, (int)(next_bits() % 90) - 80));
    }
}

/* All pairs: the same as converting each element through double, except for i64 beyond 2^53. */
static void all_pairs(void **state) {
    (void)state;
    static uint64_t source[N + 1], target[N + 1], one[N + 1];
    sequence = 2;
    for (tri_type from = TRI_F32; from <= TRI_BOOL; from++)
        for (tri_type to = TRI_F32; to <= TRI_BOOL; to++) {
            size_t size = tri_type_size(to);
            fill(from, source);
            memset(target, 0xa5, sizeof target);
            memset(one, 0xa5, sizeof one);
            convert(to, target, from, source, N);
            for (size_t i = 0; i < N; i++) {
                double v = convert_load(from, source, i);
                convert_store(to, one, i, v);
                if (from == TRI_I64 && fabs(v) > 0x1p53) /* see below */
                    memcpy((char *)one + i * size, (char *)target + i * size, size);
                if (isnan(convert_load(to, one, i)) && isnan(convert_load(to, target, i))) continue;
                if (memcmp((char *)one + i * size, (char *)target + i * size, size) != 0)
                    fail_msg("%s to %s: %a became %a", tri_type_name(from), tri_type_name(to), v,
                             convert_load(to, target, i));
            }
            assert_memory_equal((char *)one + N * size, (char *)target + N * size, 8);
            convert(to, NULL, from, NULL, 0);
        }
}

static void same_type_keeps_bits(void **state) {
    (void)state;
    static uint64_t source[N], target[N];
    for (size_t i = 0; i < N; i++) source[i] = next_bits();
    for (tri_type type = TRI_F32; type < TRI_BOOL; type++) {
        memset(target, 0, sizeof target);
        convert(type, target, type, source, N);
        assert_memory_equal(target, source, N * tri_type_size(type));
    }
    convert(TRI_BOOL, target, TRI_BOOL, source, N);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(((uint8_t *)target)[i], ((uint8_t *)source)[i] != 0);
}

/* A long double of 64 bits holds every i64; a smaller one must use its own conversion. */
static void large_integers(void **state) {
    (void)state;
    static int64_t v[N], i64[N];
    static int32_t i32[N];
    static float f32[N];
    static uint16_t f16[N], bf16[N];
    static uint8_t truth[N], u8[N];
    sequence = 3;
    for (size_t i = 0; i < N; i++) {
        uint64_t bits = next_bits(), few = (bits & 0xffffff) << 39 | (uint64_t)1 << 62;
        /* any value; halfway for f32; for bf16; and next to it */
        uint64_t x = i % 4 == 0   ? bits >> (bits & 31)
                     : i % 4 == 1 ? (few & ~(((uint64_t)1 << 39) - 1)) | (uint64_t)1 << 38
                     : i % 4 == 2 ? (few & ~(((uint64_t)1 << 55) - 1)) | (uint64_t)1 << 54
                                  : (uint64_t)INT64_MAX;
        x += bits >> 40 & 1 ? bits >> 41 & 1 : 0 - (bits >> 41 & 1);
        v[i] = (int64_t)(bits >> 63 ? 0 - x : x);
    }
    v[0] = INT64_MIN, v[1] = INT64_MAX, v[2] = 0, v[3] = 1, v[4] = 65519, v[5] = 65520;
    v[6] = (int64_t)1 << 53, v[7] = v[6] + 1, v[8] = -v[7];
    convert(TRI_F32, f32, TRI_I64, v, N);
    convert(TRI_F16, f16, TRI_I64, v, N);
    convert(TRI_BF16, bf16, TRI_I64, v, N);
    convert(TRI_I32, i32, TRI_I64, v, N);
    convert(TRI_I64, i64, TRI_I64, v, N);
    convert(TRI_U8, u8, TRI_I64, v, N);
    convert(TRI_BOOL, truth, TRI_I64, v, N);
    for (size_t i = 0; i < N; i++) {
        long double x = (long double)v[i];
        if (f32[i] != (float)v[i]) fail_msg("f32 of %lld", (long long)v[i]);
        if (LDBL_MANT_DIG >= 64) {
            assert_true(same((long double)convert_bf16_to_f32(bf16[i]), to_bf16(x)));
            assert_true(same((long double)convert_f16_to_f32(f16[i]), to_f16(x)));
        }
        int64_t low = v[i] < INT32_MIN ? INT32_MIN : v[i];
        assert_int_equal(i32[i], low > INT32_MAX ? INT32_MAX : low);
        assert_int_equal(u8[i], v[i] > 255 ? 255 : v[i] < 0 ? 0 : v[i]);
        assert_int_equal(truth[i], v[i] != 0);
        assert_true(i64[i] == v[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_f16),          cmocka_unit_test(every_bf16),
        cmocka_unit_test(floats_to_sixteen),  cmocka_unit_test(doubles_round_once),
        cmocka_unit_test(to_integers),        cmocka_unit_test(all_pairs),
        cmocka_unit_test(same_type_keeps_bits), cmocka_unit_test(large_integers),
    };
    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
