/* SPDX-License-Identifier: Apache-2.0
 * Stratified orders: they divide every class evenly. An epoch consists of steps, a step of lanes.
 * If a class has n of the epoch's N samples, a lane of s samples has s n / N of them, rounded up or
 * down; if all lanes have one size, so has a step.
 *
 * Samples are sorted by class and dealt like cards: neighbours go to different steps, so that each
 * of m equal lanes gets n / m of a class, rounded up or down. Lanes of two sizes, and the samples
 * that do not fill a step, are groups that are dealt one after the other; each group has its
 * rounded share of each class. */
#ifndef DATA_STRATA_H
#define DATA_STRATA_H

#include "data/data.h"
#include "data/sampler.h"

/* The state of a stratified sampler. */
struct strata;

/* Uses size, batch, seed and share of `s`. Fails if the data does not know its labels. */
tri_status strata_make(const tri_data *d, const struct sampler *s, int64_t lanes,
                       struct strata **out);
void strata_free(struct strata *s); /* nullable */
size_t strata_bytes(const struct strata *s); /* in memory */

/* The samples of an epoch, in order. The last two epochs are kept. */
const uint32_t *strata_order(struct strata *s, int64_t epoch);

#define STRATA_GROUPS 3

/* Divides classes into groups of given sizes. */
struct strata_table {
    const uint32_t *count;        /* [classes]: samples per class */
    int64_t classes;
    uint64_t size[STRATA_GROUPS]; /* of the groups; they add up to `all`, as do the counts */
    uint64_t all;
    uint32_t *out; /* [classes][STRATA_GROUPS]: count * size / all, rounded up or down */
};
void strata_round(const struct strata_table *t);

#endif
