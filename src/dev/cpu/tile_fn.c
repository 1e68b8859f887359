/* SPDX-License-Identifier: Apache-2.0
 * Tile functions: the arithmetic itself, compiled for each instruction set. */
#include "dev/cpu/tile.h"

#include <math.h>

#include "base/convert.h"
#include "dev/cpu/isa.h"
#include "dev/cpu/vec.h"

/* A function of one, two or three runs of T to a run of R. The expression sees x (a, b; c, a, b)
 * and the attributes p and q. Either of a and b may be a single element: b in the form _last, a in
 * the form _before. */
#define MAP1(name, R, T, expr)                                                              \
    static void name(void *to, const void *const *in, const float *par, size_t n) {         \
        R *out = to;                                                                        \
        const T *xs = in[0];                                                                \
        const float p = par[0], q = par[1];                                                 \
        (void)p, (void)q;                                                                   \
        INDEPENDENT for (size_t i = 0; i < n; i++) {                                        \
            T x = xs[i];                                                                    \
            out[i] = (R)(expr);                                                             \
        }                                                                                   \
    }
#define FORM2(name, R, T, expr, get_a, get_b)                                               \
    static void name(void *to, const void *const *in, const float *par, size_t n) {         \
        R *out = to;                                                                        \
        const T *as = in[0], *bs = in[1], a0 = *as, b0 = *bs;                               \
        (void)par, (void)a0, (void)b0;                                                      \
        INDEPENDENT for (size_t i = 0; i < n; i++) {                                        \
            T a = get_a, b = get_b;                                                         \
            out[i] = (R)(expr);                                                             \
        }                                                                                   \
    }
