/* SPDX-License-Identifier: Apache-2.0
 * Products of bf16 with the tiles of AMX. */
#ifndef DEV_CPU_GEMM_TILES_H
#define DEV_CPU_GEMM_TILES_H

#include "dev/cpu/gemm.h"

#define GEMM_TILES_RUNS (GEMM_TILES_BLOCK / 32)
#define GEMM_TILES_BLOCK 512 /* of k: two blocks of columns fit the first cache */

/* scratch: as gemm_blocked. The process has permission, see isa.c. */
void gemm_tiles(const struct product *p, float *scratch);
/* Of bf16, with GEMM_TILES_RUNS runs at most. Of a in place, rows up to a multiple of 16 may be
 * read. */
void gemm_tiles_runs(const struct gemm_block *g);

#endif
