/* SPDX-License-Identifier: Apache-2.0
 * Tile functions: the arithmetic of every elementwise operator, independent of memory formats. A
 * tile is a run of up to TILE elements in the order of the output. Tile functions know nothing of
 * shapes, broadcasting or storage: the caller copies every input into a contiguous run. In a tile,
 * bf16 and f16 are f32 and bool is u8. So functions can be chained, with one's output tile as the
 * next one's input, without going through memory. */
#ifndef DEV_CPU_TILE_H
#define DEV_CPU_TILE_H

#include "dev/cpu/cpu.h"

#define TILE 1024 /* 4 KB of f32: a few tiles fit the first-level cache */

enum tile_type { TILE_F32, TILE_I32, TILE_I64, TILE_U8, TILE_TYPES };
enum tile_type tile_type(tri_type t);
static inline size_t tile_size(enum tile_type t) {
    return t == TILE_U8 ? 1 : t == TILE_I64 ? 8 : 4;
}

/* out[i] = f(in[0][i], in[1][i], ...) for i < n. out may be an input with elements of the same
 * size. p: the values of the operator's attributes. */
typedef void tile_fn(void *out, const void *const *in, const float *p, size_t n);

/* Which input is a single element instead of a run: none, the last, the one before it. */
enum tile_form { TILE_RUNS, TILE_LAST, TILE_BEFORE, TILE_FORMS };

struct tile_row {
    const char *op;
    tile_fn *fn[TILE_TYPES][TILE_FORMS]; /* by the type of the last input */
    const char *attribute[2];
};

/* The functions for one instruction set. */
struct tile_set {
    const struct tile_row *rows;
    int n_rows;
    tile_fn *cast[TILE_TYPES][TILE_TYPES + 1]; /* the last: to bool */
    tile_fn *copy[TILE_TYPES];
    tile_fn *divide; /* by p[0] */
    struct tile_storage {
        void (*widen)(float *to, const void *from, size_t n);
        void (*narrow)(void *to, const float *from, size_t n);
        void (*round)(float *x, size_t n); /* the rounding of storage */
    } storage[2]; /* of bf16 and f16 */
};

/* The node's operator has tile functions, if perhaps not for these types. */
bool tile_has(const tri_node *n);
/* The function for a node's operator and types; null if it does not exist in this form. */
tile_fn *tile_find(const tri_node *n, enum tile_form form);
/* The node's attributes in the form that the function needs. */
void tile_params(const tri_node *n, float p[2]);
/* out = x, for every type; and out = x / p[0], for f32: for expand and spread. */
tile_fn *tile_copy(tri_type t);
tile_fn *tile_divide(void);

/* Conversion to and from the storage types bf16 and f16. */
struct tile_storage tile_storage(tri_type type);

#endif
