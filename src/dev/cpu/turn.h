/* SPDX-License-Identifier: Apache-2.0
 * Transpositions in registers: of 4 x 4 and 8 x 4 floats. */
#ifndef DEV_CPU_TURN_H
#define DEV_CPU_TURN_H

#include "dev/cpu/cpu.h"

typedef float floats4 __attribute__((vector_size(16)));
typedef float floats8 __attribute__((vector_size(32)));
/* The same at any alignment. */
typedef float floats4_at __attribute__((vector_size(16), aligned(4), may_alias));
typedef float floats8_at __attribute__((vector_size(32), aligned(4), may_alias));

INLINE void load_8(const float *low, const float *high, floats8 *v) {
    const floats4 a = *(const floats4_at *)low, b = *(const floats4_at *)high;
    *v = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
}

/* Each half of four rows is a 4 x 4 matrix. */
INLINE void turn_halves(floats8 v[4]) {
    floats8 a = __builtin_shufflevector(v[0], v[1], 0, 8, 1, 9, 4, 12, 5, 13);
    floats8 b = __builtin_shufflevector(v[2], v[3], 0, 8, 1, 9, 4, 12, 5, 13);
    floats8 c = __builtin_shufflevector(v[0], v[1], 2, 10, 3, 11, 6, 14, 7, 15);
    floats8 d = __builtin_shufflevector(v[2], v[3], 2, 10, 3, 11, 6, 14, 7, 15);
    v[0] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
    v[1] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
    v[2] = __builtin_shufflevector(c, d, 0, 1, 8, 9, 4, 5, 12, 13);
    v[3] = __builtin_shufflevector(c, d, 2, 3, 10, 11, 6, 7, 14, 15);
}

/* 4 rows of 4 floats with stride `row` to 4 with stride `to_row`. */
INLINE void turn_4_4(const float *x, int64_t row, float *to, int64_t to_row) {
    floats4 v[4];
    for (int i = 0; i < 4; i++) v[i] = *(const floats4_at *)(x + i * row);
    const floats4 a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5);
    const floats4 b = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
    const floats4 c = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
    const floats4 d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
    v[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
    v[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
    v[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
    v[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
    for (int i = 0; i < 4; i++) *(floats4_at *)(to + i * to_row) = v[i];
}

/* 8 rows of 4 floats with stride `row` to 4 rows of 8 with stride `to_row`. Without AVX gcc would
 * move single floats. */
INLINE void turn_8_4(const float *x, int64_t row, float *to, int64_t to_row) {
#ifdef __AVX__
    floats8 v[4];
    for (int i = 0; i < 4; i++) load_8(x + i * row, x + (4 + i) * row, &v[i]);
    turn_halves(v);
    for (int i = 0; i < 4; i++) *(floats8_at *)(to + i * to_row) = v[i];
#else
    turn_4_4(x, row, to, to_row);
    turn_4_4(x + 4 * row, row, to + 4, to_row);
#endif
}

/* The inverse of turn_8_4. */
INLINE void turn_4_8(const float *x, int64_t row, float *to, int64_t to_row) {
#ifdef __AVX__
    floats8 v[4];
    for (int i = 0; i < 4; i++) v[i] = *(const floats8_at *)(x + i * row);
    turn_halves(v);
    for (int i = 0; i < 4; i++) {
        *(floats4_at *)(to + i * to_row) = __builtin_shufflevector(v[i], v[i], 0, 1, 2, 3);
        *(floats4_at *)(to + (4 + i) * to_row) = __builtin_shufflevector(v[i], v[i], 4, 5, 6, 7);
    }
#else
    turn_4_4(x, row, to, to_row);
    turn_4_4(x + 4, row, to + 4 * to_row, to_row);
#endif
}

#endif
