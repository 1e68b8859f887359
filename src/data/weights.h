/* SPDX-License-Identifier: Apache-2.0
 * Samples drawn with replacement, by weights. */
#ifndef DATA_WEIGHTS_H
#define DATA_WEIGHTS_H

#include "data/data.h"

struct weights {
    int64_t size;
    double *until; /* [size]: the sum of the weights up to this sample's */
};

/* how: "balanced", every class is as likely as every other; "classes=X/X/X", the weight of each class's samples; or
 * a file with a number for each sample. */
tri_status weights_make(const tri_data *d, const char *how, struct weights *out);
void weights_free(struct weights *w);

/* What stands at a place of an epoch: a function of the key, which is the epoch's, and of the place. */
int64_t weights_draw(const struct weights *w, uint64_t key, int64_t place);

#endif
