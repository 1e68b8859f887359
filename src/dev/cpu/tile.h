/* SPDX-License-Identifier: Apache-2.0
 * Tile functions: the arithmetic of every elementwise operator, apart from where its elements lie.
 * A tile is a run of up to TILE elements in the order of the output. Tile functions know nothing of
 * shapes, broadcasting or storage: whoever calls them has brought every input into a run of its
 * own. Values of bf16 and f16 are f32 within a tile, bool is u8; so functions can be chained, one's
 * output tile being the next one's input, without going through memory. */
#ifndef DEV_CPU_TILE_H
#define DEV_CPU_TILE_H

#include "dev/cpu/cpu.h"

#define TILE 1024 /* 4 KB of f32: a few of them stay in the first-level cache */

enum tile_type { TILE_F32, TILE_I32, TILE_I64, TILE_U8, TILE_TYPES };
enum tile_type tile_type(tri_type t);
static inline size_t tile_size(enum tile_type t) {
    return t == TILE_U8 ? 1 : t == TILE_I64 ? 8 : 4;
}

/* out[i] = f(in[0][i], in[1][i], ...) for i < n. out may be one of the inputs. p: the values of the
 * operator's attributes. */
typedef void tile_fn(void *out, const void *const *in, const float *p, size_t n);

/* The function for a node's operator and types; null if there is none. */
tile_fn *tile_find(const tri_node *n);
/* Attributes of the node as the function wants them. */
void tile_params(const tri_node *n, float p[2]);
/* out = x, for every type; out = x / p[0], for f32: what expand and spread need. */
tile_fn *tile_copy(tri_type t);
extern tile_fn *const tile_divide;

/* Tiles to and from the storage types bf16 and f16. */
void tile_widen(tri_type type, float *to, const void *from, size_t n);
void tile_narrow(tri_type type, void *to, const float *from, size_t n);

#endif
