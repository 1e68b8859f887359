/* SPDX-License-Identifier: Apache-2.0
 * Sums over runs of f32, in double precision and 16 lanes: element i goes to lane i % 16, the lanes
 * are added pairwise, elements behind the last 16 singly. The order, and so the bits, depend on the
 * length alone, whatever vectors the machine has. */
#ifndef DEV_CPU_LANES_H
#define DEV_CPU_LANES_H

#include "dev/cpu/cpu.h"

typedef double lanes8 __attribute__((vector_size(64)));
typedef double lanes8u __attribute__((vector_size(64), aligned(8), may_alias));
typedef float floats8 __attribute__((vector_size(32), aligned(4), may_alias));

/* Eight elements as doubles, and the sum of eight lanes. */
#define LOAD8(x) __builtin_convertvector(*(const floats8 *)(x), lanes8)
#define TOTAL8(v) \
    ((((v)[0] + (v)[4]) + ((v)[2] + (v)[6])) + (((v)[1] + (v)[5]) + ((v)[3] + (v)[7])))

/* The loop that all sums have in common: `eight` is done for lanes 0 and 1 at 8 elements each, then
 * `one` for what is left; both see i. */
#define LANES(n, eight, totals, one)                                                        \
    do {                                                                                    \
        size_t i = 0;                                                                       \
        for (const size_t whole = (n) / 16 * 16; i < whole;) {                              \
            eight(0);                                                                       \
            i += 8;                                                                         \
            eight(1);                                                                       \
            i += 8;                                                                         \
        }                                                                                   \
        totals;                                                                             \
        for (; i < (n); i++) one;                                                           \
    } while (0)

INLINE double lanes_sum(const float *x, size_t n) {
    lanes8 s[2] = {{0}};
    double sum = 0;
#define EIGHT(k) s[k] += LOAD8(x + i)
    LANES(n, EIGHT, (s[0] += s[1], sum = TOTAL8(s[0])), sum += (double)x[i]);
#undef EIGHT
    return sum;
}

INLINE double lanes_sum_squares(const float *x, size_t n) {
    lanes8 s[2] = {{0}};
    double sum = 0;
#define EIGHT(k) s[k] += LOAD8(x + i) * LOAD8(x + i)
    LANES(n, EIGHT, (s[0] += s[1], sum = TOTAL8(s[0])), sum += (double)x[i] * (double)x[i]);
#undef EIGHT
    return sum;
}

/* Adds the sums of (x - shift) and of its squares to moment[0] and [1]. */
INLINE void lanes_moments(const float *x, size_t n, double shift, double moment[2]) {
    lanes8 s[2] = {{0}}, q[2] = {{0}};
    double sum = 0, squares = 0, d;
#define EIGHT(k)                                                                            \
    do {                                                                                    \
        lanes8 v = LOAD8(x + i) - shift;                                                    \
        s[k] += v;                                                                          \
        q[k] += v * v;                                                                      \
    } while (0)
    LANES(n, EIGHT, (s[0] += s[1], q[0] += q[1], sum = TOTAL8(s[0]), squares = TOTAL8(q[0])),
          (d = (double)x[i] - shift, sum += d, squares += d * d));
#undef EIGHT
    moment[0] += sum;
    moment[1] += squares;
}

/* Adds the sums of dy and of dy * (x - shift) to sum[0] and [1]. */
INLINE void lanes_dot(const float *dy, const float *x, size_t n, double shift, double sum[2]) {
    lanes8 s[2] = {{0}}, q[2] = {{0}};
    double a = 0, b = 0, d;
#define EIGHT(k)                                                                            \
    do {                                                                                    \
        lanes8 v = LOAD8(dy + i);                                                           \
        s[k] += v;                                                                          \
        q[k] += v * (LOAD8(x + i) - shift);                                                 \
    } while (0)
    LANES(n, EIGHT, (s[0] += s[1], q[0] += q[1], a = TOTAL8(s[0]), b = TOTAL8(q[0])),
          (d = (double)dy[i], a += d, b += d * ((double)x[i] - shift)));
#undef EIGHT
    sum[0] += a;
    sum[1] += b;
}

/* A float as an integer of the same order, NaN above all; and back. */
INLINE int32_t lanes_key(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int32_t key = bits ^ (bits >> 31 & INT32_MAX);
    int32_t nan = -((bits & INT32_MAX) > 0x7f800000); /* a mask: a branch would stay one */
    return (key & ~nan) | (INT32_MAX & nan);
}

/* The largest; NaN if there is one. Integers, for compilers vectorise their maximum and not that of
 * floats. */
INLINE float lanes_max(const float *x, size_t n) {
    int32_t largest = INT32_MIN;
    for (size_t i = 0; i < n; i++) {
        int32_t key = lanes_key(x[i]);
        largest = key > largest ? key : largest;
    }
    int32_t bits = largest ^ (largest >> 31 & INT32_MAX);
    float max;
    memcpy(&max, &bits, sizeof max);
    return max;
}

#endif
