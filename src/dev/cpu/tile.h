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

/* out[i] = f(in[0][i], in[1][i], ...) for i < n. out may be an input whose elements have the same
 * size. p: the values of the operator's attributes. */
typedef void tile_fn(void *out, const void *const *in, const float *p, size_t n);

/* Which input is a single element instead of a run: none, the last, the one before it. */
enum tile_form { TILE_RUNS, TILE_LAST, TILE_BEFORE, TILE_FORMS };

struct tile_row {
    const char *op;
    tile_fn *fn[TILE_TYPES][TILE_FORMS]; /* by the type of the last input */
    const char *attribute[2];
};

/* The functions for one set of instructions. */
struct tile_set {
    const struct tile_row *rows;
    int n_rows;
    tile_fn *cast[TILE_TYPES][TILE_TYPES + 1]; /* the last: to bool */
    tile_fn *copy[TILE_TYPES];
    tile_fn *divide; /* by p[0] */
    struct tile_storage {
        void (*widen)(float *to, const void *from, size_t n);
        void (*narrow)(void *to, const float *from, size_t n);
        void (*round)(float *x, size_t n); /* what storing makes of a value */
    } storage[2]; /* of bf16 and f16 */
};

/* The function for a node's operator and types; null if there is none in this form. */
tile_fn *tile_find(const tri_node *n, enum tile_form form);
/* Attributes of the node as the function wants them. */
void tile_params(const tri_node *n, float p[2]);
/* out = x, for every type; out = x / p[0], for f32: what expand and spread need. */
tile_fn *tile_copy(tri_type t);
tile_fn *tile_divide(void);

/* To and from the storage types bf16 and f16. */
struct tile_storage tile_storage(tri_type type);

#endif
