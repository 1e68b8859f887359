/* SPDX-License-Identifier: Apache-2.0
 * Sums in double precision, converted to an output at the end. */
#ifndef DEV_REF_SUMS_H
#define DEV_REF_SUMS_H

#include <stdlib.h>

#include "dev/ref/ref.h"

/* n zeros; null after failing the step. The caller frees them. */
static inline double *sums_new(const tri_call *c, int64_t n) {
    double *sums = calloc((size_t)(n ? n : 1), sizeof *sums);
    if (!sums) tri_call_fail(c, "out of memory for %lld numbers", (long long)n);
    return sums;
}

static inline void sums_store(const tri_call *c, int output, const double *sums) {
    int64_t n = tri_shape_count(&ref_out(c, output)->shape);
    for (int64_t i = 0; i < n; i++) ref_store(c, output, i, sums[i]);
}

#endif
