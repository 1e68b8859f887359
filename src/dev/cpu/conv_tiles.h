/* SPDX-License-Identifier: Apache-2.0
 * Convolutions of bf16, and their derivatives by x, with the tiles of AMX: of one group, and of one
 * remainder by the stride. Tensors lie in blocks of 16 channels, and the input channels fill groups
 * of 32. */
#ifndef DEV_CPU_CONV_TILES_H
#define DEV_CPU_CONV_TILES_H

#include "dev/cpu/conv_rows.h"

struct conv_tiles {
    struct conv_axis down, across;
    struct conv_plane from, to; /* of all groups */
    int64_t samples, reads, makes;
    const uint16_t *x, *bias; /* no bias: null */
    uint16_t *y;
    /* The weight in panels of 16 outputs: tap by tap the channels' pairs. packed: it has the taps
     * of the remainder alone; else all of a kernel of kw columns. */
    const float *b;
    int64_t b_panel, kw;
    bool packed;
};

/* False: to gather is faster. */
bool conv_tiles_worth(const struct conv_tiles *t);
size_t conv_tiles_scratch(const struct conv_tiles *t);
void conv_tiles_run(const struct conv_tiles *t, void *scratch);

#endif
