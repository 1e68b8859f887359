/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/cpu/matmul_small.h"

#include "dev/cpu/gemm_tile.h"
#include "dev/cpu/vec.h"

#define matmul_small FOR_ISA(matmul_small)
matmul_small_fn matmul_small;

/* y' = b' a', where b' lies in rows: a' is the smaller one to be brought into rows. */
static void turned(const struct small_product *s, const float *a, const float *b, float *y,
                   float *scratch) {
    float *product = scratch; /* [n, m] */
    struct gemm g = {.m = s->n,
                     .n = s->m,
                     .k = s->k,
                     .a = b,
                     .a_row = s->column_b,
                     .a_k = 1,
                     .b = a,
                     .b_k = s->column_a,
                     .b_panel = GEMM_PANEL,
                     .c = product,
                     .c_row = s->m};
    if (s->column_a == 1 && s->m > 1) {
        float *panels = product + s->n * s->m;
        gemm_pack(a, s->row_a, s->m, s->k, panels);
        g.b = panels;
        g.b_k = GEMM_PANEL;
        g.b_panel = s->k * GEMM_PANEL;
    }
    gemm_tile(&g);
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) *y++ = product[j * s->m + i];
}

void matmul_small(const struct small_product *s, const float *a, const float *b, float *y,
                  float *scratch) {
    if (s->column_b != 1) {
        turned(s, a, b, y, scratch);
        return;
    }
    struct gemm g = {.m = s->m, .n = s->n, .k = s->k, .a = a, .a_row = s->row_a,
                     .a_k = s->column_a, .b = b, .b_k = s->row_b, .b_panel = GEMM_PANEL, .c = y,
                     .c_row = s->n};
    gemm_tile(&g);
}
