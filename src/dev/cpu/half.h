/* SPDX-License-Identifier: Apache-2.0
 * Factors of products of bf16 (docs/arithmetic.md). The terms of a sum form groups of HALF_GROUP.
 * The even and the odd terms of a group are two chains; the steps of the first come first. A step
 * is a term as a float, or, with the instruction VDPBF16PS, two terms of a chain, of which it adds
 * the upper one first. Either takes 4 bytes. A chain that lacks terms has zeros, one at least;
 * further ones would change no bit. Subnormal operands and results count as zeros. */
#ifndef DEV_CPU_HALF_H
#define DEV_CPU_HALF_H

#include "dev/cpu/vec.h"

#ifdef __AVX512BF16__
#define HALF_STEP 2 /* terms of a step */
#else
#define HALF_STEP 1
#endif
#define HALF_GROUP 32
#define HALF_STEPS (HALF_GROUP / HALF_STEP) /* of a whole group */

/* Steps are written as bits, and read as floats or pairs. */
typedef uint32_t half_step_bits __attribute__((may_alias));

/* Steps of each chain of a group of n terms. */
INLINE int64_t half_chain(int64_t n) {
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

/* 16 terms that lie together: steps of the even and of the odd ones. */
INLINE void half_16(const uint16_t *from, float *even, float *odd) {
#if HALF_STEP == 2
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
    const int64_t chain = half_chain(n), middle = HALF_STEPS / 4;
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
    half_16(from, to, odd);
    half_16(from + HALF_GROUP / 2, to + middle, to + chain + middle);
    memcpy(to + chain, odd, sizeof odd);
}

/* n terms that lie together, group by group. */
INLINE void half_along(const uint16_t *from, int64_t n, float *to) {
    for (; n >= HALF_GROUP; n -= HALF_GROUP, from += HALF_GROUP, to += HALF_STEPS)
        half_group(from, HALF_GROUP, to);
    if (n) half_group(from, n, to);
}

/* A step: of `width` elements, one term, or one above another. next: null if there is none. */
INLINE void half_step(const uint16_t *x, const uint16_t *next, int64_t width, float *to) {
    half_step_bits *bits = (half_step_bits *)(void *)to;
    int64_t i = 0;
    for (; i + VEC <= width; i += VEC) {
        vec_u32 v = vec_widen(*(const vec_u16_at *)(x + i)) << 16;
        if (next) v |= vec_widen(*(const vec_u16_at *)(next + i));
        *(vec_u32_at *)(bits + i) = v;
    }
#if VEC == 16
    if (i < width) {
        vec_u32 v = vec_widen(vec_take_u16(x + i, width - i)) << 16;
        if (next) v |= vec_widen(vec_take_u16(next + i, width - i));
        vec_put((float *)(void *)(bits + i), width - i, (vec)v);
    }
#else
    for (; i < width; i++) bits[i] = (uint32_t)x[i] << 16;
#endif
}

/* A group of n terms of `width` elements each, which lie together, to half_steps(n) steps, `step`
 * floats apart. */
INLINE void half_across(const uint16_t *const *term, int64_t n, int64_t width, float *to,
                        int64_t step) {
    const int64_t chain = half_chain(n);
    for (int64_t i = 0; i < 2 * chain; i++, to += step) {
        const int64_t k = i < chain ? 2 * HALF_STEP * i : 2 * HALF_STEP * (i - chain) + 1;
        if (k >= n)
            memset(to, 0, (size_t)width * sizeof *to);
        else
            half_step(term[k], HALF_STEP == 2 && k + 2 < n ? term[k + 2] : NULL, width, to);
    }
}

/* The same of n / 2 pairs of terms, the first of a pair below; width is a multiple of VEC, and the
 * steps lie together. */
INLINE void half_pairs(const float *pair, int64_t n, int64_t width, float *to) {
    const int64_t chain = half_chain(n), pairs = n / 2;
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
