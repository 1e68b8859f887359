/* SPDX-License-Identifier: Apache-2.0
 * Sums over ranks in a fixed order: neighbours of equal size are summed pairwise, and the rest is
 * combined from the right, as in machine/tree.h. 4 ranks: (0+1)+(2+3); 6 ranks:
 * ((0+1)+(2+3))+(4+5). */
#ifndef COMM_SUM_H
#define COMM_SUM_H

#include "base/base.h"

#define SUM_RANKS 64  /* at most */
#define SUM_ALIGN 16u /* floats: a cache line */

enum sum_way {
    SUM_BACKWARD = 1, /* starts at the end; the bits are the same */
    /* bypasses the caches, for sizes that exceed them; outputs must begin on a cache line, and
     * `begin` must be a multiple of SUM_ALIGN */
    SUM_STREAM = 2,
};

/* Sums the elements [begin, end) of in[0] to in[ranks - 1] into all of out[0] to out[ranks - 1]. No
 * output may be an input. way: flags of sum_way. */
void sum_to_all(const float *const *in, float *const *out, int ranks, size_t begin, size_t end,
                unsigned way);

/* The number of ranks in the left part of a sum over two or more ranks. */
int sum_left(int ranks);

#endif
