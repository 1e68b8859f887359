/* SPDX-License-Identifier: Apache-2.0
 * Numbers of samples, each counted once, by all processes that share the memory. All zeros is none. */
#ifndef DATA_TALLY_H
#define DATA_TALLY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TALLY_PLACES 1024

struct tally {
    _Atomic uint64_t place[TALLY_PLACES]; /* 1 + a number, from the place that its hash gives on; 0: free */
    _Atomic int64_t more; /* those that found no place: counted as often as they are met by another process */
};

/* Whether it is a new one. */
bool tally_add(struct tally *t, int64_t number);
int64_t tally_count(const struct tally *t);

#endif
