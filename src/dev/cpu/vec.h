/* SPDX-License-Identifier: Apache-2.0
 * Vectors of VEC floats, the width of this compilation's instruction set (isa.h). Kernels process
 * rows of elements of any floating-point type, as floats. A sum over a row has SUM_WIDTH partial
 * sums, whatever VEC is: element i goes to partial sum i % SUM_WIDTH, missing elements are zeros,
 * and the partial sums are added by halves. */
#ifndef DEV_CPU_VEC_H
#define DEV_CPU_VEC_H

#if defined __x86_64__
#include <immintrin.h>
#elif defined CPU_NEON
#include <arm_neon.h>
#endif

#include "base/convert.h"
#include "base/vmath.h"
#include "dev/cpu/cpu.h"

#if defined __AVX512F__ && defined __AVX512BW__
#define VEC 16
#elif defined __AVX2__
#define VEC 8
#else
#define VEC 4
#endif
#if VEC == 16 || defined CPU_NEON
#define VEC_REGISTERS 32
#else
#define VEC_REGISTERS 16
#endif
#define SUM_WIDTH 32
#define SUM_VECS (SUM_WIDTH / VEC) /* vectors that hold the partial sums */

typedef float vec __attribute__((vector_size(4 * VEC)));
typedef uint32_t vec_u32 __attribute__((vector_size(4 * VEC)));
typedef int32_t vec_i32 __attribute__((vector_size(4 * VEC)));
typedef uint16_t vec_u16 __attribute__((vector_size(2 * VEC)));
/* The same at any alignment. */
typedef float vec_at __attribute__((vector_size(4 * VEC), aligned(4), may_alias));
typedef uint32_t vec_u32_at __attribute__((vector_size(4 * VEC), aligned(4), may_alias));
typedef uint16_t vec_u16_at __attribute__((vector_size(2 * VEC), aligned(2), may_alias));

/* For code that is used in many places and seldom run, or slow anyway. */
#define APART static __attribute__((noinline, unused))

/* Before a loop that must be unrolled, so that arrays indexed by it are registers. UNROLL_4: four
 * rounds at a time; clang decides itself, as its sanitizers would take minutes to compile them. */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#define UNROLL_4
#else
#define UNROLL _Pragma("GCC unroll 16")
#define UNROLL_4 _Pragma("GCC unroll 4")
#endif

/* ---- primitives for vmath_body.h ---- */

INLINE vec vec_set(float x) { return x - (vec){0}; }
INLINE vec_u32 vec_bits(vec x) { return (vec_u32)x; }
INLINE vec vec_of_bits(vec_u32 x) { return (vec)x; }

