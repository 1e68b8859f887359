/* SPDX-License-Identifier: Apache-2.0
 * The order of samples: a pure function of the step, so that any worker can read any part of any
 * batch. */
#ifndef DATA_SAMPLER_H
#define DATA_SAMPLER_H

#include "base/base.h"
#include "base/permute.h"

struct sampler {
    int64_t size, batch; /* of the data; of a step */
    uint64_t seed;
    bool shuffle;
    /* this share has every shares-th place of an epoch, from `share` on; shares 0: all */
    int64_t share, shares;
    bool even; /* unequal shares drop samples; else the first samples are used twice */
    bool pad; /* the last samples of an epoch make a full step, filled up from the epoch's start */
    bool keep;               /* they make a smaller step */
    struct strata *strata;   /* nullable: the order is stratified */
    struct weights *weights; /* nullable: samples are drawn with replacement */
    struct lengths *lengths; /* nullable: each step has samples of one length class */
    /* The current position. */
    int64_t epoch, first;     /* the step's first place in its epoch; with lengths, in its class */
    int class;                /* the length class */
    struct permutation order; /* of the epoch (or its class); n 0: not made yet */
    const uint32_t *strata_order; /* of the epoch */
};

/* What happens to the last samples of an epoch if they do not fill a step: the words of --tail. */
enum tail_way { TAIL_DROP, TAIL_KEEP, TAIL_PAD };

/* From the options; all nullable. */
struct sampler_settings {
    const char *kind;  /* "shuffled" (the default), "sequential", "stratified", "weighted:..." */
    const char *share; /* "K/N", "K/N,drop" */
    enum tail_way tail;
    const int64_t *limit; /* see lengths.h */
    int limits;           /* 0 or 1: there is one class */
    bool no_shuffle;
    int64_t batch, lanes;
    uint64_t seed;
};

/* Does not keep the data. sampler_close also releases what a failed call has made. */
tri_status sampler_open(struct sampler *s, const tri_data *d, const struct sampler_settings *o);
void sampler_close(struct sampler *s);

/* The memory that it holds. */
size_t sampler_bytes(const struct sampler *s);

/* Samples of an epoch, in this share. */
int64_t sampler_places(const struct sampler *s);

/* Steps of an epoch: places / batch. The remaining samples are left out (others in each epoch, if
 * shuffled), or make a step of their own (`pad`, `keep`). Fails if there is no step. */
tri_status sampler_steps(const struct sampler *s, int64_t *steps);

/* The kind of a step (counted from 0 over all epochs). */
struct sampler_step {
    int class;    /* the length class */
    int64_t rows; /* samples: `batch`, or those that remain (`keep`) */
};
struct sampler_step sampler_step(const struct sampler *s, int64_t step);
/* Fills `out` with all kinds of steps, at most `most`; returns their number. */
int sampler_kinds(const struct sampler *s, struct sampler_step *out, int most);

/* The epoch of a step. */
int64_t sampler_epoch(const struct sampler *s, int64_t step);
/* How many samples of a step do not fill it up; they are its first. */
int64_t sampler_counted(const struct sampler *s, int64_t step);
/* Moves to a step; sampler_steps must have succeeded. */
void sampler_seek(struct sampler *s, int64_t step);
/* The samples at places `place` to place + n - 1 of the current step. */
void sampler_take(const struct sampler *s, int64_t place, int64_t n, uint64_t *index);
/* The first place of the current step that repeats a sample of the epoch to fill up the step;
 * `batch`: none. */
int64_t sampler_padding(const struct sampler *s);

#endif
