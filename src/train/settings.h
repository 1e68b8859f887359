/* SPDX-License-Identifier: Apache-2.0
 * Parser for the part after the colon in "cosine:end=0.01,warmup=500". */
#ifndef TRAIN_SETTINGS_H
#define TRAIN_SETTINGS_H

#include "base/base.h"

struct setting_key {
    const char *name;
    int64_t *whole; /* whole or real is set, the other is null */
    double *real;
    double low; /* smallest valid value */
};

/* False if the text is not a list of known keys with valid numbers. */
bool settings_parse(const char *text, const struct setting_key *keys, size_t n);

#endif
