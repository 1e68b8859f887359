/* SPDX-License-Identifier: Apache-2.0
 * The order of samples: each epoch is a permutation, keyed by seed and epoch. */
#include "data/sampler.h"

#include "base/permute.h"
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

void sampler_at(const struct sampler *s, int64_t step, int64_t place, int64_t *index,
                int64_t *epoch) {
    CHECK(s->batch > 0 && s->size >= s->batch && s->size <= DATA_MAX_SIZE);
    CHECK(step >= 0 && place >= 0 && place < s->batch);
    int64_t steps = s->size / s->batch;
    *epoch = step / steps;
    *index = step % steps * s->batch + place;
    if (!s->shuffle) return;
    uint64_t key = random_key(random_key(s->seed, base_hash_text("sampler")), (uint64_t)*epoch);
    *index = (int64_t)permute_index(key, (uint64_t)s->size, (uint64_t)*index);
}
