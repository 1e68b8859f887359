/* SPDX-License-Identifier: Apache-2.0
 * The order of samples: each epoch is a permutation, keyed by seed and epoch. */
#include "data/sampler.h"

#include "base/random.h"
#include "data/data.h"

tri_status sampler_steps(const struct sampler *s, int64_t *steps) {
    *steps = 0;
    if (s->batch < 1)
        return base_fail(TRI_USAGE, "a batch of %lld samples; it takes at least 1",
                         (long long)s->batch);
    if (s->size < s->batch)
        return base_fail(TRI_USAGE, "the data has %lld samples, fewer than the batch of %lld; take "
                         "a batch of at most %lld", (long long)s->size, (long long)s->batch,
                         (long long)s->size);
    *steps = s->size / s->batch;
    return TRI_OK;
}

void sampler_seek(struct sampler *s, int64_t step) {
    CHECK(s->batch > 0 && s->size >= s->batch && s->size <= DATA_MAX_SIZE && step >= 0);
    int64_t steps = s->size / s->batch, epoch = step / steps;
    bool same = epoch == s->epoch && s->order.n == (uint64_t)s->size;
    s->epoch = epoch;
    s->first = step % steps * s->batch;
    if (!s->shuffle || same) return;
    uint64_t key = random_key(random_key(s->seed, base_hash_text("sampler")), (uint64_t)epoch);
    permute_make(key, (uint64_t)s->size, &s->order);
}

void sampler_take(const struct sampler *s, int64_t place, int64_t n, uint64_t *index) {
    CHECK(place >= 0 && n >= 0 && n <= s->batch - place);
    uint64_t first = (uint64_t)(s->first + place);
    if (s->shuffle)
        permute_fill(&s->order, first, (size_t)n, index);
    else
        for (int64_t i = 0; i < n; i++) index[i] = first + (uint64_t)i;
}
