/* SPDX-License-Identifier: Apache-2.0
 * Sums over ranks in a fixed order: two neighbours of equal size are summed, and what is left at
 * the end is put together from the right, as in machine/tree.h. 4 ranks: (0+1)+(2+3); 6 ranks:
 * ((0+1)+(2+3))+(4+5). */
#ifndef COMM_SUM_H
#define COMM_SUM_H

#include "base/base.h"

#define SUM_RANKS 64  /* at most */
#define SUM_ALIGN 16u /* floats: a cache line */

enum sum_way {
    SUM_BACKWARD = 1, /* from the end: the bits are the same */
    SUM_STREAM = 2,   /* past the caches, for what does not fit them; the outputs begin with a
                         cache line, and `begin` is a multiple of SUM_ALIGN */
};

/* The sums of the elements [begin, end) of in[0] … in[ranks - 1], into all of out[0] …
 * out[ranks - 1]. No output may be an input. way: of sum_way. */
void sum_to_all(const float *const *in, float *const *out, int ranks, size_t begin, size_t end,
                unsigned way);

/* How many of the ranks are the left one of a sum's two parts; of 2 and more. */
int sum_left(int ranks);

#endif
