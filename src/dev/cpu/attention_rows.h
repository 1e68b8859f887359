/* SPDX-License-Identifier: Apache-2.0
 * The steps between attention's products, on rows of scores [queries, keys] of one tile. */
#ifndef DEV_CPU_ATTENTION_ROWS_H
#define DEV_CPU_ATTENTION_ROWS_H

#include <stddef.h>

#include "dev/cpu/isa.h"

#define ATTENTION_QUERIES 64 /* of a tile: fixed, as it determines the order of sums */
#define ATTENTION_KEYS 512   /* a multiple of ATTENTION_QUERIES and of SUM_WIDTH */
/* Floats per row: the padding spreads rows over the cache's sets. */
#define ATTENTION_PITCH (ATTENTION_KEYS + 16)

struct attention_tile {
    int64_t rows, keys;
    int64_t diagonal; /* row i attends to keys up to i + diagonal of the tile; keys: to all */
    float scale;
    /* Element (i, k) of the mask is at mask + (i * mask_row + k * mask_key) elements; null: none.
     * It is added; if it is a bool, false makes the score -infinity. */
    const char *mask;
    tri_type mask_type;
    int64_t mask_row, mask_key;
    float *s; /* scores [rows, keys], ATTENTION_PITCH apart */
    /* Dropout, unless kept is 1: score (i, k) uses random number first_draw + i * draw_row + k of
     * the stream. It is kept, times `kept`, if that number is at least `limit`. */
    uint64_t draw_key, stream, first_draw;
    int64_t draw_row;
    uint32_t limit;
    float kept;
};

/* Per row: the largest score so far, the sum of exp(score - max), and the factor for earlier sums
 * and products after a larger score. */
struct attention_sums {
    float max[ATTENTION_QUERIES], shrink[ATTENTION_QUERIES];
    double sum[ATTENTION_QUERIES];
};

#ifdef CPU_ISA
#define attention_begin FOR_ISA(attention_begin)
#define attention_weigh FOR_ISA(attention_weigh)
#define attention_derive FOR_ISA(attention_derive)
#endif

/* Call before the first tile. */
void attention_begin(struct attention_sums *sums);

/* Scores become exp(score - max), or 0 if dropped. Zeros follow a row's last key, so that the
 * products can take whole groups of rows (gemm.h). */
void attention_weigh(const struct attention_tile *t, struct attention_sums *sums);

/* Scores become p = exp(score - lse), times the dropout's factor (z); and ds, initially dy v',
 * becomes p (z ds - delta) times `factor`. Zeros follow as above. */
void attention_derive(const struct attention_tile *t, const float *lse,
                      const float *delta, float factor, float *ds);

#endif
