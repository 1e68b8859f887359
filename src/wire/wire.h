/* SPDX-License-Identifier: Apache-2.0
 * How the numbers of sums travel between hosts. A format that loses something rounds a node of the
 * lanes' tree where it is computed, also on one host; so what is sent is exact, and no way to send
 * it changes a bit.
 *
 * The result of a node in a slot is described by a *map*: parts that follow one another, one for
 * each tensor, or for all in between that travel as they are. A part is divided into *blocks* of
 * WIRE_BLOCK numbers, of which the last may be shorter. A *range* is some blocks of a map, from
 * `first` on; the blocks of all parts are counted together.
 *
 *  f32   the bytes of the slot, whatever they are
 *  fp16  per block the exponent of a power of two, which scales the largest number to
 *        [2^14, 2^15), then numbers of 16 bits; to nearest, ties to even. The scale is at most
 *        2^125, so that every number is one of f32. What rounds to 2^128 becomes infinite; infinite
 *        numbers and NaN are not scaled, and NaN has one form
 *  bf16  numbers of 16 bits, without an exponent, as they have that of f32; to nearest, ties to
 *        even. What rounds to 2^128 becomes infinite; NaN becomes quiet
 *  int8  per block the exponent of a step, the least power of two from 2^-103 on of which no number
 *        is more than 127, then numbers of 8 bits: the steps, rounded up or down at random, by
 *        seed, step, node, tensor and element. The mean of a number is the number, but for at most
 *        2^-24 of a step; -0 becomes 0. A block in which a number is not finite, or beyond
 *        127 * 2^121, is NaN as a whole
 *  topk  of a node for which there is an estimate of each number: the numbers that are furthest
 *        from it, as many as the part says, and where they are (wire/topk.h). The others become the
 *        estimate, which must not change until the node is rounded, or taken. The part is one block
 *  pack  numbers of f32 in fewer bytes, without loss (wire/pack.h): nothing is rounded. The length
 *        follows from the numbers
 *
 * The bits depend on nothing but the numbers and the key: not on the compiler, the instructions or
 * the range. To round what has been rounded changes nothing, with whatever key; topk is only sure
 * to change no number to one that is not equal, unless there is NaN. Subnormals are numbers like
 * all others: no thread that calls these functions may flush them. */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

#include "base/base.h"

enum wire_format {
    WIRE_F32,
    WIRE_FP16,
    WIRE_BF16,
    WIRE_INT8,
    WIRE_FORMATS,            /* so many are in blocks */
    WIRE_TOPK = WIRE_FORMATS,
    WIRE_PACK
};
extern const char *const wire_names[WIRE_FORMATS + 3]; /* "f32", ...; "topk", "pack"; null */

#define WIRE_BLOCK 256
/* A ferry has so many buffers for what it sends coded, and one for each host for what arrives. */
#define WIRE_CODED 6

struct wire_part {
    uint64_t at;     /* in the slot, in bytes */
    uint64_t n;      /* numbers of 4 bytes */
    uint32_t format; /* enum wire_format */
    uint32_t name;   /* of the tensor: a hash; elements are counted from the part's first */
    uint64_t kept;     /* topk, as what follows: how many numbers are not the estimate */
    uint64_t marks;    /* where in the slot there is a bit for each number, in bytes: it is kept */
    uint64_t estimate; /* where the part begins in wire_map.estimate, in bytes */
};

struct wire_map {
    const struct wire_part *part; /* borrowed; in ascending order */
    int n;
    const char *estimate; /* of the node; borrowed. Null: no part is topk, or nothing is rounded or
                           * taken */
};

/* What random numbers follow from, with the tensor's name and the element. */
struct wire_key {
    uint64_t seed, step;
    int node;
};

uint64_t wire_blocks(const struct wire_map *m);
/* Whether all parts are f32 and nothing is between them: then a range is in the slot as it is sent,
 * at part[0].at + wire_bytes(m, 0, first). */
bool wire_is_plain(const struct wire_map *m);
/* The range of one of so many chunks of about the same size; it may be empty. */
void wire_chunk(const struct wire_map *m, int chunk, int chunks, uint64_t *first, uint64_t *n);
/* The bytes of a range on the wire; if a part is packed, the most that there can be. */
size_t wire_bytes(const struct wire_map *m, uint64_t first, uint64_t n);
bool wire_is_packed(const struct wire_map *m); /* whether a part is */
/* The bytes of a range in a slot. */
size_t wire_slot_bytes(const struct wire_map *m, uint64_t first, uint64_t n);

void wire_round(const struct wire_map *m, const struct wire_key *key, uint64_t first, uint64_t n,
                char *slot);
/* Writes a range of a slot that has been rounded; exact. Returns how many bytes it takes. */
size_t wire_put(const struct wire_map *m, const char *slot, uint64_t first, uint64_t n,
                uint8_t *to);
/* The reverse. Fails if these are not the bytes that wire_put writes; the range may have been
 * written in part. */
tri_status wire_take(const struct wire_map *m, const uint8_t *from, size_t bytes, uint64_t first,
                     uint64_t n, char *slot);
/* The sum of two slots, number by number: all parts are f32 numbers. `to` may be one of them. */
void wire_add(const struct wire_map *m, const char *left, const char *right, uint64_t first,
              uint64_t n, char *to);

#endif
