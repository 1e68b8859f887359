/* SPDX-License-Identifier: Apache-2.0
 * Drawing samples with replacement, by weight. */
#ifndef DATA_WEIGHTS_H
#define DATA_WEIGHTS_H

#include "data/data.h"

struct weights {
    int64_t size;
    double *until; /* [size]: the sum of the weights up to and including this sample */
};

/* how: "balanced", all classes are equally likely; "classes=X/X/X", the weight of each class's
 * samples; or a file with a number per sample. */
tri_status weights_make(const tri_data *d, const char *how, struct weights *out);
void weights_free(struct weights *w);

/* The sample at a place of an epoch: a function of the epoch's key and the place. */
int64_t weights_draw(const struct weights *w, uint64_t key, int64_t place);

#endif
