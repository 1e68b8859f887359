/* SPDX-License-Identifier: Apache-2.0
 * The derivative of a 3x3 weight by Winograd's way (conv_wino.h), of what conv_wino_fits: patches
 * of x and tiles of dy are transformed, 36 products of matrices add up over the tiles, and their
 * sums are transformed back once. */
#ifndef DEV_CPU_CONV_WINO_DW_H
#define DEV_CPU_CONV_WINO_DW_H

#include "dev/cpu/cpu.h"
#include "dev/cpu/isa.h"
#include "ops/window.h"

/* Bytes of scratch for w->n samples and so many output channels. */
typedef size_t conv_wino_dw_scratch_fn(const struct window *w, int64_t outputs);
/* As conv_dw_sum, of f32. */
typedef void conv_wino_dw_fn(const struct window *w, struct cpu_range r, const void *dy,
                             const void *x, float *sum, void *scratch);

struct conv_wino_dw {
    conv_wino_dw_scratch_fn *scratch;
    conv_wino_dw_fn *sum;
};
#define CONV_WINO_DW_DECLARE(isa) extern const struct conv_wino_dw conv_wino_dw_##isa;
EVERY_ISA(CONV_WINO_DW_DECLARE)

#endif
