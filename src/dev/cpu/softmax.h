/* SPDX-License-Identifier: Apache-2.0
 * Code common to softmax and cross-entropy. */
#ifndef DEV_CPU_SOFTMAX_H
#define DEV_CPU_SOFTMAX_H

#include "dev/cpu/rows.h"

/* The sum of exp(x - max) over a row; e: an f32 buffer for the exponentials, or null. e may be x if
 * that is f32. */
INLINE double softmax_sum(tri_type t, const void *x, float *e, int64_t n, float max) {
    double sum = 0;
    for (int64_t block = 0; block < n; block += BLOCK) {
        vec partial[SUM_VECS] = {{0}};
        const void *from = rows_in(t, x, block);
        int64_t length = n - block < BLOCK ? n - block : BLOCK;
        ROW(length, {
            vec v = vec_exp_negative(LOAD(t, from, -__builtin_inff()) - max);
            partial[k] += v;
            if (e) STORE(TRI_F32, e + block, v);
        });
        sum += (double)vec_total(partial);
    }
    return sum;
}

#endif
