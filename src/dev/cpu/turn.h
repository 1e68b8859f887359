/* SPDX-License-Identifier: Apache-2.0
 * Transpositions in registers: of 4, 8 or 16 x 4 floats, of 8 x 8 elements of 2 bytes. */
#ifndef DEV_CPU_TURN_H
#define DEV_CPU_TURN_H

#include "dev/cpu/cpu.h"

typedef float floats4 __attribute__((vector_size(16)));
typedef float floats8 __attribute__((vector_size(32)));
typedef float floats16 __attribute__((vector_size(64)));
typedef uint16_t halves8 __attribute__((vector_size(16)));
/* The same at any alignment. */
typedef float floats4_at __attribute__((vector_size(16), aligned(4), may_alias));
typedef float floats8_at __attribute__((vector_size(32), aligned(4), may_alias));
typedef float floats16_at __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint16_t halves8_at __attribute__((vector_size(16), aligned(2), may_alias));

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

/* Of the same lane of a and b, which are 4 floats, from all 4 lanes. */
#define IN_LANES(a, b, i, j, k, l)                                                                \
    __builtin_shufflevector(a, b, i, j, k, l, i + 4, j + 4, k + 4, l + 4, i + 8, j + 8, k + 8,    \
                            l + 8, i + 12, j + 12, k + 12, l + 12)

/* 16 rows of 4 floats to 4 rows of 16. */
INLINE void turn_16_4(const float *x, int64_t row, float *to, int64_t to_row) {
    floats16 v[4];
    for (int i = 0; i < 4; i++) {
        floats8 low, high;
        load_8(x + i * row, x + (4 + i) * row, &low);
        load_8(x + (8 + i) * row, x + (12 + i) * row, &high);
        v[i] = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                                       15);
    }
    const floats16 a = IN_LANES(v[0], v[1], 0, 16, 1, 17), b = IN_LANES(v[2], v[3], 0, 16, 1, 17);
    const floats16 c = IN_LANES(v[0], v[1], 2, 18, 3, 19), d = IN_LANES(v[2], v[3], 2, 18, 3, 19);
    v[0] = IN_LANES(a, b, 0, 1, 16, 17);
    v[1] = IN_LANES(a, b, 2, 3, 18, 19);
    v[2] = IN_LANES(c, d, 0, 1, 16, 17);
    v[3] = IN_LANES(c, d, 2, 3, 18, 19);
    for (int i = 0; i < 4; i++) *(floats16_at *)(to + i * to_row) = v[i];
}

/* 8 rows of 8 elements with stride `row` to 8 with stride `to_row`: each of three rounds shuffles
 * the lower half of all rows with the upper half. */
INLINE void turn_8_8(const uint16_t *x, int64_t row, uint16_t *to, int64_t to_row) {
    halves8 v[8], w[8];
    for (int i = 0; i < 8; i++) v[i] = *(const halves8_at *)(x + i * row);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) {
            w[2 * i] = __builtin_shufflevector(v[i], v[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
            w[2 * i + 1] = __builtin_shufflevector(v[i], v[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        }
        for (int i = 0; i < 8; i++) v[i] = w[i];
    }
    for (int i = 0; i < 8; i++) *(halves8_at *)(to + i * to_row) = v[i];
}

#endif
