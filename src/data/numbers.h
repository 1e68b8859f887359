/* SPDX-License-Identifier: Apache-2.0
 * Files of numbers, with blanks or ends of lines between them. */
#ifndef DATA_NUMBERS_H
#define DATA_NUMBERS_H

#include "base/base.h"

struct numbers {
    const char *path;
    char *text, *at;
    long line; /* of the number that was read last */
};

tri_status numbers_open(struct numbers *n, const char *path);
/* The next number; false at the end, or with *status a failure. */
bool numbers_next(struct numbers *n, double *out, tri_status *status);
void numbers_close(struct numbers *n);

#endif
