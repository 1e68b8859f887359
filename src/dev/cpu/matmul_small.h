/* SPDX-License-Identifier: Apache-2.0
 * Products of few samples in f32, for which a call into a library costs too much: one matrix each,
 * by gemm_tile.h. */
#ifndef DEV_CPU_MATMUL_SMALL_H
#define DEV_CPU_MATMUL_SMALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* y [m, n] = a [m, k] b [k, n]; strides in elements, of which one is 1 for a and for b. */
struct small_product {
    int64_t m, k, n;
    int64_t row_a, column_a, row_b, column_b;
};

/* scratch: n * m floats and gemm_packed(m, k), where column_b is not 1. */
typedef void matmul_small_fn(const struct small_product *s, const float *a, const float *b,
                             float *y, float *scratch);

#endif
