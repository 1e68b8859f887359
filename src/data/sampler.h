/* SPDX-License-Identifier: Apache-2.0
 * Which sample stands where: a pure function, so that any worker can draw any part of any batch. */
#ifndef DATA_SAMPLER_H
#define DATA_SAMPLER_H

#include "base/base.h"
#include "base/permute.h"

struct sampler {
    int64_t size, batch; /* of the data, of a step */
    uint64_t seed;
    bool shuffle;
    /* Where it stands. */
    int64_t epoch, first;     /* the step's first place in its epoch */
    struct permutation order; /* of the epoch; n 0: none was wanted yet */
};

/* Steps of an epoch: size / batch; the rest of the data is left out of it (of another part in each
 * epoch, if shuffled). Fails if no step fits. */
tri_status sampler_steps(const struct sampler *s, int64_t *steps);

/* Goes to a step (from 0, over all epochs), of a sampler for which sampler_steps succeeds. */
void sampler_seek(struct sampler *s, int64_t step);
/* The samples at n places of that step, from `place` on (0 to batch - 1). */
void sampler_take(const struct sampler *s, int64_t place, int64_t n, uint64_t *index);

#endif
