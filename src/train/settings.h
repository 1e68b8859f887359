/* SPDX-License-Identifier: Apache-2.0
 * What stands behind the colon of "cosine:end=0.01,warmup=500". */
#ifndef TRAIN_SETTINGS_H
#define TRAIN_SETTINGS_H

#include "base/base.h"

struct setting_key {
    const char *name;
    int64_t *whole; /* one of these is set */
    double *real;
    double low; /* the least that is allowed */
};

/* False if the text is not a list of keys with numbers that are allowed. */
bool settings_parse(const char *text, const struct setting_key *keys, size_t n);

#endif
