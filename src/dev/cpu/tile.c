/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/cpu/tile.h"

#include <math.h>

#include "base/convert.h"
#include "base/vmath.h"

/* A function of one, two or three runs of T to a run of R. The expression sees x (a, b; c, a, b)
 * and the attributes p and q. */
#define MAP1(name, R, T, expr)                                                              \
    CLONES static void name(void *to, const void *const *in, const float *par, size_t n) {  \
        R *out = to;                                                                        \
        const T *xs = in[0];                                                                \
        const float p = par[0], q = par[1];                                                 \
        (void)p, (void)q;                                                                   \
        INDEPENDENT for (size_t i = 0; i < n; i++) {                                        \
            T x = xs[i];                                                                    \
            out[i] = (R)(expr);                                                             \
        }                                                                                   \
    }
#define MAP2(name, R, T, expr)                                                              \
    CLONES static void name(void *to, const void *const *in, const float *par, size_t n) {  \
        R *out = to;                                                                        \
        const T *as = in[0], *bs = in[1];                                                   \
        (void)par;                                                                          \
        INDEPENDENT for (size_t i = 0; i < n; i++) {                                        \
            T a = as[i], b = bs[i];                                                         \
            out[i] = (R)(expr);                                                             \
        }                                                                                   \
    }
#define WHERE(name, T)                                                                      \
    CLONES static void name(void *to, const void *const *in, const float *par, size_t n) {  \
        T *out = to;                                                                        \
        const uint8_t *c = in[0];                                                           \
        const T *as = in[1], *bs = in[2];                                                   \
        (void)par;                                                                          \
        INDEPENDENT for (size_t i = 0; i < n; i++) {                                        \
            T a = as[i], b = bs[i];                                                         \
            out[i] = c[i] ? a : b;                                                          \
        }                                                                                   \
    }

/* ---- float ---- */

#define F1(name, expr) MAP1(name##_f32, float, float, expr)
#define F2(name, expr) MAP2(name##_f32, float, float, expr)

F1(neg, -x)
F1(exp, vmath_exp(x))
F1(log, vmath_log(x))
F1(sqrt, sqrtf(x))
F1(rsqrt, 1.0f / sqrtf(x))
F1(abs, fabsf(x))
F1(sign, x > 0 ? 1.0f : x < 0 ? -1.0f : x) /* NaN stays NaN */
F1(erf, vmath_erf(x))
F1(clip, x < p ? p : x > q ? q : x)
F1(relu, x < 0 ? 0.0f : x)
F1(relu6, x < 0 ? 0.0f : x > 6 ? 6.0f : x)
F1(leaky_relu, x > 0 ? x : p * x)
F1(gelu, 0.5f * x * (1.0f + vmath_erf(x * 0.70710678118654752f)))
/* tanh u = 2 sigmoid(2u) - 1, so the approximation is x sigmoid(2u), u = sqrt(2/pi)(x + ...) */
F1(gelu_tanh, x * vmath_sigmoid(x * (1.5957691216057308f + 0.071354816272600144f * x * x)))
F1(silu, x * vmath_sigmoid(x))
F1(sigmoid, vmath_sigmoid(x))
F1(tanh, vmath_tanh(x))
F1(softplus, vmath_log1p_exp(x))
F1(copy, x)
F2(add, a + b)
F2(sub, a - b)
F2(mul, a *b)
F2(div, a / b)
F2(pow, vmath_pow(a, b))
/* Either being NaN gives NaN. */
F2(maximum, a >= b || a != a ? a : b)
F2(minimum, a <= b || a != a ? a : b)

/* ---- integers; sums and products wrap ---- */

