/* SPDX-License-Identifier: Apache-2.0
 * Finds the name nearest to one that was mistyped, for messages. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

/* The number of insertions, deletions, replacements and swaps of neighbours from a to b, ignoring
 * case. Only the first 31 bytes of a name count. */
size_t nearest_distance(const char *a, const char *b);

/* Starts as {.wanted = what was typed}; candidates are offered one by one. */
struct nearest {
    const char *wanted;
    const char *name; /* the best so far, the first among equals; null before any */
    size_t distance;
};
void nearest_offer(struct nearest *n, const char *candidate);
/* The best candidate if it is near enough: at most every other letter differs. Else null. */
const char *nearest_name(const struct nearest *n);

#endif
