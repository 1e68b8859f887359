/* SPDX-License-Identifier: Apache-2.0
 * What makes one profile slower than another. */
#ifndef PROFILE_AGAINST_H
#define PROFILE_AGAINST_H

#include "profile/study.h"

/* Adds lines: what changed from b to a, the largest change first, then what only one of them has.
 * Operators are the same if their scope, kind, phase and seat are. Times are of all threads, per
 * step. Both have a study. */
tri_status against_print(const struct profile *a, const struct profile *b, struct text *out);

#endif
