/* SPDX-License-Identifier: Apache-2.0
 * The derivative of a convolution's weight: the ways to sum it, over tensors in blocks of DW_BLOCK
 * channels, and which nodes conv_dw.c computes by one of them. */
#ifndef DEV_CPU_CONV_DW_H
#define DEV_CPU_CONV_DW_H

#include "dev/cpu/cpu.h"
#include "dev/cpu/isa.h"
#include "ops/window.h"

#define DW_BLOCK 16

extern const struct dev_row cpu_conv_dw[];

bool conv_dw_takes(const tri_node *n);

struct conv_dw_way {
    /* Bytes of scratch for w->n samples and so many output channels; half: of bf16. */
    size_t (*scratch)(const struct window *w, bool half, int64_t outputs);
    /* sum [r.end - r.begin, kh, kw, c] of w->n samples: r are output channels, in whole blocks. */
    void (*sum)(const struct window *w, bool half, struct cpu_range r, const void *dy,
                const void *x, float *sum, void *scratch);
};

/* conv_wino_dw.c: of a 3x3 weight by Winograd's way (conv_wino.h), of what conv_wino_fits: patches
 * of x and tiles of dy are transformed, 36 products of matrices add up over the tiles, and their
 * sums are transformed back once. conv_thin.c: of conv_thin_fits. conv_direct_dw.c: any other. */
#define CONV_DW_DECLARE(isa) \
    extern const struct conv_dw_way conv_direct_dw_##isa;
EVERY_PRODUCT_ISA(CONV_DW_DECLARE)
#define CONV_WINO_DW_DECLARE(isa) \
    extern const struct conv_dw_way conv_wino_dw_##isa, conv_thin_dw_##isa;
EVERY_ISA(CONV_WINO_DW_DECLARE)

/* conv_tiles.c: of bf16 in blocks, with AMX; sums are tiles, [o / 16, kh, kw, c / 16, 16, 16]. */
extern const struct conv_dw_way conv_tiles_dw;

#endif
