/* SPDX-License-Identifier: Apache-2.0
 * Rows of floating-point elements of any storage type: code common to vector kernels. Sums use f32
 * partial sums (vec.h) over blocks of BLOCK elements; blocks are added in double. */
#ifndef DEV_CPU_ROWS_H
#define DEV_CPU_ROWS_H

#include "dev/cpu/isa.h"
#include "dev/cpu/vec.h"

#define BLOCK 2048

/* Calls function(t, ...), which is inlined, with the type as a constant. */
#define BY_TYPE(type, function, ...)                                                        \
    do {                                                                                    \
        if ((type) == TRI_F32)                                                              \
            function(TRI_F32, __VA_ARGS__);                                                 \
        else if ((type) == TRI_BF16)                                                        \
            function(TRI_BF16, __VA_ARGS__);                                                \
        else                                                                                \
            function(TRI_F16, __VA_ARGS__);                                                 \
    } while (0)

INLINE const void *rows_in(tri_type t, const void *from, int64_t i) {
    return (const char *)from + (size_t)i * (t == TRI_F32 ? 4 : 2);
}
INLINE void *rows_out(tri_type t, void *to, int64_t i) {
    return (char *)to + (size_t)i * (t == TRI_F32 ? 4 : 2);
}
INLINE float rows_get(tri_type t, const void *from, int64_t i) {
    return t == TRI_F32    ? ((const float *)from)[i]
           : t == TRI_BF16 ? convert_bf16_to_f32(((const uint16_t *)from)[i])
                           : convert_f16_to_f32(((const uint16_t *)from)[i]);
}
INLINE void rows_put(tri_type t, void *to, int64_t i, float x) {
    if (t == TRI_F32)
        ((float *)to)[i] = x;
    else
        ((uint16_t *)to)[i] = t == TRI_BF16 ? convert_f32_to_bf16(x) : convert_f32_to_f16(x);
}

/* The sum of an expression over the elements of a row, in blocks. The expression sees what ROW
 * defines, and `block`, the first element of the block; `at` counts from there. */
#define ROW_SUM(n, sum, ...)                                                               \
    do {                                                                                   \
        sum = 0;                                                                           \
        for (int64_t block = 0; block < (n); block += BLOCK) {                             \
            vec partial[SUM_VECS] = {{0}};                                                 \
            const int64_t length = (n) - block < BLOCK ? (n) - block : BLOCK;              \
            ROW(length, partial[k] += __VA_ARGS__);                                        \
            sum += (double)vec_total(partial);                                             \
        }                                                                                  \
    } while (0)

INLINE double rows_sum(tri_type t, const void *x, int64_t n) {
    double sum;
    ROW_SUM(n, sum, LOAD(t, rows_in(t, x, block), 0));
    return sum;
}

/* x if it is larger than m, or NaN. */
INLINE vec rows_larger_or_nan(vec m, vec x) {
    return vec_select(vec_either(vec_less(m, x), vec_not(vec_equal(x, x))), x, m);
}

/* The largest; NaN if there is one. */
INLINE float rows_max_or_nan(tri_type t, const void *x, int64_t n) {
    const float least = -__builtin_inff();
    vec partial[SUM_VECS];
    for (int k = 0; k < SUM_VECS; k++) partial[k] = vec_set(least);
    ROW(n, partial[k] = rows_larger_or_nan(partial[k], LOAD(t, x, least)));
    for (int k = 1; k < SUM_VECS; k++) partial[0] = rows_larger_or_nan(partial[0], partial[k]);
    float max = partial[0][0];
    for (int i = 1; i < VEC; i++)
        max = partial[0][i] > max || partial[0][i] != partial[0][i] ? partial[0][i] : max;
    return max;
}

/* The largest number; NaN only if there is none. */
INLINE float rows_max(tri_type t, const void *x, int64_t n) {
    const float least = -__builtin_inff();
    vec partial[SUM_VECS];
    for (int k = 0; k < SUM_VECS; k++) partial[k] = vec_set(least);
    ROW(n, partial[k] = vec_max(LOAD(t, x, least), partial[k]));
    return vec_largest(partial);
}

#endif
