/* SPDX-License-Identifier: Apache-2.0
 * Samples by their lengths: a step has samples of one class of lengths alone, so that a network that is made for
 * those computes it. Steps of all classes make an epoch, in an order of their own. */
#ifndef DATA_LENGTHS_H
#define DATA_LENGTHS_H

#include "data/data.h"

#define LENGTHS_MOST 8

struct lengths {
    int n;                           /* classes, the longest first */
    int64_t first[LENGTHS_MOST + 1]; /* where each class begins */
    uint32_t *sample;                /* in the data's order within each */
};

/* limit[k]: the length that class k's samples do not exceed, descending; that of the first is not looked at, for it takes
 * all that is longer than the second's. Fails where the data cannot tell lengths. */
tri_status lengths_make(const tri_data *d, const int64_t *limit, int n, struct lengths **out);
void lengths_free(struct lengths *l); /* or null */

#endif
