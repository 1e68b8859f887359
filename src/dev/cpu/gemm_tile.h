/* SPDX-License-Identifier: Apache-2.0
 * Products of small f32 matrices, close to peak rate from the first call on, as nothing is
 * prepared. Every element of c is one chain of fused multiply-adds over k in order, which starts
 * with 0 or with c: its bits depend neither on how m and n are cut nor on the instruction set. */
#ifndef DEV_CPU_GEMM_TILE_H
#define DEV_CPU_GEMM_TILE_H

#include "dev/cpu/isa.h"

#define GEMM_PANEL 32 /* columns of b that are stored together */
#define GEMM_GROUP 8  /* rows of c with a common range of k */

/* An element (i, x) is "below" if x <= i + diagonal: */
enum gemm_shape {
    GEMM_FULL,
    GEMM_C_LOWER, /* elements of c that are not below need not be computed */
    /* elements of a that are not below need not be used; they are 0 where another row of the group
     * is below */
    GEMM_A_LOWER,
    GEMM_A_UPPER  /* the same for the transpose of a */
};

/* What will be used next: matrices whose rows lie apart, which hardware does not prefetch. Each
 * piece of a product prefetches some rows. */
#define GEMM_AHEAD 8
struct gemm_ahead {
    struct gemm_rows {
        const char *at;
        int64_t rows, row, width; /* row, width in bytes */
    } left[GEMM_AHEAD];
    int n, now; /* the number of matrices, and the first that is not fetched yet */
};

/* c [m, n] = a [m, k] b [k, n], or added to c. Strides are in elements. Element (k, n) of b is at n
 * / GEMM_PANEL * b_panel + k * b_k + n % GEMM_PANEL; for a row-major b, b_panel is GEMM_PANEL. */
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
    struct gemm_ahead *ahead; /* nullable */
};

#ifdef CPU_ISA
#define gemm_tile FOR_ISA(gemm_tile)
#define gemm_pack FOR_ISA(gemm_pack)
#endif

void gemm_tile(const struct gemm *g);

/* Packs x [n, k], with stride `row`, into consecutive panels of the matrix b [k, n]: b_k is
 * GEMM_PANEL and b_panel k * GEMM_PANEL. Columns after the last are 0. */
void gemm_pack(const float *x, int64_t row, int64_t n, int64_t k, float *to);
static inline int64_t gemm_packed(int64_t n, int64_t k) {
    return (n + GEMM_PANEL - 1) / GEMM_PANEL * GEMM_PANEL * k;
}

#endif