#if VEC == 16
typedef __mmask16 vec_mask;
INLINE vec vec_fma(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
INLINE vec_mask vec_less(vec a, vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
INLINE vec_mask vec_equal(vec a, vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
INLINE vec_mask vec_both(vec_mask a, vec_mask b) { return (vec_mask)(a & b); }
INLINE vec_mask vec_either(vec_mask a, vec_mask b) { return (vec_mask)(a | b); }
INLINE vec_mask vec_not(vec_mask a) { return (vec_mask)~a; }
INLINE vec vec_select(vec_mask m, vec yes, vec no) { return _mm512_mask_blend_ps(m, no, yes); }
INLINE vec vec_at_least(vec x, vec low) { return _mm512_max_ps(low, x); }
INLINE vec vec_at_most(vec x, vec high) { return _mm512_min_ps(high, x); }
INLINE vec vec_scale(vec p, vec k) { return _mm512_scalef_ps(p, k); }
#else
typedef vec_u32 vec_mask;
INLINE vec_mask vec_less(vec a, vec b) { return (vec_mask)(a < b); }
INLINE vec_mask vec_equal(vec a, vec b) { return (vec_mask)(a == b); }
INLINE vec_mask vec_both(vec_mask a, vec_mask b) { return a & b; }
INLINE vec_mask vec_either(vec_mask a, vec_mask b) { return a | b; }
INLINE vec_mask vec_not(vec_mask a) { return ~a; }
#if VEC == 8
INLINE vec vec_fma(vec a, vec b, vec c) { return _mm256_fmadd_ps(a, b, c); }
INLINE vec vec_select(vec_mask m, vec yes, vec no) { return _mm256_blendv_ps(no, yes, (vec)m); }
INLINE vec vec_at_least(vec x, vec low) { return _mm256_max_ps(low, x); }
INLINE vec vec_at_most(vec x, vec high) { return _mm256_min_ps(high, x); }
#else
#if defined CPU_NEON
INLINE vec vec_fma(vec a, vec b, vec c) { return vfmaq_f32(c, a, b); }
#elif defined __SSE2__
typedef int64_t vec_i64 __attribute__((vector_size(16)));
INLINE __m128d vec_fma_half(__m128d a, __m128d b, __m128d c) { /* as vmath_fma */
    __m128d p = a * b, s = p + c, t = s - p, lost = (p - (s - t)) + (c - t);
    vec_i64 bits = (vec_i64)s, even = (bits & 1) - 1, down = (lost < 0), up = (lost > 0);
    vec_i64 away = down ^ (s < 0);
    return (__m128d)(bits + ((away | 1) & (down | up) & even));
}
APART vec vec_fma(vec a, vec b, vec c) {
    __m128d low = vec_fma_half(_mm_cvtps_pd(a), _mm_cvtps_pd(b), _mm_cvtps_pd(c));
    __m128d high = vec_fma_half(_mm_cvtps_pd(_mm_movehl_ps(a, a)),
                                _mm_cvtps_pd(_mm_movehl_ps(b, b)),
                                _mm_cvtps_pd(_mm_movehl_ps(c, c)));
    return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}
#else
INLINE vec vec_fma(vec a, vec b, vec c) {
    for (int i = 0; i < VEC; i++) c[i] = vmath_fma(a[i], b[i], c[i]);
    return c;
}
#endif
INLINE vec vec_select(vec_mask m, vec yes, vec no) {
    return (vec)(((vec_u32)yes & m) | ((vec_u32)no & ~m));
}
/* Not an instruction for the maximum: NEON's would make +0 of -0 and 0. */
INLINE vec vec_at_least(vec x, vec low) { return vec_select(vec_less(x, low), low, x); }
INLINE vec vec_at_most(vec x, vec high) { return vec_select(vec_less(high, x), high, x); }
#endif
INLINE vec vec_scale(vec p, vec k) { /* as vmath_scale */
    vec_i32 n = (vec_i32)(vec_bits(k + VMATH_ROUNDER) - vmath_bits(VMATH_ROUNDER)), half = n >> 1;
    return p * (vec)((vec_u32)(half + 127) << 23) * (vec)((vec_u32)(n - half + 127) << 23);
}
#endif

#define VF vec
#define VU vec_u32
#define VM vec_mask
#define F(name) vec_##name
#include "base/vmath_body.h"
#undef VF
#undef VU
#undef VM
#undef F

/* ---- memory ---- */

#if VEC == 16
INLINE vec_u32 vec_widen(vec_u16 x) { return (vec_u32)_mm512_cvtepu16_epi32((__m256i)x); }
INLINE vec_u16 vec_narrow(vec_u32 x) { return (vec_u16)_mm512_cvtepi32_epi16((__m512i)x); }
INLINE vec vec_of_f16(vec_u16 x) { return _mm512_cvtph_ps((__m256i)x); }
INLINE vec_u16 vec_to_f16(vec x) {
    return (vec_u16)_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#else
#if VEC == 8
INLINE vec_u32 vec_widen(vec_u16 x) { return (vec_u32)_mm256_cvtepu16_epi32((__m128i)x); }
#else
INLINE vec_u32 vec_widen(vec_u16 x) { return __builtin_convertvector(x, vec_u32); }
#endif
INLINE vec_u16 vec_narrow(vec_u32 x) { return __builtin_convertvector(x, vec_u16); }
#ifdef CPU_NEON
INLINE vec vec_of_f16(vec_u16 x) { return vcvt_f32_f16((float16x4_t)x); }
INLINE vec_u16 vec_to_f16(vec x) { return (vec_u16)vcvt_f16_f32(x); }
#else
APART vec vec_of_f16(vec_u16 x) {
    vec y = {0};
    for (int k = 0; k < VEC; k++) y[k] = convert_f16_to_f32(x[k]);
    return y;
}
APART vec_u16 vec_to_f16(vec x) {
    vec_u16 y = {0};
    for (int k = 0; k < VEC; k++) y[k] = convert_f32_to_f16(x[k]);
    return y;
}
#endif
#endif

INLINE vec vec_of_bf16(vec_u16 x) { return (vec)(vec_widen(x) << 16); }

/* Rounds to bf16 as convert_f32_to_bf16 does, into the upper half of each element; the lower half
 * is undefined. */
#if VEC == 16
INLINE vec_u32 vec_round_bf16(vec v) {
    const __m512i x = (__m512i)v, one = _mm512_set1_epi32(1);
    const __mmask16 odd = _mm512_test_epi32_mask(x, _mm512_set1_epi32(0x10000));
    __m512i y = _mm512_add_epi32(x, _mm512_set1_epi32(0x7fff));
    y = _mm512_mask_add_epi32(y, odd, y, one);
    return (vec_u32)_mm512_mask_or_epi32(y, vec_not(vec_equal(v, v)), x,
                                         _mm512_set1_epi32(0x400000));
}
#else
INLINE vec_u32 vec_round_bf16(vec v) {
    vec_u32 x = (vec_u32)v, rounded = x + 0x7fffu + (x >> 16 & 1u);
    return (vec_u32)vec_select(vec_equal(v, v), (vec)rounded, (vec)(x | 0x400000u));
}
#endif
INLINE vec_u16 vec_to_bf16(vec v) { return vec_narrow(vec_round_bf16(v) >> 16); }

INLINE vec vec_load(tri_type t, const void *from, int64_t i) {
    if (t == TRI_F32) return *(const vec_at *)((const float *)from + i);
    vec_u16 x = *(const vec_u16_at *)((const uint16_t *)from + i);
    return t == TRI_BF16 ? vec_of_bf16(x) : vec_of_f16(x);
}

INLINE void vec_store(tri_type t, void *to, int64_t i, vec v) {
    if (t == TRI_F32)
        *(vec_at *)((float *)to + i) = v;
    else
        *(vec_u16_at *)((uint16_t *)to + i) = t == TRI_BF16 ? vec_to_bf16(v) : vec_to_f16(v);
}

/* Loads 2 VEC elements of bf16 without moving halves across the vector: elements at even places go
 * to v[0] and those at odd places to v[1] (or vice versa). Other types: the first VEC and the last
 * VEC. */
INLINE void vec_load_two(tri_type t, const void *from, int64_t i, vec v[2]) {
    if (t == TRI_BF16) {
        vec_u32 x = *(const vec_u32_at *)(const void *)((const uint16_t *)from + i);
        v[0] = (vec)(x << 16);
        v[1] = (vec)(x & 0xffff0000u);
    } else {
        v[0] = vec_load(t, from, i);
        v[1] = vec_load(t, from, i + VEC);
    }
}

INLINE void vec_store_two(tri_type t, void *to, int64_t i, const vec v[2]) {
    if (t == TRI_BF16) {
        vec_u32 low = vec_round_bf16(v[0]), high = vec_round_bf16(v[1]);
        *(vec_u32_at *)(void *)((uint16_t *)to + i) = low >> 16 | (high & 0xffff0000u);
    } else {
        vec_store(t, to, i, v[0]);
        vec_store(t, to, i + VEC, v[1]);
    }
}

/* The place of element i of n in an array of floats that matches the vectors of vec_load_two and a
 * single rest. */
INLINE int64_t vec_place(tri_type t, int64_t i, int64_t n) {
    int64_t in = i % (2 * VEC);
    if (t != TRI_BF16 || i >= n / (2 * VEC) * (2 * VEC)) return i;
    bool odd = in % 2 != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    return i - in + (odd ? VEC : 0) + in / 2;
}

/* The first n elements, n < VEC, of 2 or 4 bytes. */
#if VEC == 16
INLINE vec vec_take(const float *from, int64_t n) {
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), from);
}
INLINE vec_u16 vec_take_u16(const uint16_t *from, int64_t n) {
    return (vec_u16)_mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), from);
}
INLINE void vec_put(float *to, int64_t n, vec v) {
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << n) - 1), v);
}
INLINE void vec_put_u16(uint16_t *to, int64_t n, vec_u16 v) {
    _mm256_mask_storeu_epi16(to, (__mmask16)((1u << n) - 1), (__m256i)v);
}
#else
#if VEC == 8
static const int32_t vec_ones[] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
#define VEC_FIRST(n) _mm256_loadu_si256((const __m256i_u *)(vec_ones + 8 - (n)))
INLINE vec vec_take(const float *from, int64_t n) { return _mm256_maskload_ps(from, VEC_FIRST(n)); }
/* A masked store takes AMD processors 12 cycles or more; what reads its floats next has to wait. */
INLINE void vec_put(float *to, int64_t n, vec v) {
    __m128 rest = _mm256_castps256_ps128((__m256)v);
    if (n & 4) {
        _mm_storeu_ps(to, rest);
        to += 4;
        rest = _mm256_extractf128_ps((__m256)v, 1);
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)(void *)to, rest);
        to += 2;
        rest = _mm_movehl_ps(rest, rest);
    }
    if (n & 1) _mm_store_ss(to, rest);
}
#else
#ifdef CPU_NEON
#define VEC_PART INLINE /* a call would not keep the sums of a product in registers */
#else
#define VEC_PART APART
#endif
VEC_PART vec vec_take(const float *from, int64_t n) {
    vec v = {0};
    UNROLL for (int k = 0; k < VEC - 1; k++)
        if (k < n) v[k] = from[k];
    return v;
}
VEC_PART void vec_put(float *to, int64_t n, vec v) {
    UNROLL for (int k = 0; k < VEC - 1; k++)
        if (k < n) to[k] = v[k];
}
#endif
APART vec_u16 vec_take_u16(const uint16_t *from, int64_t n) {
    vec_u16 v = {0};
    for (int k = 0; k < VEC; k++) v[k] = k < n ? from[k] : 0;
    return v;
}
APART void vec_put_u16(uint16_t *to, int64_t n, vec_u16 v) {
    for (int k = 0; k < VEC && k < n; k++) to[k] = v[k];
}
#endif

