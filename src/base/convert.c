/* SPDX-License-Identifier: Apache-2.0 */
#include "base/convert.h"

#include <math.h> /* fabs */

/* ---- one element --------------------------------------------------------------------------- */

/* v as a float; an inexact value gets an odd last bit. Rounding that once more to a format with at
 * least two bits fewer gives the same as rounding v directly. */
static inline float narrow_to_odd(double v) {
    float f = (float)v;
    uint32_t bits = convert_bits(f);
    /* If f is infinite and v finite, this steps down to the largest float, which is odd. */
    bits -= (uint32_t)(fabs((double)f) > fabs(v));
    bits |= (uint32_t)((double)f != v && v == v);
    return convert_of_bits(bits);
}

/* The same from i64 to double: the last 11 bits of a value with more than 53 are replaced by one
 * bit that says whether any of them was set. */
static inline double i64_to_odd(int64_t v) {
    uint64_t magnitude = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    if (magnitude >> 53)
        magnitude = ((magnitude >> 11) | (uint64_t)((magnitude & 0x7ff) != 0)) << 11;
    return v < 0 ? -(double)magnitude : (double)magnitude;
}

static inline float f32_of(double v) { return (float)v; }
static inline uint16_t bf16_of(double v) { return convert_f32_to_bf16(narrow_to_odd(v)); }
static inline uint16_t f16_of(double v) { return convert_f32_to_f16(narrow_to_odd(v)); }

static inline int64_t i64_of(double v) {
    if (!(v < 0x1p63)) return v == v ? INT64_MAX : 0;
    return v < -0x1p63 ? INT64_MIN : (int64_t)v;
}

static inline int32_t i32_of(double v) {
    double x = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v == v ? v : 0;
    return (int32_t)x;
}

static inline uint8_t u8_of(double v) {
    double x = v > UINT8_MAX ? UINT8_MAX : v > 0 ? v : 0;
    return (uint8_t)(int32_t)x;
}

static inline uint8_t bool_of(double v) { return v != 0; }

static inline float float_of_f32(float x) { return x; }
static inline float float_of_bool(uint8_t x) { return x != 0; }
static inline double double_of_bf16(uint16_t x) { return (double)convert_bf16_to_f32(x); }
static inline double double_of_f16(uint16_t x) { return (double)convert_f16_to_f32(x); }
static inline double double_of_bool(uint8_t x) { return x != 0; }

double convert_load(tri_type type, const void *p, size_t i) {
    switch (type) {
    case TRI_F32: return (double)((const float *)p)[i];
    case TRI_BF16: return double_of_bf16(((const uint16_t *)p)[i]);
    case TRI_F16: return double_of_f16(((const uint16_t *)p)[i]);
    case TRI_I32: return ((const int32_t *)p)[i];
    case TRI_I64: return (double)((const int64_t *)p)[i];
    case TRI_U8: return ((const uint8_t *)p)[i];
    case TRI_BOOL: return double_of_bool(((const uint8_t *)p)[i]);
    }
    CHECK(type <= TRI_BOOL);
    return 0;
}

void convert_store(tri_type type, void *p, size_t i, double v) {
    switch (type) {
    case TRI_F32: ((float *)p)[i] = f32_of(v); return;
    case TRI_BF16: ((uint16_t *)p)[i] = bf16_of(v); return;
    case TRI_F16: ((uint16_t *)p)[i] = f16_of(v); return;
    case TRI_I32: ((int32_t *)p)[i] = i32_of(v); return;
    case TRI_I64: ((int64_t *)p)[i] = i64_of(v); return;
    case TRI_U8: ((uint8_t *)p)[i] = u8_of(v); return;
    case TRI_BOOL: ((uint8_t *)p)[i] = bool_of(v); return;
    }
    CHECK(type <= TRI_BOOL);
}

/* ---- arrays: a loop for each pair ---------------------------------------------------------- */

typedef void loop(void *dst, const void *src, size_t n);

#define LOOP(name, To, From, expression)                     \
    static void name(void *dst, const void *src, size_t n) { \
        To *restrict to = dst;                               \
        const From *restrict from = src;                     \
        for (size_t i = 0; i < n; i++) {                     \
            From x = from[i];                                \
            to[i] = (expression);                            \
        }                                                    \
    }

#define LOOPS_TO_INTEGERS(from, From, as_double)          \
    LOOP(from##_to_i32, int32_t, From, i32_of(as_double)) \
    LOOP(from##_to_i64, int64_t, From, i64_of(as_double)) \
    LOOP(from##_to_u8, uint8_t, From, u8_of(as_double))   \
    LOOP(from##_to_bool, uint8_t, From, bool_of(as_double))

/* From a type whose values fit in a float, */
#define LOOPS(from, From, as_float, as_double)                          \
    LOOP(from##_to_f32, float, From, as_float)                          \
    LOOP(from##_to_bf16, uint16_t, From, convert_f32_to_bf16(as_float)) \
    LOOP(from##_to_f16, uint16_t, From, convert_f32_to_f16(as_float))   \
    LOOPS_TO_INTEGERS(from, From, as_double)

/* and from one whose values do not. */
#define LOOPS_WIDE(from, From, as_double)                    \
    LOOP(from##_to_f32, float, From, f32_of(as_double))      \
    LOOP(from##_to_bf16, uint16_t, From, bf16_of(as_double)) \
    LOOP(from##_to_f16, uint16_t, From, f16_of(as_double))   \
    LOOPS_TO_INTEGERS(from, From, as_double)

LOOPS(f32, float, float_of_f32(x), (double)x)
LOOPS(bf16, uint16_t, convert_bf16_to_f32(x), double_of_bf16(x))
LOOPS(f16, uint16_t, convert_f16_to_f32(x), double_of_f16(x))
LOOPS_WIDE(i32, int32_t, (double)x)
LOOPS_WIDE(i64, int64_t, i64_to_odd(x))
LOOPS(u8, uint8_t, (float)x, (double)x)
LOOPS(truth, uint8_t, float_of_bool(x), double_of_bool(x)) /* bool is a macro */

#define ROW(from)                                                                          \
    {                                                                                      \
        [TRI_F32] = from##_to_f32, [TRI_BF16] = from##_to_bf16, [TRI_F16] = from##_to_f16, \
        [TRI_I32] = from##_to_i32, [TRI_I64] = from##_to_i64, [TRI_U8] = from##_to_u8,     \
        [TRI_BOOL] = from##_to_bool,                                                       \
    }

static loop *const loops[][TRI_BOOL + 1] = {
    [TRI_F32] = ROW(f32), [TRI_BF16] = ROW(bf16), [TRI_F16] = ROW(f16),    [TRI_I32] = ROW(i32),
    [TRI_I64] = ROW(i64), [TRI_U8] = ROW(u8),     [TRI_BOOL] = ROW(truth),
};

void convert(tri_type to, void *dst, tri_type from, const void *src, size_t n) {
    CHECK((size_t)to < COUNT(loops) && (size_t)from < COUNT(loops));
    if (n == 0) return;
    if (to == from && to != TRI_BOOL) /* keeps every bit, also of NaN and of large i64 */
        memcpy(dst, src, n * tri_type_size(to));
    else
        loops[from][to](dst, src, n);
}
