/* SPDX-License-Identifier: Apache-2.0
 * Orders of samples that share every class out evenly. An epoch consists of steps, a step of lanes. A lane
 * of s samples has of each class, which is n of the epoch's N samples, s n / N, rounded up or down; where all
 * lanes have one size, a step of B samples has B n / N of them, rounded up or down.
 *
 * Samples are sorted by class and dealt like cards: neighbours go to different steps, so that of n samples
 * of a class each of m equal lanes gets n / m, rounded. Lanes of two sizes, and the rest of the data that fills
 * no step, are groups that are dealt to one after the other; each group has its rounded share of each class. */
#ifndef DATA_STRATA_H
#define DATA_STRATA_H

#include "data/data.h"
#include "data/sampler.h"

/* What a sampler that is stratified keeps. */
struct strata;

/* The size, the batch, the seed and the share of `s` count. Fails where the data cannot tell labels. */
tri_status strata_make(const tri_data *d, const struct sampler *s, int64_t lanes, struct strata **out);
void strata_free(struct strata *s); /* or null */
size_t strata_bytes(const struct strata *s); /* of memory */

/* The samples of an epoch, by their places in it. Those of the last two epochs asked for are kept. */
const uint32_t *strata_order(struct strata *s, int64_t epoch);

#define STRATA_GROUPS 3

/* Classes are cut into groups of given sizes. */
struct strata_table {
    const uint32_t *count;        /* [classes]: samples of each */
    int64_t classes;
    uint64_t size[STRATA_GROUPS]; /* of the groups; together `all`, as the counts are */
    uint64_t all;
    uint32_t *out;                /* [classes][STRATA_GROUPS]: count * size / all, rounded up or down */
};
void strata_round(const struct strata_table *t);

#endif