/* Elements i to i + n, n < VEC; the missing ones are `rest`. */
INLINE vec vec_load_some(tri_type t, const void *from, int64_t i, int64_t n, float rest) {
    static const float place[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    vec x = t == TRI_F32    ? vec_take((const float *)from + i, n)
            : t == TRI_BF16 ? vec_of_bf16(vec_take_u16((const uint16_t *)from + i, n))
                            : vec_of_f16(vec_take_u16((const uint16_t *)from + i, n));
    if (rest == 0) return x;
    return vec_select(vec_less(*(const vec_at *)place, vec_set((float)n)), x, vec_set(rest));
}

INLINE void vec_store_some(tri_type t, void *to, int64_t i, int64_t n, vec v) {
    if (t == TRI_F32)
        vec_put((float *)to + i, n, v);
    else
        vec_put_u16((uint16_t *)to + i, n, t == TRI_BF16 ? vec_to_bf16(v) : vec_to_f16(v));
}

/* ---- rows ---- */

/* Runs code for a row of n elements, VEC at a time. It sees `at`, the first of them; `some`, their
 * number, which is VEC except at the end; and `k`, the vector of partial sums that they go to. */
#define ROW(n, ...)                                                                            \
    do {                                                                                       \
        int64_t row = 0;                                                                       \
        for (const int64_t whole = (n) / SUM_WIDTH * SUM_WIDTH; row < whole; row += SUM_WIDTH) \
            for (int k = 0; k < SUM_VECS; k++) {                                               \
                const int64_t at = row + k * VEC, some = VEC;                                  \
                __VA_ARGS__;                                                                   \
            }                                                                                  \
        for (int k = 0; k < SUM_VECS && row + k * VEC < (n); k++) {                            \
            const int64_t at = row + k * VEC, some = (n) - at < VEC ? (n) - at : VEC;          \
            __VA_ARGS__;                                                                       \
        }                                                                                      \
    } while (0)

/* The same without sums: no k, and so less code. */
#define EACH(n, ...)                                                                        \
    do {                                                                                    \
        int64_t at = 0;                                                                     \
        for (; at + VEC <= (n); at += VEC) {                                                \
            const int64_t some = VEC;                                                       \
            __VA_ARGS__;                                                                    \
        }                                                                                   \
        if (at < (n)) {                                                                     \
            const int64_t some = (n) - at;                                                  \
            __VA_ARGS__;                                                                    \
        }                                                                                   \
    } while (0)

/* Inside them: elements of a row, `rest` for missing ones. */
#define LOAD(t, p, rest) \
    (some == VEC ? vec_load(t, p, at) : vec_load_some(t, p, at, some, rest))
#define STORE(t, p, v) \
    (some == VEC ? vec_store(t, p, at, v) : vec_store_some(t, p, at, some, v))

/* ---- combining partial sums ---- */

/* Brings element i next to element i + h: the rest of a sum after all halves are added. */
#if VEC == 16
#define SWAP_8(v)                                                                              \
    ((vec){v[8], v[9], v[10], v[11], v[12], v[13], v[14], v[15], v[0], v[1], v[2], v[3], v[4], \
           v[5], v[6], v[7]})
#define SWAP_4(v)                                                                            \
    ((vec){v[4], v[5], v[6], v[7], v[0], v[1], v[2], v[3], v[12], v[13], v[14], v[15], v[8], \
           v[9], v[10], v[11]})
#define SWAP_2(v)                                                                           \
    ((vec){v[2], v[3], v[0], v[1], v[6], v[7], v[4], v[5], v[10], v[11], v[8], v[9], v[14], \
           v[15], v[12], v[13]})
#define SWAP_1(v)                                                                           \
    ((vec){v[1], v[0], v[3], v[2], v[5], v[4], v[7], v[6], v[9], v[8], v[11], v[10], v[13], \
           v[12], v[15], v[14]})
#define FOLD(join, v) \
    (v = join(v, SWAP_8(v)), v = join(v, SWAP_4(v)), v = join(v, SWAP_2(v)), join(v, SWAP_1(v)))
#elif VEC == 8
#define SWAP_4(v) ((vec){v[4], v[5], v[6], v[7], v[0], v[1], v[2], v[3]})
#define SWAP_2(v) ((vec){v[2], v[3], v[0], v[1], v[6], v[7], v[4], v[5]})
#define SWAP_1(v) ((vec){v[1], v[0], v[3], v[2], v[5], v[4], v[7], v[6]})
#define FOLD(join, v) (v = join(v, SWAP_4(v)), v = join(v, SWAP_2(v)), join(v, SWAP_1(v)))
#else
#define SWAP_2(v) ((vec){v[2], v[3], v[0], v[1]})
#define SWAP_1(v) ((vec){v[1], v[0], v[3], v[2]})
#define FOLD(join, v) (v = join(v, SWAP_2(v)), join(v, SWAP_1(v)))
#endif

INLINE vec vec_add(vec a, vec b) { return a + b; }
INLINE vec vec_square(vec x) { return x * x; }
/* b where a is NaN. */
INLINE vec vec_max(vec a, vec b) { return vec_at_least(b, a); }

/* Adds the partial sums. */
INLINE float vec_total(const vec part[SUM_VECS]) {
    vec v[SUM_VECS];
    for (int k = 0; k < SUM_VECS; k++) v[k] = part[k];
    for (int h = SUM_VECS / 2; h; h /= 2)
        for (int k = 0; k < h; k++) v[k] += v[k + h];
    v[0] = FOLD(vec_add, v[0]);
    return v[0][0];
}
INLINE float vec_largest(const vec part[SUM_VECS]) {
    vec v[SUM_VECS];
    for (int k = 0; k < SUM_VECS; k++) v[k] = part[k];
    for (int h = SUM_VECS / 2; h; h /= 2)
        for (int k = 0; k < h; k++) v[k] = vec_max(v[k], v[k + h]);
    v[0] = FOLD(vec_max, v[0]);
    return v[0][0];
}

#endif
