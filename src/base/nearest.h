/* SPDX-License-Identifier: Apache-2.0
 * The nearest of some names to one that was mistyped, for messages. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

/* How many insertions, deletions, replacements and swaps of neighbours lead from a to b, whatever the
 * case of their letters; of longer names only the first 31 bytes count. */
size_t nearest_distance(const char *a, const char *b);

/* Begins as {.wanted = what was typed}; candidates are offered one by one. */
struct nearest {
    const char *wanted;
    const char *name; /* the best so far, the first of equals; null before any */
    size_t distance;
};
void nearest_offer(struct nearest *n, const char *candidate);
/* The best, if it can be what was meant: at most every other letter of either differs. Else null. */
const char *nearest_name(const struct nearest *n);

#endif
