/* SPDX-License-Identifier: Apache-2.0
 * The format topk: of n numbers those that are furthest from an estimate, as many as are `kept`.
 * The others become the estimate. A bit per number, in 64-bit words, marks what is kept.
 *
 * On the wire there are the numbers that are kept; for each the `low` lowest bits of its index; and
 * the rest of the indices in unary: a one for each, after as many zeros as the rest has grown
 * (Elias and Fano). `low` follows from n and kept, and so does the length. */
#ifndef WIRE_TOPK_H
#define WIRE_TOPK_H

#include "base/base.h"

/* How many numbers are kept of n, if `share` of them are to be: at least one. */
uint64_t topk_kept(double share, uint64_t n);
size_t topk_mark_bytes(uint64_t n);
size_t topk_bytes(uint64_t n, uint64_t kept);

/* Of numbers that are as far from the estimate, the first are kept. NaN is furthest. */
void topk_round(float *x, const float *estimate, uint64_t n, uint64_t kept, uint64_t *marks);
void topk_put(const float *x, const uint64_t *marks, uint64_t n, uint64_t kept, uint8_t *to);
/* False: topk_put writes no such bytes. Then x and marks have been written in part. */
bool topk_take(const uint8_t *from, const float *estimate, uint64_t n, uint64_t kept, float *x,
               uint64_t *marks);

#endif