#define INTEGERS(s, T, U)                                                                   \
    MAP1(copy_##s, T, T, x)                                                                 \
    MAP1(neg_##s, T, T, (U)0 - (U)x)                                                        \
    MAP1(abs_##s, T, T, x > 0 ? (U)x : (U)0 - (U)x)                                         \
    MAP1(sign_##s, T, T, x > 0 ? 1 : x == 0 ? 0 : -1)                                              \
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

#define F(name) {name##_f32}
#define N(name) {name##_f32, name##_i32, name##_i64, name##_u8}

/* One function for each type of the last input, in the order of enum tile_type. */
static const struct row {
    const char *op;
    tile_fn *fn[TILE_TYPES];
    const char *attribute[2];
} rows[] = {
    {"neg", N(neg), {0}},
    {"exp", F(exp), {0}},
    {"log", F(log), {0}},
    {"sqrt", F(sqrt), {0}},
    {"rsqrt", F(rsqrt), {0}},
    {"abs", N(abs), {0}},
    {"sign", N(sign), {0}},
    {"erf", F(erf), {0}},
    {"clip", F(clip), {"low", "high"}},
    {"relu", F(relu), {0}},
    {"relu6", F(relu6), {0}},
    {"leaky_relu", F(leaky_relu), {"slope", NULL}},
    {"gelu", F(gelu), {0}},
    {"gelu_tanh", F(gelu_tanh), {0}},
    {"silu", F(silu), {0}},
    {"sigmoid", F(sigmoid), {0}},
    {"tanh", F(tanh), {0}},
    {"softplus", F(softplus), {0}},
    {"add", N(add), {0}},
    {"sub", N(sub), {0}},
    {"mul", N(mul), {0}},
    {"div", F(div), {0}},
    {"pow", F(pow), {0}},
    {"maximum", N(maximum), {0}},
    {"minimum", N(minimum), {0}},
    {"equal", N(equal), {0}},
    {"not_equal", N(not_equal), {0}},
    {"less", N(less), {0}},
    {"less_equal", N(less_equal), {0}},
    {"greater", N(greater), {0}},
    {"greater_equal", N(greater_equal), {0}},
    {"where", N(where), {0}},
    {"not", {NULL, NULL, NULL, not_u8}, {0}},
    {"and", {NULL, NULL, NULL, and_u8}, {0}},
    {"or", {NULL, NULL, NULL, or_u8}, {0}},
};

MAP1(divide, float, float, x / p)
tile_fn *const tile_divide = divide;

/* ---- cast ---- */

/* As base/convert.h has it: towards integers the fraction is cut off, what does not fit becomes the
 * nearest that does, NaN becomes 0. */
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

enum { TO_BOOL = TILE_TYPES };
static tile_fn *const casts[TILE_TYPES][TILE_TYPES + 1] = {
    {copy_f32, f32_to_i32, f32_to_i64, f32_to_u8, f32_to_bool},
    CASTS(i32),
    CASTS(i64),
    CASTS(u8),
};

/* ---- looking up ---- */

enum tile_type tile_type(tri_type t) {
    static const enum tile_type types[] = {
        [TRI_F32] = TILE_F32, [TRI_BF16] = TILE_F32, [TRI_F16] = TILE_F32, [TRI_I32] = TILE_I32,
        [TRI_I64] = TILE_I64, [TRI_U8] = TILE_U8,    [TRI_BOOL] = TILE_U8,
    };
    return types[t];
}

static const struct row *row_of(const tri_node *n) {
    for (size_t i = 0; i < COUNT(rows); i++)
        if (node_is(n, rows[i].op)) return &rows[i];
    return NULL;
}

tile_fn *tile_copy(tri_type t) {
    static tile_fn *const copies[TILE_TYPES] = N(copy);
    return copies[tile_type(t)];
}

tile_fn *tile_find(const tri_node *n) {
    enum tile_type type = tile_type(cpu_in(n, n->n_in - 1)->type);
    if (node_is(n, "cast")) {
        tri_type to = cpu_out(n, 0)->type;
        return casts[type][to == TRI_BOOL ? TO_BOOL : (int)tile_type(to)];
    }
    const struct row *r = row_of(n);
    return r ? r->fn[type] : NULL;
}

void tile_params(const tri_node *n, float p[2]) {
    const struct row *r = row_of(n);
    for (int i = 0; i < 2; i++)
        p[i] = r && r->attribute[i] ? (float)tri_attr_float(n, r->attribute[i]) : 0;
}

/* ---- storage ---- */

#define WIDEN(name)                                                                         \
    CLONES static void widen_##name(float *to, const uint16_t *from, size_t n) {            \
        INDEPENDENT for (size_t i = 0; i < n; i++) to[i] = convert_##name##_to_f32(from[i]);\
    }                                                                                       \
    CLONES static void narrow_##name(uint16_t *to, const float *from, size_t n) {           \
        INDEPENDENT for (size_t i = 0; i < n; i++) to[i] = convert_f32_to_##name(from[i]);  \
    }
WIDEN(bf16)
WIDEN(f16)

void tile_widen(tri_type type, float *to, const void *from, size_t n) {
    (type == TRI_BF16 ? widen_bf16 : widen_f16)(to, from, n);
}

void tile_narrow(tri_type type, void *to, const float *from, size_t n) {
    (type == TRI_BF16 ? narrow_bf16 : narrow_f16)(to, from, n);
}
