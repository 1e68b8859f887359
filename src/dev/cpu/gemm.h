/* SPDX-License-Identifier: Apache-2.0
 * Products of matrices, the same bits with every instruction set and however they are cut. Of f32
 * an element of c is a sum over blocks of GEMM_BLOCK of k, added in order; each block is one chain
 * of fused multiply-adds over k in order, which starts with 0. Of bf16 it is a sum over groups
 * (half.h). */
#ifndef DEV_CPU_GEMM_H
#define DEV_CPU_GEMM_H

#include "dev/cpu/isa.h"

#define GEMM_BLOCK 256 /* of k */
#define GEMM_PANEL 16  /* columns of b that are stored together */
#define GEMM_GROUP 8   /* rows of c with a common range of k, unless GEMM_FULL */

/* An element (i, x) is "below" if x <= i + diagonal: */
enum gemm_shape {
    GEMM_FULL,
    GEMM_C_LOWER, /* elements of c that are not below need not be computed */
    /* elements of a that are not below need not be used; they are 0 where another row of the group
     * is below */
    GEMM_A_LOWER,
    GEMM_A_UPPER  /* the same for the transpose of a */
};

/* A matrix to prefetch while a product is computed: `rows` rows of `width` bytes that lie `row`
 * bytes apart, which hardware does not prefetch. Of the first row, `done` bytes are fetched. */
struct gemm_next {
    const char *at;
    int64_t rows, row, width, done;
};
static inline struct gemm_next gemm_floats(const float *at, int64_t rows, int64_t row,
                                           int64_t width) {
    return (struct gemm_next){(const char *)at, rows, row * 4, width * 4, 0};
}

/* Several of them; each tile of a product prefetches some lines. */
#define GEMM_AHEAD 8
struct gemm_ahead {
    struct gemm_next matrix[GEMM_AHEAD];
    int n, now; /* the number of matrices, and the first that is not fetched yet */
};

/* c [m, n] = a [m, k] b [k, n], or added to c. Strides are in elements. Element (k, n) of b is at n
 * / GEMM_PANEL * b_panel + k * b_k + n % GEMM_PANEL; for a row-major b, b_panel is GEMM_PANEL.
 * padded: the last panel of b is whole. */
struct gemm {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_k;
    const float *b;
    int64_t b_k, b_panel;
    float *c;
    int64_t c_row;
    bool padded, add;
    enum gemm_shape shape;
    int64_t diagonal;
    struct gemm_ahead *ahead; /* nullable */
};

/* A product whose factors are packed block by block: for large ones. One stride of each factor is
 * 1. half: they are bf16 (half.h). */
struct product {
    int64_t m, n, k;
    const void *a;
    int64_t a_row, a_k;
    const void *b;
    int64_t b_k, b_column;
    float *c;
    int64_t c_row;
    bool half;
    uint16_t *y; /* half: where c is stored, rounded; c is a place to sum it up */
    int64_t y_row;
};

/* k that lie together: n of them, which begin at `a` and `b` in the factors. Of bf16, k counts
 * steps here and below, and a run is a group, with n steps in each of its two chains (half.h). */
struct gemm_run {
    int64_t a, b, n;
};

/* One block of k of a product, which is a list of runs. Element (r, k) of a run is in a at r + k *
 * a_k. If a_k is 1, the run is a slice of GEMM_SLICE k, and the element is at r * GEMM_SLICE + k,
 * of bf16 at r * HALF_STEPS + k. Element (k, n) is in b at n / GEMM_PANEL * b_panel +
 * k * b_k + n % GEMM_PANEL, and (r, n) of c at c[r] + n / GEMM_PANEL * c_panel + n % GEMM_PANEL.
 * The last panels of b and c are whole; columns of c after the last may be written. */
#define GEMM_SLICE 16
struct gemm_block {
    int64_t m, n, runs;
    const struct gemm_run *run;
    const float *a, *b;
    int64_t a_k, b_k, b_panel;
    float *const *c;
    int64_t c_panel;
    bool add, half;
    struct gemm_next next;
};

/* Reads the factors in place: for small products. */
typedef void gemm_direct_fn(const struct gemm *g);
/* scratch: gemm_scratch floats, on a line of the cache. */
typedef void gemm_blocked_fn(const struct product *p, float *scratch);
/* Packs columns of b [k, n] into consecutive panels: for struct gemm, b_k is GEMM_PANEL and b_panel
 * k * GEMM_PANEL. Columns after the last are 0. */
typedef void gemm_pack_fn(const float *b, int64_t b_k, int64_t b_column, int64_t k, int64_t n,
                          float *to);

#ifdef CPU_ISA
#define gemm_direct FOR_ISA(gemm_direct)
#define gemm_blocked FOR_ISA(gemm_blocked)
#define gemm_pack FOR_ISA(gemm_pack)
gemm_direct_fn gemm_direct;
gemm_blocked_fn gemm_blocked;
gemm_pack_fn gemm_pack;
/* The runs of up to GEMM_BLOCK k of factors with the same order of k, in panels: one, or groups.
 * a_step: floats from step to step of a, as if it were packed. Returns how many. */
#define gemm_list_runs FOR_ISA(gemm_list_runs)
int64_t gemm_list_runs(bool half, int64_t k, int64_t a_step, struct gemm_run *run);
/* Rounds n floats to bf16. */
#define gemm_round FOR_ISA(gemm_round)
void gemm_round(const float *from, int64_t n, uint16_t *to);
#define gemm_runs FOR_ISA(gemm_runs)
void gemm_runs(const struct gemm_block *g);
/* Prefetches the next `lines` cache lines. */
#define gemm_fetch FOR_ISA(gemm_fetch)
void gemm_fetch(struct gemm_next *x, int64_t lines);
/* How many lines to prefetch at a time, so that n times fetch all. */
#define gemm_share FOR_ISA(gemm_share)
int64_t gemm_share(const struct gemm_next *x, int64_t n);
#endif

/* Whether the instruction for bf16 adds a pair as half.h says: the second product first, each
 * rounded once, with subnormals as zeros. */
bool gemm_pairs_as_documented_avx512bf16(void);

/* The functions of an instruction set. */
struct gemm_set {
    gemm_direct_fn *direct;
    gemm_blocked_fn *blocked;
    gemm_pack_fn *pack;
    int64_t half_k; /* products of bf16 with so many k need no c; 0: all need one */
};

#define GEMM_HALF_SCRATCH (GEMM_PANEL * GEMM_BLOCK)
/* Floats of a packed row or column of a block: of bf16, whole groups. */
static inline int64_t gemm_row(int64_t k, bool half) {
    const int64_t floats = half ? (k + 31) / 32 * 32 : k;
    return floats < GEMM_BLOCK ? floats : GEMM_BLOCK;
}
/* For c of m rows; half_k: of the set, for bf16. */
static inline int64_t gemm_scratch(int64_t m, int64_t k, bool half, int64_t half_k) {
    if (half && half_k) /* whole tiles */
        return (m + 3 * GEMM_PANEL - 1) / GEMM_PANEL * GEMM_PANEL *
               (k < half_k ? (k + 31) / 32 * 16 : half_k / 2);
    return (m + 2 * GEMM_PANEL) * gemm_row(k, half) + 16 + (half ? GEMM_HALF_SCRATCH : 0);
}

/* Floats of packed b [k, n]. */
static inline int64_t gemm_packed(int64_t n, int64_t k) {
    return (n + GEMM_PANEL - 1) / GEMM_PANEL * GEMM_PANEL * k;
}

#endif
