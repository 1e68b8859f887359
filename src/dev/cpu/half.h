/* SPDX-License-Identifier: Apache-2.0
 * Factors of products of bf16. The terms of a sum go in pairs of k, of which the second comes
 * first, as VDPBF16PS adds them; a last pair without its second has zeros. With this instruction a
 * step of a product is a pair: the bits of both, the first below. Otherwise a step is one k as a
 * float, and the two of a pair are exchanged. Either takes 4 bytes. Subnormal operands and results
 * count as zeros. */
#ifndef DEV_CPU_HALF_H
#define DEV_CPU_HALF_H

#include "dev/cpu/vec.h"

#ifdef __AVX512BF16__
#define HALF_STEP 2 /* k of a step */
#else
#define HALF_STEP 1
#endif

/* Steps are written as bits, and read as floats or pairs. */
typedef uint32_t half_step_bits __attribute__((may_alias));
typedef uint16_t half_bits __attribute__((may_alias));

INLINE int64_t half_steps(int64_t k) { return (k + 1) / 2 * (2 / HALF_STEP); }

/* Steps of k terms of f32 or bf16. */
INLINE int64_t k_steps(bool half, int64_t k) { return half ? half_steps(k) : k; }

/* Element i of a tensor of f32 or bf16. */
INLINE const void *element_at(bool half, const void *tensor, int64_t i) {
    return (const char *)tensor + i * (half ? 2 : 4);
}

/* n k that lie together, to half_steps(n) steps that do. */
INLINE void half_along(const uint16_t *from, int64_t n, float *to) {
#if HALF_STEP == 2
    memcpy(to, from, (size_t)n * sizeof *from);
    if (n % 2) ((half_bits *)(void *)to)[n] = 0;
#else
    half_step_bits *bits = (half_step_bits *)(void *)to;
    for (int64_t i = 0; i + 2 <= n; i += 2) {
        bits[i] = (uint32_t)from[i + 1] << 16;
        bits[i + 1] = (uint32_t)from[i] << 16;
    }
    if (n % 2) bits[n - 1] = 0, bits[n] = (uint32_t)from[n - 1] << 16;
#endif
}

/* A pair of k of n elements each, which lie together, to 2 / HALF_STEP steps, `step` floats apart.
 * second null: there is none. */
INLINE void half_across(const uint16_t *first, const uint16_t *second, int64_t n, float *to,
                        int64_t step) {
    half_step_bits *bits = (half_step_bits *)(void *)to;
#if HALF_STEP == 2
    (void)step;
    for (int64_t i = 0; i < n; i++)
        bits[i] = first[i] | (second ? (uint32_t)second[i] << 16 : 0);
#else
    for (int64_t i = 0; i < n; i++) bits[i] = second ? (uint32_t)second[i] << 16 : 0;
    for (int64_t i = 0; i < n; i++) bits[step + i] = (uint32_t)first[i] << 16;
#endif
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
