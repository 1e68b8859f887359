/* SPDX-License-Identifier: Apache-2.0
 * What lies between attention's products: rows of scores [queries, keys] of one tile. */
#ifndef DEV_CPU_ATTENTION_ROWS_H
#define DEV_CPU_ATTENTION_ROWS_H

#include <stddef.h>

#include "dev/cpu/isa.h"

#define ATTENTION_QUERIES 64 /* of a tile: fixed, for sums are cut by them */
#define ATTENTION_KEYS 512   /* a multiple of ATTENTION_QUERIES and of a sum's lanes */
/* Floats from row to row: the padding spreads the rows over the cache's sets. */
#define ATTENTION_PITCH (ATTENTION_KEYS + 16)

struct attention_tile {
    int64_t rows, keys;
    int64_t diagonal; /* row i attends to keys up to i + diagonal of the tile; keys: to all */
    float scale;
    /* Element (i, k) of the mask at mask + (i * mask_row + k * mask_key) elements; null: none. It
     * is added, or where it is false, the score is -infinity. */
    const char *mask;
    tri_type mask_type;
    int64_t mask_row, mask_key;
    float *s; /* scores [rows, keys], ATTENTION_PITCH apart */
    /* Dropout, unless kept is 1: score (i, k) draws number first_draw + i * draw_row + k of the
     * stream, and is kept if that is at least `limit`, times `kept`. */
    uint64_t draw_key, stream, first_draw;
    int64_t draw_row;
    uint32_t limit;
    float kept;
};

/* By row: the largest score so far, the sum of exp(score - max), and what earlier sums and products
 * are to be multiplied with, now that there is a larger one. */
struct attention_sums {
    float max[ATTENTION_QUERIES], shrink[ATTENTION_QUERIES];
    double sum[ATTENTION_QUERIES];
};

#ifdef CPU_ISA
#define attention_begin FOR_ISA(attention_begin)
#define attention_weigh FOR_ISA(attention_weigh)
#define attention_derive FOR_ISA(attention_derive)
#endif

/* Before the first tile. */
void attention_begin(struct attention_sums *sums);

/* Scores become exp(score - max), and 0 where dropped. Behind a row's last key there are zeros, so
 * that the products may take whole groups of rows (gemm_tile.h). */
void attention_weigh(const struct attention_tile *t, struct attention_sums *sums);

/* Scores become p = exp(score - lse), times what the dropout multiplies with (z); and ds, at first
 * dy v', becomes p (z ds - delta) times `factor`. Zeros behind, as before. */
void attention_derive(const struct attention_tile *t, const float *lse,
                      const float *delta, float factor, float *ds);

#endif
