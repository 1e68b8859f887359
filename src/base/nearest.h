/* SPDX-License-Identifier: Apache-2.0
 * What messages say about an unknown name: the nearest of the possible ones, and their list. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include "base/base.h"

/* The number of insertions, deletions, replacements and swaps of neighbours from a to b, ignoring
 * case. Only the first 31 bytes of a name count. */
size_t nearest_distance(const char *a, const char *b);

/* Starts as {.wanted = what was typed}; the possible names are offered one by one. It copies them,
 * and needs no freeing. */
struct nearest {
    const char *wanted;
    const char *before, *after; /* around the name in the message; null: nothing */
    size_t distance;
    char name[256];   /* the best so far, the first among equals; "" before any */
    char names[1024]; /* all, each once: "adam, sgd"; what does not fit is "..." */
    char text[2048];
};
/* Whether it is the wanted name. A name that is empty or longer than 255 bytes is neither meant nor
 * listed. */
bool nearest_offer(struct nearest *n, const char *name);
bool nearest_offer_part(struct nearest *n, const char *name, size_t length);
/* "; do you mean NAME?" if the best is near enough: at most every other letter differs. Else "", or
 * the other text. */
const char *nearest_meant(struct nearest *n);
const char *nearest_or(struct nearest *n, const char *otherwise, ...) TRI_PRINTF(2, 3);

#endif
