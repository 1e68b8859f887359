/* SPDX-License-Identifier: Apache-2.0
 * Convolutions of our own: which they are (conv_choice.c), and what the two kernels for few
 * channels share. Both compute ROWS output channels at a time, and the weight's derivative DW_ROWS
 * output channels by DW_TAPS elements of the weight, in registers.
 *
 * Both read zeros for what lies beside a row, and multiply them: operands should be finite. A NaN
 * or an infinity in one reaches outputs that do not see it. */
#ifndef DEV_CPU_CONV_OWN_H
#define DEV_CPU_CONV_OWN_H

#include "dev/cpu/cpu.h"
#include "ops/window.h"

/* Values of the attribute "way" (graph/target.h). */
enum {
    WAY_FEW = WAY_OF_DEVICE, /* that of few channels, along planes */
    WAY_ACROSS,              /* the same, across samples */
    WAY_DIRECT,              /* also that of a part which no longer fits Winograd's */
};

#define SUMS 16 /* chains of each sum of dw; conv_across.c: samples that are worked on together */

/* In f32, of fewer than 16 channels, made to at most 16, with stride 1, over planes that the
 * second-level cache holds; whatever the number of samples. For conv2d, conv2d_dx and conv2d_dw
 * alike; false for any other. */
bool conv_few_takes(const tri_node *n);

/* Of a graph of the whole batch: one lane. */
struct window conv_lane(const tri_node *n);

/* Whether our own Winograd can compute it: any of the three. */
bool conv_wino_fits(const tri_node *n, const struct window *w);
/* conv2d and conv2d_dx for which it was chosen. The weight's derivative: conv_dw.h. */
bool conv_wino_takes(const tri_node *n);

/* conv2d and conv2d_dx of f32 and bf16, which conv_direct.c computes if no other file does. */
bool conv_direct_takes(const tri_node *n);

/* Those among them that are better done across samples. */
bool conv_across_takes(const tri_node *n);

/* conv2d, conv2d_dx and conv2d_dw in f32 by conv_depth.c and conv_depth_dw.c: as many groups and
 * outputs as channels, which fill blocks of 16. */
bool conv_depth_takes(const tri_node *n);
/* How the weight of conv2d and conv2d_dx lies: [c / 16, 1, height, width, 16]. */
#define CONV_DEPTH_PACK "Abcd16a"

/* Of bf16, groups of 1, 2, 4 or 8 channels that make as many outputs; the channels fill blocks of
 * 16. Any of the three, by conv_thin.c; conv_dw.c asks it for the derivative by the weight. */
bool conv_thin_fits(tri_type type, const struct window *w);
bool conv_thin_takes(const tri_node *n); /* conv2d and conv2d_dx */

#ifdef CPU_ISA
#include "dev/cpu/vec.h"

#define ROWS 6
#define DW_ROWS 4
#if VEC_REGISTERS == 32
#define COLS 4 /* vectors, or columns, that are made together with ROWS channels */
#define DW_TAPS 6
#define TO_COLS(X, rows) X(rows, 1) X(rows, 2) X(rows, 3) X(rows, 4)
#define TO_DW_TAPS(X, rows) \
    X(rows, 1) X(rows, 2) X(rows, 3) X(rows, 4) X(rows, 5) X(rows, 6)
#else
#define COLS 2
#define DW_TAPS 2
#define TO_COLS(X, rows) X(rows, 1) X(rows, 2)
#define TO_DW_TAPS(X, rows) X(rows, 1) X(rows, 2)
#endif

/* Functions for each number of rows and columns, and where they stand in a table. */
#define EVERY_PIECE(X) \
    TO_COLS(X, 1) TO_COLS(X, 2) TO_COLS(X, 3) TO_COLS(X, 4) TO_COLS(X, 5) TO_COLS(X, 6)
#define EVERY_SUM(X) TO_DW_TAPS(X, 1) TO_DW_TAPS(X, 2) TO_DW_TAPS(X, 3) TO_DW_TAPS(X, 4)
#define PIECE_AT(rows, cols) (((rows) - 1) * COLS + (cols) - 1)
#define SUM_AT(rows, taps) (((rows) - 1) * DW_TAPS + (taps) - 1)

INLINE float conv_total(const float sum[SUMS]) {
    vec v[SUMS / VEC];
    for (int k = 0; k < SUMS / VEC; k++) v[k] = *(const vec_at *)(sum + k * VEC);
    for (int half = SUMS / VEC / 2; half; half /= 2)
        for (int k = 0; k < half; k++) v[k] += v[k + half];
    return FOLD(vec_add, v[0])[0];
}
#endif

#endif
