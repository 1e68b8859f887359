/* SPDX-License-Identifier: Apache-2.0 */
#include "data/lengths.h"

#include <stdlib.h>

static int class_of(int64_t length, const int64_t *limit, int n) {
    int k = 0;
    while (k + 1 < n && length <= limit[k + 1]) k++;
    return k;
}

tri_status lengths_make(const tri_data *d, const int64_t *limit, int n, struct lengths **out) {
    int64_t next[LENGTHS_MOST] = {0};
    CHECK(n >= 1 && n <= LENGTHS_MOST);
    *out = NULL;
    if (!d->about.length)
        return base_fail(
            TRI_USAGE,
            "data %s does not know the lengths of its samples, which networks for shorter samples "
            "need; text:FILE for BERT does, and your own source with tri_data_lengths",
            d->name);
    if (d->size > UINT32_MAX)
        return base_fail(TRI_USAGE,
                         "data %s has %lld samples; at most 2^32 - 1 can be grouped by length",
                         d->name, (long long)d->size);
    struct lengths *l = *out = calloc(1, sizeof *l);
    if (l) l->sample = calloc((size_t)d->size, sizeof *l->sample);
    if (!l || !l->sample) {
        lengths_free(l);
        *out = NULL;
        return base_no_memory(d->name);
    }
    l->n = n;
    for (int64_t i = 0; i < d->size; i++)
        l->first[class_of(d->about.length(d->user, i), limit, n) + 1]++;
    for (int k = 0; k < n; k++) l->first[k + 1] += l->first[k];
    for (int64_t i = 0; i < d->size; i++) {
        int k = class_of(d->about.length(d->user, i), limit, n);
        if (l->first[k] + next[k] == l->first[k + 1]) {
            lengths_free(l);
            *out = NULL;
            return base_fail(TRI_USAGE,
                             "data %s gives different lengths for the same sample (sample %lld or "
                             "an earlier one); they must depend only on the sample's index",
                             d->name, (long long)i);
        }
        l->sample[l->first[k] + next[k]++] = (uint32_t)i;
    }
    return TRI_OK;
}

void lengths_free(struct lengths *l) {
    if (l) free(l->sample);
    free(l);
}
