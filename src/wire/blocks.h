/* SPDX-License-Identifier: Apache-2.0
 * The formats, block by block. A block is WIRE_BLOCK numbers; in memory it is floats, which the
 * caller has aligned. */
#ifndef WIRE_BLOCKS_H
#define WIRE_BLOCKS_H

#include "wire/wire.h"

/* A block of n numbers takes head + n * each bytes on the wire, of which the first `head` are its
 * exponent. The functions take so many whole blocks that follow one another. */
struct wire_row {
    uint32_t head, each;
    /* `draws` is a key of random numbers for the tensor, `first` the index of the first block. */
    void (*round)(float *x, size_t blocks, uint64_t draws, uint64_t first);
    void (*put)(const float *x, size_t blocks, uint8_t *to);
    bool (*take)(const uint8_t *from, size_t blocks, float *x); /* false: not of put */
};
extern const struct wire_row wire_rows[WIRE_FORMATS];

/* to[i] = left[i] + right[i]; `to` may be one of them. */
void wire_add_blocks(const float *left, const float *right, size_t blocks, float *to);

#endif
