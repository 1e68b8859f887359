/* SPDX-License-Identifier: Apache-2.0
 * What softmax and cross-entropy share. */
#ifndef DEV_CPU_SOFTMAX_H
#define DEV_CPU_SOFTMAX_H

#include "base/vmath.h"
#include "dev/cpu/lanes.h"

/* e[i] = exp(x[i] - max) and their sum; returns max. */
static inline float softmax_row(const float *x, float *e, int64_t n, double *sum) {
    float max = lanes_max(x, (size_t)n);
    INDEPENDENT for (int64_t i = 0; i < n; i++) e[i] = vmath_exp(x[i] - max);
    *sum = lanes_sum(e, (size_t)n);
    return max;
}

static inline void softmax_scale(float *to, const float *from, int64_t n, float scale) {
    INDEPENDENT for (int64_t i = 0; i < n; i++) to[i] = from[i] * scale;
}

#endif
