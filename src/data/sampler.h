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
    int64_t share, shares;   /* every shares-th place of an epoch, from this one on; shares 0: all of them */
    bool even;               /* shares that cannot be equal leave samples out; else the first come twice */
    bool pad;                /* what fills no step is one all the same, with samples from the epoch's beginning */
    bool keep;               /* the same, but a smaller one */
    struct strata *strata;   /* the order is stratified; or null */
    struct weights *weights; /* it is drawn with replacement; or null */
    struct lengths *lengths; /* steps are of samples of one class of lengths each; or null */
    /* Where it stands. */
    int64_t epoch, first;     /* the step's first place in its epoch; with lengths, in its class */
    int class;                /* of lengths */
    struct permutation order; /* of the epoch (or the class in it); n 0: none was wanted yet */
    const uint32_t *strata_order; /* of the epoch */
};

/* What the options say, of which any may be null. */
struct sampler_settings {
    const char *kind;  /* "shuffled" (the default), "sequential", "stratified", "weighted:..." */
    const char *share; /* "K/N", "K/N,drop" */
    const char *tail;  /* "drop" (the default), "pad", "keep" */
    const int64_t *limit; /* see lengths.h */
    int limits;           /* 0 or 1: all are of one class */
    bool no_shuffle;
    int64_t batch, lanes;
    uint64_t seed;
};

/* For the data, which it does not keep. What it makes sampler_close releases, also after a failure. */
tri_status sampler_open(struct sampler *s, const tri_data *d, const struct sampler_settings *o);
void sampler_close(struct sampler *s);

/* What it holds, of memory. */
size_t sampler_bytes(const struct sampler *s);

/* Samples of an epoch, of this share. */
int64_t sampler_places(const struct sampler *s);

/* Steps of an epoch: places / batch; the rest of the data is left out of it (of another part in each
 * epoch, if shuffled), or makes a step of its own (`pad`, `keep`). Fails if no step fits. */
tri_status sampler_steps(const struct sampler *s, int64_t *steps);

/* What a step (from 0, over all epochs) is like. */
struct sampler_step {
    int class;    /* of lengths */
    int64_t rows; /* samples: `batch`, or what is left of them (`keep`) */
};
struct sampler_step sampler_step(const struct sampler *s, int64_t step);
/* All that a step can be like, most at most: fills `out`, returns how many there are. */
int sampler_kinds(const struct sampler *s, struct sampler_step *out, int most);

/* Which epoch a step (from 0, over all epochs) is of. */
int64_t sampler_epoch(const struct sampler *s, int64_t step);
/* Goes to a step (from 0, over all epochs), of a sampler for which sampler_steps succeeds. */
void sampler_seek(struct sampler *s, int64_t step);
/* The samples at n places of that step, from `place` on (0 to batch - 1). */
void sampler_take(const struct sampler *s, int64_t place, int64_t n, uint64_t *index);
/* The first place of that step whose sample is there a second time, as it fills up the epoch's last step;
 * `batch`: there is none. */
int64_t sampler_padding(const struct sampler *s);

#endif
