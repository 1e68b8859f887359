/* SPDX-License-Identifier: Apache-2.0
 * The sizes of a matmul. */
#ifndef DEV_CPU_MATMUL_H
#define DEV_CPU_MATMUL_H

#include "dev/cpu/cpu.h"
#include "dev/cpu/walk.h"

/* Matrices over leading dimensions: tensors 0, 1, 2 of the walk are a [m, k], b [k, n], y [m, n].
 * For a and b one of the strides is 1. */
struct matmul_sizes {
    struct walk lead;
    int64_t m, k, n;
    int64_t row_a, column_a, row_b, column_b; /* strides */
};

struct matmul_sizes matmul_sizes_of(const tri_node *n);
/* Whether matmul.c computes it: a matmul of f32 or bf16. */
bool matmul_takes(const tri_node *n);

#endif
