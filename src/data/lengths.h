/* SPDX-License-Identifier: Apache-2.0
 * Samples grouped by length: a step takes samples of one length class only, so that a network made
 * for that length computes it. An epoch contains the steps of all classes, in their own random
 * order. */
#ifndef DATA_LENGTHS_H
#define DATA_LENGTHS_H

#include "data/data.h"

#define LENGTHS_MOST 8

struct lengths {
    int n;                           /* classes, longest first */
    int64_t first[LENGTHS_MOST + 1]; /* the start of each class in `sample` */
    uint32_t *sample;                /* in the data's order inside each class */
};

/* limit[k]: the longest length of class k, descending; limit[0] is ignored, as class 0 takes
 * everything longer than limit[1]. Fails if the data does not know its lengths. */
tri_status lengths_make(const tri_data *d, const int64_t *limit, int n, struct lengths **out);
void lengths_free(struct lengths *l); /* nullable */

#endif
