/* SPDX-License-Identifier: Apache-2.0
 * Files of numbers, separated by blanks or line ends. */
#ifndef DATA_NUMBERS_H
#define DATA_NUMBERS_H

#include "base/base.h"

struct numbers {
    const char *path;
    char *text, *at;
    long line; /* of the last number */
};

tri_status numbers_open(struct numbers *n, const char *path);
/* Reads the next number; false at the end, or after a failure, with *status. */
bool numbers_next(struct numbers *n, double *out, tri_status *status);
void numbers_close(struct numbers *n);

#endif
