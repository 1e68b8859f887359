/* SPDX-License-Identifier: Apache-2.0
 * Numbers of f32 in fewer bytes, without loss. The exponents of gradients are few and take less
 * than 3 bits each with a Huffman code; all other bits are as good as random and stay as they are.
 *
 * Groups of 16,384 numbers follow one another; the last one may be shorter. A group has a byte for
 * its kind:
 *
 *  0  raw: the numbers as they are. Any group for which the other kinds save too little
 *  1  coded: the head, four streams of codes, the plane of middle bytes, the plane of low halves
 *  2  bare: the head and the streams; no number has a bit set but in its exponent
 *
 * The head: the bytes of each stream (u16); the least and the largest exponent that occur (u8);
 * for each exponent between them the length of its code, 4 bits each, the low ones first; 0: none.
 * Codes have at most 11 bits and are canonical: shorter ones come first, then smaller exponents.
 * The first bit of a code goes to the lowest free bit of a byte. A stream has a quarter of the
 * numbers, and the last one the rest too; zeros fill its last byte. If all exponents are the same,
 * they need no codes.
 *
 * The planes have the bits of the numbers, rotated to the left by one: the exponent is then the
 * highest byte; the middle byte and the low half, whose lowest bit is the sign, follow.
 *
 * The bytes depend on nothing but the numbers. Whatever has more bits than a byte is little-endian.
 * No function allocates memory; each takes less than 64 KiB of the stack. */
#ifndef WIRE_PACK_H
#define WIRE_PACK_H

#include "base/base.h"

/* The most bytes that n numbers can take. */
size_t pack_most(size_t n);
/* Writes n numbers and returns how many bytes they take; `to` has room for pack_most(n). */
size_t pack_put(const float *x, size_t n, uint8_t *to);
/* The reverse. False if these are not the very bytes that pack_put writes for n numbers; some of
 * the numbers may then have been written. */
bool pack_take(const uint8_t *from, size_t bytes, float *x, size_t n);

#endif
