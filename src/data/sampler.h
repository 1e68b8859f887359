/* SPDX-License-Identifier: Apache-2.0
 * Which sample stands where: a pure function, so that any worker can draw any part of any batch. */
#ifndef DATA_SAMPLER_H
#define DATA_SAMPLER_H

#include "base/base.h"

struct sampler {
    int64_t size, batch; /* of the data, of a step */
    uint64_t seed;
    bool shuffle;
};

/* Steps of an epoch: size / batch; the rest of the data is left out of it (of another part in each
 * epoch, if shuffled). Fails if no step fits. */
tri_status sampler_steps(const struct sampler *s, int64_t *steps);

/* The sample at `place` (0 to batch - 1) of `step` (from 0, over all epochs), of a sampler for
 * which sampler_steps succeeds. */
void sampler_at(const struct sampler *s, int64_t step, int64_t place, int64_t *index,
                int64_t *epoch);

#endif
