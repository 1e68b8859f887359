/* SPDX-License-Identifier: Apache-2.0
 * What softmax and cross-entropy share. */
#ifndef DEV_CPU_SOFTMAX_H
#define DEV_CPU_SOFTMAX_H

#include "dev/cpu/cpu.h"

/* e[i] = exp(x[i] - max) and their sum; returns max. */
float softmax_row(const float *x, float *e, int64_t n, double *sum);
void softmax_scale(float *to, const float *from, int64_t n, float scale);

#endif
