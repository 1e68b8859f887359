/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/cpu/conv_dw.h"

#include "dev/cpu/conv_wino.h"

#define CHUNK 64 /* tiles that are transformed before they are multiplied; 32 to 256 were alike */

struct job {
    struct plane x, dy;
    struct tiling tiles;
    int64_t up, left;
    struct cpu_range r; /* output channels */
    int64_t chunk, v, z, sum; /* tiles of a chunk; floats from slice to slice */
};

/* ---- transforms ---- */

/* A line of a tile of dy to six. */
INLINE void spread_line(const vec y[TILE], vec out[PATCH]) {
    const vec even_a = vec_fma(vec_set(A2), y[2], y[0]), even_b = vec_fma(vec_set(B2), y[2], y[0]);
    const vec odd_a = vec_fma(vec_set(A2), y[3], y[1]), odd_b = vec_fma(vec_set(B2), y[3], y[1]);
    out[0] = y[0];
    out[1] = vec_fma(vec_set(A), odd_a, even_a);
    out[2] = vec_fma(vec_set(-A), odd_a, even_a);
    out[3] = vec_fma(vec_set(B), odd_b, even_b);
    out[4] = vec_fma(vec_set(-B), odd_b, even_b);
    out[5] = y[3];
}

/* Six to the three of the weight. */
INLINE void weight_back_line(const vec u[PATCH], vec out[3]) {
    const vec s1 = (u[1] + u[2]) * vec_set(1 / NA), d1 = (u[1] - u[2]) * vec_set(1 / NA);
    const vec s2 = (u[3] + u[4]) * vec_set(1 / NB), d2 = (u[3] - u[4]) * vec_set(1 / NB);
    out[0] = vec_fma(vec_set(1 / N0), u[0], s1 + s2);
    out[1] = vec_fma(vec_set(A), d1, vec_set(B) * d2);
    out[2] = vec_fma(vec_set(A2), s1, vec_fma(vec_set(B2), s2, u[5]));
}

/* 16 channels of the tile whose first place is (row, column). */
INLINE void tile_spread(const struct plane *p, const float *plane, int64_t row, int64_t column,
                        float *z, int64_t slice) {
    for (int64_t lane = 0; lane < BLOCK; lane += VEC)
        BOTH_WAYS(spread_line, TILE, PATCH,
                  row + i < p->h && column + j < p->w
                      ? get(p, plane, row + i, column + j, lane, true)
                      : (vec){0},
                  *(vec_at *)(z + (i * PATCH + j) * slice + lane) = v);
}

/* z: [slice, tile, output]. */
static void tiles_spread(const struct job *j, const float *all, int64_t first, int64_t n,
                         float *z) {
    const struct plane *p = &j->dy;
    const int64_t outputs = j->r.end - j->r.begin;
    for (int64_t k = 0; k < n; k++) {
        const struct at at = tile_at(&j->tiles, first + k);
        for (int64_t o = 0; o < outputs; o += BLOCK)
            tile_spread(&j->dy, all + (at.sample * p->channels + j->r.begin + o) * p->h * p->w,
                        at.row, at.column, z + k * outputs + o, j->z);
    }
}

/* sums [slice, output, channel] to sum [output, 3, 3, channel]. */
static void weights_back(const struct job *job, const float *sums, float *sum) {
    const int64_t channels = job->x.channels;
    for (int64_t o = 0; o < job->r.end - job->r.begin; o++)
        for (int64_t c = 0; c < channels; c += VEC)
            BOTH_WAYS(weight_back_line, PATCH, 3,
                      *(const vec_at *)(sums + (i * PATCH + j) * job->sum + o * channels + c),
                      *(vec_at *)(sum + (o * 9 + i * 3 + j) * channels + c) = v);
}

/* ---- sums ---- */

static void add_products(const struct job *j, const float *v, const float *z, int64_t n, bool add,
                         float *sums) {
    const int64_t outputs = j->r.end - j->r.begin;
    struct gemm g = {.m = outputs,
                     .n = j->x.channels,
                     .k = n,
                     .a_row = 1,
                     .a_k = outputs,
                     .b_k = j->x.channels,
                     .b_panel = GEMM_PANEL,
                     .c_row = j->x.channels,
                     .add = add};
    for (int64_t i = 0; i < SLICES; i++) {
        g.a = z + i * j->z;
        g.b = v + i * j->v;
        g.c = sums + i * j->sum;
        gemm_direct(&g);
    }
}

static struct job job_of(const struct window *w, int64_t outputs) {
    struct job j = {.x = {w->c, w->h, w->w, BLOCK, 0}, .dy = {w->o, w->oh, w->ow, BLOCK, 0},
                    .tiles = tiling_of(w->n, w->oh, w->ow), .up = w->ph, .left = w->pw};
    j.chunk = j.tiles.all < CHUNK ? j.tiles.all : CHUNK;
    j.v = j.chunk * w->c + UNEVEN;
    j.z = j.chunk * outputs + UNEVEN;
    j.sum = outputs * w->c + UNEVEN;
    return j;
}

static size_t scratch_of(const struct window *w, bool half, int64_t outputs) {
    (void)half;
    const struct job j = job_of(w, outputs);
    return (size_t)(SLICES * (j.v + j.z + j.sum)) * sizeof(float);
}

static void sum_up(const struct window *w, bool half, struct cpu_range r, const void *dy,
                   const void *x, float *sum, void *scratch) {
    (void)half;
    struct job j = job_of(w, r.end - r.begin);
    j.r = r;
    float *v = scratch, *z = v + SLICES * j.v, *sums = z + SLICES * j.z;
    for (int64_t at = 0, n; at < j.tiles.all; at += n) {
        n = j.tiles.all - at < j.chunk ? j.tiles.all - at : j.chunk;
        patches(&j.x, &j.tiles, j.up, j.left, x, at, n, v, j.v);
        tiles_spread(&j, dy, at, n, z);
        add_products(&j, v, z, n, at > 0, sums);
    }
    weights_back(&j, sums, sum);
}

const struct conv_dw_way FOR_ISA(conv_wino_dw) = {scratch_of, sum_up};
