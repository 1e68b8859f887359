/* SPDX-License-Identifier: Apache-2.0
 * Products of bf16 with the tiles of AMX. */
#ifndef DEV_CPU_GEMM_TILES_H
#define DEV_CPU_GEMM_TILES_H

#include "dev/cpu/gemm.h"

#define GEMM_TILE 256 /* floats of a tile: 16 rows of 64 bytes, of a and b a group of k */
#define GEMM_TILES_RUNS 16
#define GEMM_TILES_K 1024 /* that are multiplied before c is stored */

/* scratch: as gemm_blocked. The process has permission, see isa.c. */
void gemm_tiles(const struct product *p, float *scratch);
/* Of bf16, with GEMM_TILES_RUNS runs at most. Of a in place, rows up to a multiple of 16 may be
 * read. */
void gemm_tiles_runs(const struct gemm_block *g);

/* A product of whole tiles, of a in place: its rows lie side by side, as those of a panel of b. */
struct gemm_tiled {
    int64_t m, n; /* multiples of 16; of m that is none, rows of a up to the next are read */
    const struct gemm_run *run; /* a group each */
    int64_t runs;
    const float *a, *b;
    int64_t b_panel;
};
/* c: tiles of 16 x 16, beside each other; the next 16 rows begin c_down further. */
void gemm_tiles_sums(const struct gemm_tiled *g, float *c, int64_t c_down, bool add);

/* Where sums are stored, rounded to bf16. */
struct gemm_rounded {
    const uint16_t *bias; /* null: none */
    uint16_t *c;
    const int64_t *row; /* where each row begins in c; -1: it is left out */
    int64_t c_panel;    /* elements to the next 16 columns */
};
void gemm_tiles_rounded(const struct gemm_tiled *g, const struct gemm_rounded *to);

#endif
