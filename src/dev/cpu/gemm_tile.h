/* SPDX-License-Identifier: Apache-2.0
 * Products of small matrices in f32, close to the machine's rate from the first call on: nothing is
 * prepared. Every element of c is one chain of fused multiply-adds over k in order, which begins
 * with 0 or with c: its bits depend neither on how m and n are cut nor on the instructions. */
#ifndef DEV_CPU_GEMM_TILE_H
#define DEV_CPU_GEMM_TILE_H

#include "dev/cpu/isa.h"

#define GEMM_PANEL 32 /* columns of b that lie together */
#define GEMM_GROUP 8  /* rows of c that have one range of k */

/* With an element (i, x) "below" if x <= i + diagonal: */
enum gemm_shape {
    GEMM_FULL,
    GEMM_C_LOWER, /* elements of c that are not below need not be computed */
    GEMM_A_LOWER, /* elements of a that are not below need not be used; those are 0 that are below
                     in another row of the same group */
    GEMM_A_UPPER  /* the same of the transpose of a */
};

/* What is wanted next: matrices whose rows lie apart, so that a processor does not see them coming.
 * Some rows are fetched into the cache with every piece of a product. */
#define GEMM_AHEAD 8
struct gemm_ahead {
    struct gemm_rows {
        const char *at;
        int64_t rows, row, width; /* row, width in bytes */
    } left[GEMM_AHEAD];
    int n, now; /* how many; the first that is not there yet */
};

/* c [m, n] = a [m, k] b [k, n], or added to c. Strides are in elements. Element (k, n) of b is at
 * n / GEMM_PANEL * b_panel + k * b_k + n % GEMM_PANEL: b_panel is GEMM_PANEL where the rows of b
 * are whole. */
struct gemm {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_k;
    const float *b;
    int64_t b_k, b_panel;
    float *c;
    int64_t c_row;
    bool add;
    enum gemm_shape shape;
    int64_t diagonal;
    struct gemm_ahead *ahead; /* may be null */
};

#ifdef CPU_ISA
#define gemm_tile FOR_ISA(gemm_tile)
#define gemm_pack FOR_ISA(gemm_pack)
#endif

void gemm_tile(const struct gemm *g);

/* x [n, k], `row` from row to row, as panels of the matrix b [k, n], one behind the other: b_k is
 * GEMM_PANEL and b_panel k * GEMM_PANEL. Columns behind the last are 0. */
void gemm_pack(const float *x, int64_t row, int64_t n, int64_t k, float *to);
static inline int64_t gemm_packed(int64_t n, int64_t k) {
    return (n + GEMM_PANEL - 1) / GEMM_PANEL * GEMM_PANEL * k;
}

#endif
