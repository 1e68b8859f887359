/* SPDX-License-Identifier: Apache-2.0
 * What is kept from one request to the next: answers, and what has been read of curves. */
#ifndef PAGE_KEPT_H
#define PAGE_KEPT_H

#include "page/http.h"
#include "profile/curve.h"

/* Gives an answer again that was kept for a run's version: many pages that show the same cost as
 * one. Any thread may ask. */
bool kept_find(const char *address, int64_t version, struct http_answer *a);
void kept_add(const char *address, int64_t version, const struct http_answer *a);

/* The curves of a result, which are read on from where they ended; they stay until the next call.
 * For one thread. */
tri_status kept_curves(const char *directory, const char *key, const struct curves **c);
void kept_free(void);

#endif