#define MAP2(name, R, T, expr)                                                              \
    FORM2(name, R, T, expr, as[i], bs[i])                                                   \
    FORM2(name##_last, R, T, expr, as[i], b0)                                               \
    FORM2(name##_before, R, T, expr, a0, bs[i])
#define FORM_WHERE(name, T, get_a, get_b)                                                   \
    static void name(void *to, const void *const *in, const float *par, size_t n) {         \
        T *out = to;                                                                        \
        const uint8_t *c = in[0];                                                           \
        const T *as = in[1], *bs = in[2], a0 = *as, b0 = *bs;                               \
        (void)par, (void)a0, (void)b0;                                                      \
        INDEPENDENT for (size_t i = 0; i < n; i++) {                                        \
            T a = get_a, b = get_b;                                                         \
            out[i] = c[i] ? a : b;                                                          \
        }                                                                                   \
    }
#define WHERE(name, T)                                                                      \
    FORM_WHERE(name, T, as[i], bs[i])                                                       \
    FORM_WHERE(name##_last, T, as[i], b0)                                                   \
    FORM_WHERE(name##_before, T, a0, bs[i])

/* ---- float ---- */

#define F1(name, expr) MAP1(name##_f32, float, float, expr)
/* The same for slow functions: x is a vector, with better instructions than compilers find for a
 * loop. */
#define V1(name, expr)                                                                      \
    static void name##_f32(void *to, const void *const *in, const float *par, size_t n) {   \
        (void)par;                                                                          \
        EACH((int64_t)n, {                                                                  \
            vec x = LOAD(TRI_F32, in[0], 0);                                                \
            STORE(TRI_F32, to, expr);                                                       \
        });                                                                                 \
    }
#define F2(name, expr) MAP2(name##_f32, float, float, expr)

F1(neg, -x)
V1(exp, vec_exp(x))
V1(log, vec_log(x))
F1(sqrt, sqrtf(x))
F1(rsqrt, 1.0f / sqrtf(x))
F1(abs, fabsf(x))
F1(sign, x > 0 ? 1.0f : x < 0 ? -1.0f : x) /* NaN stays NaN */
V1(erf, vec_erf(x))
F1(clip, x < p ? p : x > q ? q : x)
F1(relu, x < 0 ? 0.0f : x)
F1(relu6, x < 0 ? 0.0f : x > 6 ? 6.0f : x)
F1(leaky_relu, x > 0 ? x : p * x)
V1(gelu, 0.5f * x * (1.0f + vec_erf(x * 0.70710678118654752f)))
/* tanh u = 2 sigmoid(2u) - 1, so the approximation is x sigmoid(2u), u = sqrt(2/pi)(x + ...) */
V1(gelu_tanh, x * vec_sigmoid(x * (1.5957691216057308f + 0.071354816272600144f * x * x)))
V1(silu, x * vec_sigmoid(x))
V1(sigmoid, vec_sigmoid(x))
V1(tanh, vec_tanh(x))
V1(softplus, vec_log1p_exp(x))
F1(copy, x)
F2(add, a + b)
F2(sub, a - b)
F2(mul, a *b)
F2(div, a / b)
F2(pow, vmath_pow(a, b))
/* NaN if either is NaN. */
F2(maximum, a >= b || a != a ? a : b)
F2(minimum, a <= b || a != a ? a : b)

/* ---- integers; sums and products wrap ---- */

#define INTEGERS(s, T, U)                                                                   \
    MAP1(copy_##s, T, T, x)                                                                 \
    MAP1(neg_##s, T, T, (U)0 - (U)x)                                                        \
    MAP1(abs_##s, T, T, x > 0 ? (U)x : (U)0 - (U)x)                                         \
    MAP1(sign_##s, T, T, x > 0 ? 1 : x == 0 ? 0 : -1)                                       \
    MAP2(add_##s, T, T, (U)a + (U)b)                                                        \
    MAP2(sub_##s, T, T, (U)a - (U)b)                                                        \
    MAP2(mul_##s, T, T, (U)a *(U)b)                                                         \
    MAP2(maximum_##s, T, T, a > b ? a : b)                                                  \
    MAP2(minimum_##s, T, T, a < b ? a : b)

INTEGERS(i32, int32_t, uint32_t)
INTEGERS(i64, int64_t, uint64_t)
INTEGERS(u8, uint8_t, uint8_t)

/* ---- every type ---- */

#define COMPARE(s, T)                                                                       \
    MAP2(equal_##s, uint8_t, T, a == b)                                                     \
    MAP2(not_equal_##s, uint8_t, T, a != b)                                                 \
    MAP2(less_##s, uint8_t, T, a < b)                                                       \
    MAP2(less_equal_##s, uint8_t, T, a <= b)                                                \
    MAP2(greater_##s, uint8_t, T, a > b)                                                    \
    MAP2(greater_equal_##s, uint8_t, T, a >= b)                                             \
    WHERE(where_##s, T)

COMPARE(f32, float)
COMPARE(i32, int32_t)
COMPARE(i64, int64_t)
COMPARE(u8, uint8_t)

MAP1(not_u8, uint8_t, uint8_t, !x)
MAP2(and_u8, uint8_t, uint8_t, (a != 0) & (b != 0))
MAP2(or_u8, uint8_t, uint8_t, (a != 0) | (b != 0))

#define ONE(f) {f, NULL, NULL}
#define TWO(f) {f, f##_last, f##_before}
#define F1ROW(name) {ONE(name##_f32)}
#define N1ROW(name) {ONE(name##_f32), ONE(name##_i32), ONE(name##_i64), ONE(name##_u8)}
#define F2ROW(name) {TWO(name##_f32)}
#define N2ROW(name) {TWO(name##_f32), TWO(name##_i32), TWO(name##_i64), TWO(name##_u8)}

static const struct tile_row rows[] = {
    {"neg", N1ROW(neg), {0}},
    {"exp", F1ROW(exp), {0}},
    {"log", F1ROW(log), {0}},
    {"sqrt", F1ROW(sqrt), {0}},
    {"rsqrt", F1ROW(rsqrt), {0}},
    {"abs", N1ROW(abs), {0}},
    {"sign", N1ROW(sign), {0}},
    {"erf", F1ROW(erf), {0}},
    {"clip", F1ROW(clip), {"low", "high"}},
    {"relu", F1ROW(relu), {0}},
    {"relu6", F1ROW(relu6), {0}},
    {"leaky_relu", F1ROW(leaky_relu), {"slope", NULL}},
    {"gelu", F1ROW(gelu), {0}},
    {"gelu_tanh", F1ROW(gelu_tanh), {0}},
    {"silu", F1ROW(silu), {0}},
    {"sigmoid", F1ROW(sigmoid), {0}},
    {"tanh", F1ROW(tanh), {0}},
    {"softplus", F1ROW(softplus), {0}},
    {"add", N2ROW(add), {0}},
    {"sub", N2ROW(sub), {0}},
    {"mul", N2ROW(mul), {0}},
    {"div", F2ROW(div), {0}},
    {"pow", F2ROW(pow), {0}},
    {"maximum", N2ROW(maximum), {0}},
    {"minimum", N2ROW(minimum), {0}},
    {"equal", N2ROW(equal), {0}},
    {"not_equal", N2ROW(not_equal), {0}},
    {"less", N2ROW(less), {0}},
    {"less_equal", N2ROW(less_equal), {0}},
    {"greater", N2ROW(greater), {0}},
    {"greater_equal", N2ROW(greater_equal), {0}},
    {"where", N2ROW(where), {0}},
    {"not", {{NULL}, {NULL}, {NULL}, ONE(not_u8)}, {0}},
    {"and", {{NULL}, {NULL}, {NULL}, TWO(and_u8)}, {0}},
    {"or", {{NULL}, {NULL}, {NULL}, TWO(or_u8)}, {0}},
};

MAP1(divide, float, float, x / p)

/* ---- cast ---- */

/* As in base/convert.h: towards integers the fraction is cut off, values out of range saturate, NaN
 * becomes 0. */
#define SATURATE_FLOAT(T, low, high)                                                        \
    (x >= (float)(high) ? (high) : x > (float)(low) ? (T)x : x == x ? (low) : (T)0)
#define SATURATE(T, low, high) (x < (low) ? (low) : x > (high) ? (high) : (T)x)

#define CAST_EASY(s, T)                                                                     \
    MAP1(s##_to_f32, float, T, x)                                                           \
    MAP1(s##_to_i64, int64_t, T, x)                                                         \
    MAP1(s##_to_bool, uint8_t, T, x != 0)
CAST_EASY(i32, int32_t)
CAST_EASY(i64, int64_t)
CAST_EASY(u8, uint8_t)
MAP1(i32_to_i32, int32_t, int32_t, x)
MAP1(u8_to_i32, int32_t, uint8_t, x)
MAP1(i64_to_i32, int32_t, int64_t, SATURATE(int32_t, INT32_MIN, INT32_MAX))
MAP1(u8_to_u8, uint8_t, uint8_t, x)
MAP1(i32_to_u8, uint8_t, int32_t, SATURATE(uint8_t, 0, UINT8_MAX))
MAP1(i64_to_u8, uint8_t, int64_t, SATURATE(uint8_t, 0, UINT8_MAX))
MAP1(f32_to_i32, int32_t, float, SATURATE_FLOAT(int32_t, INT32_MIN, INT32_MAX))
MAP1(f32_to_i64, int64_t, float, SATURATE_FLOAT(int64_t, INT64_MIN, INT64_MAX))
MAP1(f32_to_u8, uint8_t, float, SATURATE_FLOAT(uint8_t, 0, UINT8_MAX))
MAP1(f32_to_bool, uint8_t, float, x != 0)

#define CASTS(s) {s##_to_f32, s##_to_i32, s##_to_i64, s##_to_u8, s##_to_bool}

/* ---- storage ---- */

static void widen_bf16(float *to, const void *from, size_t n) {
    EACH((int64_t)n, STORE(TRI_F32, to, LOAD(TRI_BF16, from, 0)));
}
static void narrow_bf16(void *to, const float *from, size_t n) {
    EACH((int64_t)n, STORE(TRI_BF16, to, LOAD(TRI_F32, from, 0)));
}
static void round_bf16(float *x, size_t n) {
    EACH((int64_t)n, {
        vec v = LOAD(TRI_F32, x, 0);
        STORE(TRI_F32, x, vec_of_bits(vec_round_bf16(v) & 0xffff0000u));
    });
}
static void widen_f16(float *to, const void *from, size_t n) {
    const uint16_t *x = from;
    INDEPENDENT for (size_t i = 0; i < n; i++) to[i] = convert_f16_to_f32(x[i]);
}
static void narrow_f16(void *to, const float *from, size_t n) {
    uint16_t *y = to;
    INDEPENDENT for (size_t i = 0; i < n; i++) y[i] = convert_f32_to_f16(from[i]);
}
static void round_f16(float *x, size_t n) {
    INDEPENDENT for (size_t i = 0; i < n; i++) x[i] = convert_f16_to_f32(convert_f32_to_f16(x[i]));
}

const struct tile_set FOR_ISA(tile_set) = {
    .rows = rows,
    .n_rows = (int)COUNT(rows),
    .cast = {{copy_f32, f32_to_i32, f32_to_i64, f32_to_u8, f32_to_bool},
             CASTS(i32),
             CASTS(i64),
             CASTS(u8)},
    .copy = {copy_f32, copy_i32, copy_i64, copy_u8},
    .divide = divide,
    .storage = {{widen_bf16, narrow_bf16, round_bf16}, {widen_f16, narrow_f16, round_f16}},
};
