/* SPDX-License-Identifier: Apache-2.0
 * The derivative of a convolution's weight with AVX-512, of tensors that lie in blocks of 16
 * channels. Eight output channels by up to three vectors of input channels are summed in registers
 * over the places that a tap of the weight sees; what lies beside the plane is left out, not
 * multiplied by zero.
 *
 * In bf16 an element of a vector is a pair, the same place of two samples: so strides, padding and
 * odd widths are as in f32, and the instruction that multiplies pairs adds up over the samples. Of
 * an odd number the last one's partner is zero. */
#ifndef DEV_CPU_CONV_DW_TILE_H
#define DEV_CPU_CONV_DW_TILE_H

#include "dev/cpu/cpu.h"
#include "ops/window.h"

#define DW_BLOCK 16

/* Bytes of scratch for w->n samples, of f32 or bf16. */
size_t conv_dw_scratch(const struct window *w, tri_type type);
/* sum [r.end - r.begin, kh, kw, c] of w->n samples: r are output channels, in whole blocks. */
void conv_dw_sum(const struct window *w, tri_type type, struct cpu_range r, const void *dy,
                 const void *x, float *sum, void *scratch);

#endif
