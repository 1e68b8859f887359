/* SPDX-License-Identifier: Apache-2.0
 * Factors of products of bf16 (docs/arithmetic.md). The terms of a sum form groups of HALF_GROUP.
 * The even and the odd terms of a group are two chains; the steps of the first come first. A step
 * is a term as a float, or, with the instruction VDPBF16PS, two terms of a chain, of which it adds
 * the upper one first. Either takes 4 bytes. A chain that lacks terms has zeros, one at least;
 * further ones would change no bit. For tiles a step is a pair of terms as they lie, one of each
 * chain, and a group always has all steps. Subnormal operands and results count as zeros. */
#ifndef DEV_CPU_HALF_H
#define DEV_CPU_HALF_H

#include "dev/cpu/vec.h"

#ifdef CPU_TILES
#define HALF_TILES 1
#define HALF_STEP 2 /* terms of a step */
#else
#define HALF_TILES 0
#ifdef __AVX512BF16__
#define HALF_STEP 2
#else
#define HALF_STEP 1
#endif
#endif
#define HALF_GROUP 32
#define HALF_STEPS (HALF_GROUP / HALF_STEP) /* of a whole group */

/* Steps are written as bits, and read as floats or pairs. */
typedef uint32_t half_step_bits __attribute__((may_alias));

/* Steps of each chain of a group of n terms; for tiles half of its steps. */
INLINE int64_t half_chain(int64_t n) {
    if (HALF_TILES) return HALF_STEPS / 2;
    return least(HALF_STEPS / 2, ((n + 1) / 2 + HALF_STEP) / HALF_STEP);
}
/* Steps of n terms. */
INLINE int64_t half_steps(int64_t n) {
    const int64_t rest = n % HALF_GROUP;
    return n / HALF_GROUP * HALF_STEPS + (rest ? 2 * half_chain(rest) : 0);
}

/* Steps of k terms of f32 or bf16. */
INLINE int64_t k_steps(bool half, int64_t k) { return half ? half_steps(k) : k; }

/* Element i of a tensor of f32 or bf16. */
INLINE const void *element_at(bool half, const void *tensor, int64_t i) {
    return (const char *)tensor + i * (half ? 2 : 4);
}

/* 16 terms that lie together, the first or second half of a group: its steps, of which those of a
 * chain begin `chain` after those of the other. */
INLINE void half_16(const uint16_t *from, int second, int64_t chain, float *group) {
    float *even = group + second * HALF_STEPS / 4, *odd = even + chain;
#if HALF_TILES
    (void)even, (void)odd;
    memcpy(group + second * HALF_STEPS / 2, from, HALF_GROUP);
#elif HALF_STEP == 2
    typedef uint16_t terms __attribute__((vector_size(32)));
    terms x;
    memcpy(&x, from, sizeof x);
    x = __builtin_shufflevector(x, x, 2, 0, 6, 4, 10, 8, 14, 12, 3, 1, 7, 5, 11, 9, 15, 13);
    memcpy(even, &x, sizeof x / 2);
    memcpy(odd, (const char *)&x + sizeof x / 2, sizeof x / 2);
#else
    typedef uint32_t pairs __attribute__((vector_size(32)));
    pairs x, y;
    memcpy(&x, from, sizeof x);
    y = x & 0xffff0000;
    x <<= 16;
    memcpy(even, &x, sizeof x);
    memcpy(odd, &y, sizeof y);
#endif
}

/* A group of n terms that lie together, to half_steps(n) steps that do. The rest of HALF_STEPS is
 * overwritten. */
INLINE void half_group(const uint16_t *from, int64_t n, float *to) {
    const int64_t chain = half_chain(n);
    uint16_t all[HALF_GROUP] = {0};
    if (n < HALF_GROUP) {
        int64_t at = 0;
        UNROLL for (int some = HALF_GROUP / 2; some; some /= 2) {
            if (!(n & some)) continue;
            memcpy(all + at, from + at, (size_t)some * sizeof *all);
            at += some;
        }
        from = all;
    }
    float odd[HALF_STEPS / 4];
    half_16(from, 0, chain, to);
    memcpy(odd, to + chain, sizeof odd); /* which the second half of a short chain overwrites */
    half_16(from + HALF_GROUP / 2, 1, chain, to);
    if (!HALF_TILES) memcpy(to + chain, odd, sizeof odd);
}

/* n terms that lie together, group by group. */
INLINE void half_along(const uint16_t *from, int64_t n, float *to) {
    for (; n >= HALF_GROUP; n -= HALF_GROUP, from += HALF_GROUP, to += HALF_STEPS)
        half_group(from, HALF_GROUP, to);
    if (n) half_group(from, n, to);
}

/* A step of `width` elements: the upper term, and the lower one. Null: it is missing. */
INLINE void half_step(const uint16_t *upper, const uint16_t *lower, int64_t width, float *to) {
    half_step_bits *bits = (half_step_bits *)(void *)to;
    int64_t i = 0;
    for (; i + VEC <= width; i += VEC) {
        vec_u32 v = {0};
        if (upper) v = vec_widen(*(const vec_u16_at *)(upper + i)) << 16;
        if (lower) v |= vec_widen(*(const vec_u16_at *)(lower + i));
        *(vec_u32_at *)(bits + i) = v;
    }
#if VEC == 16
    if (i < width) {
        vec_u32 v = {0};
        if (upper) v = vec_widen(vec_take_u16(upper + i, width - i)) << 16;
        if (lower) v |= vec_widen(vec_take_u16(lower + i, width - i));
        vec_put((float *)(void *)(bits + i), width - i, (vec)v);
    }
#else
    for (; i < width; i++) bits[i] = (uint32_t)upper[i] << 16;
#endif
}

