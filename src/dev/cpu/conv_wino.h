/* SPDX-License-Identifier: Apache-2.0
 * What Winograd's ways F(4x4, 3x3) have in common: patches of 6x6 inputs, how they are transformed,
 * and where the tiles of 4x4 outputs are that they belong to. The points of interpolation are 0,
 * +-5/8, +-3/2 and infinity, which cost half the accuracy that 0, +-1, +-2 do. */
#ifndef DEV_CPU_CONV_WINO_H
#define DEV_CPU_CONV_WINO_H

#include "dev/cpu/gemm.h"
#include "dev/cpu/vec.h"

#define BLOCK 16 /* channels that lie together */
#define TILE 4
#define PATCH 6
#define SLICES (PATCH * PATCH)
#define UNEVEN \
    16 /* floats between slices, so that they do not fall on the same places of a cache */

/* [n, channels, h, w], plain or in blocks. */
struct plane {
    int64_t channels, h, w;
    int64_t place;   /* elements from one place to the next: BLOCK, or 1 if plain */
    int64_t channel; /* and from one channel to the next, if plain */
};

/* How planes of outputs are cut into tiles. */
struct tiling {
    int64_t down, across, all; /* of a plane; of all samples */
};

/* ---- the points, and patches of a line ---- */

#define A 0.625f
#define B 1.5f
#define A2 (A * A)
#define B2 (B * B)
/* What their polynomials are divided by. */
#define N0 (A2 * B2)
#define NA (2 * A2 * (A2 - B2))
#define NB (2 * B2 * (B2 - A2))

INLINE void patch_line(const vec d[PATCH], vec out[PATCH]) {
    const vec even_a = vec_fma(vec_set(-B2), d[2], d[4]), odd_a = vec_fma(vec_set(-B2), d[1], d[3]);
    const vec even_b = vec_fma(vec_set(-A2), d[2], d[4]), odd_b = vec_fma(vec_set(-A2), d[1], d[3]);
    out[0] = vec_fma(vec_set(A2 * B2), d[0], vec_fma(vec_set(-(A2 + B2)), d[2], d[4]));
    out[1] = vec_fma(vec_set(A), odd_a, even_a);
    out[2] = vec_fma(vec_set(-A), odd_a, even_a);
    out[3] = vec_fma(vec_set(B), odd_b, even_b);
    out[4] = vec_fma(vec_set(-B), odd_b, even_b);
    out[5] = vec_fma(vec_set(A2 * B2), d[1], vec_fma(vec_set(-(A2 + B2)), d[3], d[5]));
}

/* n x n elements to m x m: lines of a column j, then lines of a row i. `load` is an element (i, j);
 * `store` sees an element v of the outcome. */
#define BOTH_WAYS(line, n, m, load, store)                                                  \
    do {                                                                                    \
        vec half[m][n];                                                                     \
        for (int j = 0; j < (n); j++) {                                                     \
            vec in[n], out[m];                                                              \
            for (int i = 0; i < (n); i++) in[i] = load;                                     \
            line(in, out);                                                                  \
            for (int i = 0; i < (m); i++) half[i][j] = out[i];                              \
        }                                                                                   \
        for (int i = 0; i < (m); i++) {                                                     \
            vec out[m];                                                                     \
            line(half[i], out);                                                             \
            for (int j = 0; j < (m); j++) {                                                 \
                const vec v = out[j];                                                       \
                store;                                                                      \
            }                                                                               \
        }                                                                                   \
    } while (0)

/* ---- patches ---- */

struct at {
    int64_t sample, row, column; /* of a tile's first output */
};

INLINE struct at tile_at(const struct tiling *t, int64_t tile) {
    const int64_t plane = t->down * t->across;
    return (struct at){tile / plane, tile % plane / t->across * TILE, tile % t->across * TILE};
}

INLINE struct tiling tiling_of(int64_t samples, int64_t h, int64_t w) {
    struct tiling t = {(h + TILE - 1) / TILE, (w + TILE - 1) / TILE, 0};
    t.all = samples * t.down * t.across;
    return t;
}

INLINE bool inside(int64_t at, int64_t length) { return at >= 0 && at < length; }

/* One place of 16 channels. */
INLINE vec get(const struct plane *p, const float *plane, int64_t row, int64_t column, int64_t lane,
               bool blocks) {
    const float *from = plane + (row * p->w + column) * p->place;
    if (blocks) return *(const vec_at *)(from + lane);
    vec v = {0};
    for (int i = 0; i < VEC; i++) v[i] = from[(lane + i) * p->channel];
    return v;
}

INLINE void patch_any(const struct plane *p, const float *plane, int64_t row, int64_t column,
                      float *to, int64_t slice, const bool blocks, const bool whole) {
    for (int64_t lane = 0; lane < BLOCK; lane += VEC)
        BOTH_WAYS(patch_line, PATCH, PATCH,
                  whole || (inside(row + i, p->h) && inside(column + j, p->w))
                      ? get(p, plane, row + i, column + j, lane, blocks) : (vec){0},
                  *(vec_at *)(to + (i * PATCH + j) * slice + lane) = v);
}

/* 16 channels of the patch whose first place is (row, column): a vector for each of 36 slices. */
static void patch(const struct plane *p, const float *plane, int64_t row, int64_t column, float *v,
                  int64_t slice) {
    const bool whole = row >= 0 && row + PATCH <= p->h && column >= 0 && column + PATCH <= p->w;
    if (p->place == 1)
        patch_any(p, plane, row, column, v, slice, false, false);
    else if (whole)
        patch_any(p, plane, row, column, v, slice, true, true);
    else
        patch_any(p, plane, row, column, v, slice, true, false);
}

/* The n tiles from `first` on: v [slice, tile, channel]. Rows and columns begin up and left of a
 * tile. */
static void patches(const struct plane *p, const struct tiling *t, int64_t up, int64_t left,
                    const float *all, int64_t first, int64_t n, float *v, int64_t slice) {
    for (int64_t k = 0; k < n; k++) {
        const struct at at = tile_at(t, first + k);
        for (int64_t c = 0; c < p->channels; c += BLOCK)
            patch(p, all + (at.sample * p->channels + c) * p->h * p->w, at.row - up,
                  at.column - left, v + k * p->channels + c, slice);
    }
}

#endif
