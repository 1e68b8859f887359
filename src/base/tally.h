/* SPDX-License-Identifier: Apache-2.0
 * A set of numbers in shared memory, counted once for all processes. All zeros: empty. */
#ifndef BASE_TALLY_H
#define BASE_TALLY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TALLY_PLACES 1024

struct tally {
    /* 1 + a number, at or after the place of its hash; 0: free */
    _Atomic uint64_t place[TALLY_PLACES];
    _Atomic int64_t more; /* numbers that found no place: each process counts them again */
};

/* Whether the number is new. */
bool tally_add(struct tally *t, int64_t number);
int64_t tally_count(const struct tally *t);

#endif