/* A group of n terms of `width` elements each, which lie together, to half_steps(n) steps, `step`
 * floats apart. */
INLINE void half_across(const uint16_t *const *term, int64_t n, int64_t width, float *to,
                        int64_t step) {
    const int64_t chain = half_chain(n);
    for (int64_t i = 0; i < 2 * chain; i++, to += step) {
        const bool odd = i >= chain;
        const int64_t k = HALF_TILES ? 2 * i : 2 * HALF_STEP * (i - odd * chain) + odd;
        const int64_t with = HALF_TILES ? k + 1 : k + 2;
        const uint16_t *first = k < n ? term[k] : NULL;
        const uint16_t *second = HALF_STEP == 2 && with < n ? term[with] : NULL;
        if (!first)
            memset(to, 0, (size_t)width * sizeof *to);
        else if (HALF_TILES)
            half_step(second, first, width, to);
        else
            half_step(first, second, width, to);
    }
}

/* The same of n / 2 pairs of terms, the first of a pair below; width is a multiple of VEC, and the
 * steps lie together. */
INLINE void half_pairs(const float *pair, int64_t n, int64_t width, float *to) {
    const int64_t chain = half_chain(n), pairs = n / 2;
    if (HALF_TILES) {
        memcpy(to, pair, (size_t)(pairs * width) * sizeof *to);
        memset(to + pairs * width, 0, (size_t)((HALF_STEPS - pairs) * width) * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < chain; i++)
        for (int64_t j = 0; j < width; j += VEC) {
            const float *from = pair + HALF_STEP * i * width + j;
            vec_u32 x = {0}, even, odd;
            if (HALF_STEP * i < pairs) x = *(const vec_u32_at *)(const void *)from;
            even = x << 16, odd = x & 0xffff0000;
#if HALF_STEP == 2
            if (2 * i + 1 < pairs) {
                x = *(const vec_u32_at *)(const void *)(from + width);
                even |= x & 0xffff, odd |= x >> 16;
            }
#endif
            *(vec_u32_at *)(void *)(to + i * width + j) = even;
            *(vec_u32_at *)(void *)(to + (chain + i) * width + j) = odd;
        }
}

#if HALF_TILES
/* A step of 16 elements. */
INLINE __m512i half_pair(const uint16_t *lower, const uint16_t *upper) {
    static const uint16_t pairs[32] __attribute__((aligned(64))) = {
        0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i x = _mm512_castsi256_si512(_mm256_loadu_si256((const void *)lower));
    const __m512i both = _mm512_inserti64x4(x, _mm256_loadu_si256((const void *)upper), 1);
    return _mm512_permutexvar_epi16(_mm512_load_si512(pairs), both);
}

/* Transposes 16 rows of 16 words, which are `row` bytes apart. */
INLINE void half_turn(const void *from, int64_t row, float *to) {
    UNROLL for (int quarter = 0; quarter < 4; quarter++) {
        const char *at = (const char *)from + 16 * quarter;
        __m512i x[4], y[4];
        UNROLL for (int i = 0; i < 4; i++) { /* rows i, i + 4, i + 8, i + 12 side by side */
            x[i] = _mm512_castsi128_si512(_mm_loadu_si128((const void *)(at + i * row)));
            x[i] = _mm512_inserti32x4(x[i], _mm_loadu_si128((const void *)(at + (i + 4) * row)), 1);
            x[i] = _mm512_inserti32x4(x[i], _mm_loadu_si128((const void *)(at + (i + 8) * row)), 2);
            x[i] =
                _mm512_inserti32x4(x[i], _mm_loadu_si128((const void *)(at + (i + 12) * row)), 3);
        }
        y[0] = _mm512_unpacklo_epi32(x[0], x[1]);
        y[1] = _mm512_unpackhi_epi32(x[0], x[1]);
        y[2] = _mm512_unpacklo_epi32(x[2], x[3]);
        y[3] = _mm512_unpackhi_epi32(x[2], x[3]);
        _mm512_storeu_si512(to, _mm512_unpacklo_epi64(y[0], y[2]));
        _mm512_storeu_si512(to + 16, _mm512_unpackhi_epi64(y[0], y[2]));
        _mm512_storeu_si512(to + 32, _mm512_unpacklo_epi64(y[1], y[3]));
        _mm512_storeu_si512(to + 48, _mm512_unpackhi_epi64(y[1], y[3]));
        to += 64;
    }
}
#endif

/* Turns flushing of subnormals on; half_restore takes what it returned. */
INLINE uint64_t half_flush(void) {
#ifdef __x86_64__
    const uint32_t mode = _mm_getcsr();
    _mm_setcsr(mode | 0x8040); /* results and operands */
    return mode;
#elif defined __aarch64__
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("msr fpcr, %0" : : "r"(mode | 1u << 24));
    return mode;
#else
    return 0;
#endif
}
INLINE void half_restore(uint64_t mode) {
#ifdef __x86_64__
    _mm_setcsr((uint32_t)mode);
#elif defined __aarch64__
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
#else
    (void)mode;
#endif
}

#endif
