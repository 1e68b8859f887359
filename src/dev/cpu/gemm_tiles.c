/* SPDX-License-Identifier: Apache-2.0
 * Products of bf16 with AMX, in the order that docs/arithmetic.md gives them. A tile of a has 16
 * rows of a group of k, a tile of b the group's pairs of 16 columns, and four tiles of c stay in
 * registers over a block of k. Factors that are not in tiles are packed in tiles, 1 KiB each, one
 * after the other along k; what is missing at the end of a group is zeros. */
#include "dev/cpu/gemm_tiles.h"

#include <immintrin.h>
#include <string.h>

#include "dev/cpu/half.h"

#define SIDE 16 /* rows of a tile, columns of b and c */

/* Four tiles of c, then two of a, two of b: all of 16 rows of 64 bytes. */
static const struct {
    uint8_t palette, start_row, none[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} tiles_used __attribute__((aligned(64))) = {
    1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

/* ---- packing ---- */

static __mmask32 first_32(int64_t n) { return n < HALF_GROUP ? (__mmask32)((1u << n) - 1) : ~0u; }

/* 16 lines of a group's k, which lie together. Of a part of them, zeros after the last. */
INLINE const void *take_lines(const uint16_t *from, int64_t line, int64_t lines, int64_t k,
                              float *spare, int64_t *row) {
    *row = line * (int64_t)sizeof *from;
    if (lines >= SIDE && k >= HALF_GROUP) return from;
    *row = HALF_GROUP * sizeof *from;
    for (int i = 0; i < SIDE; i++)
        _mm512_store_si512(spare + i * SIDE, i < lines ? _mm512_maskz_loadu_epi16(
                                                             first_32(k), from + i * line)
                                                       : _mm512_setzero_si512());
    return spare;
}

/* Pairs of a group's k, which are `step` apart, of 16 lines that lie together. */
INLINE void take_pairs(const uint16_t *from, int64_t step, int64_t lines, int64_t k, float *to) {
    if (lines >= SIDE && k >= HALF_GROUP) {
        UNROLL for (int i = 0; i < SIDE; i++, from += 2 * step)
            _mm512_store_si512(to + i * SIDE, half_pair(from, from + step));
        return;
    }
    const __mmask32 some = first_32(least(lines, SIDE));
    for (int i = 0; i < SIDE; i++, from += 2 * step) {
        uint16_t pair[2][HALF_GROUP] __attribute__((aligned(64))) = {0};
        for (int odd = 0; odd < 2 && 2 * i + odd < k; odd++)
            _mm512_store_si512(pair[odd], _mm512_maskz_loadu_epi16(some, from + odd * step));
        _mm512_store_si512(to + i * SIDE, half_pair(pair[0], pair[1]));
    }
}

/* Packs `lines` rows of a, or columns of b: of a tile's 16 lines the 32 of a group, or the pairs of
 * the group for all 16. */
INLINE void pack(const bool pairs, const uint16_t *x, int64_t line, int64_t step, int64_t lines,
                 int64_t k, float *to) {
    float spare[GEMM_TILE] __attribute__((aligned(64)));
    for (int64_t i = 0; i < lines; i += SIDE)
        for (int64_t g = 0; g < k; g += HALF_GROUP, to += GEMM_TILE) {
            const uint16_t *from = x + i * line + g * step;
            if (step != 1) {
                take_pairs(from, step, lines - i, k - g, pairs ? to : spare);
                if (!pairs) half_turn(spare, SIDE * sizeof *spare, to);
                continue;
            }
            int64_t row;
            const char *at = take_lines(from, line, lines - i, k - g, spare, &row);
            if (pairs) half_turn(at, row, to);
            else
                UNROLL for (int r = 0; r < SIDE; r++) memcpy(to + r * SIDE, at + r * row, 64);
        }
}

/* ---- tiles of c ---- */

/* What a product of up to two tiles of rows by two of columns adds up, group by group. Rows of a
 * tile of b lie 64 bytes apart. */
struct terms {
    const float *a[2], *b[2];
    size_t a_row; /* bytes */
    const struct gemm_run *run;
    int64_t n;
};

/* Adds to c, or sets it. */
INLINE void multiply(const int down, const int across, const struct terms *t, float *c,
                     int64_t c_row, int64_t c_down, int64_t c_panel, bool add) {
    const size_t row = (size_t)c_row * sizeof *c;
    float *below = c + c_down;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (add) {
        _tile_loadd(0, c, row);
        if (across > 1) _tile_loadd(1, c + c_panel, row);
        if (down > 1) _tile_loadd(2, below, row);
        if (down > 1 && across > 1) _tile_loadd(3, below + c_panel, row);
    }
    for (const struct gemm_run *run = t->run; run < t->run + t->n; run++) {
        _tile_loadd(4, t->a[0] + run->a, t->a_row);
        _tile_loadd(6, t->b[0] + run->b, 64);
        _tile_dpbf16ps(0, 4, 6);
        if (across > 1) {
            _tile_loadd(7, t->b[1] + run->b, 64);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (down > 1) {
            _tile_loadd(5, t->a[1] + run->a, t->a_row);
            _tile_dpbf16ps(2, 5, 6);
            if (across > 1) _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, c, row);
    if (across > 1) _tile_stored(1, c + c_panel, row);
    if (down > 1) _tile_stored(2, below, row);
    if (down > 1 && across > 1) _tile_stored(3, below + c_panel, row);
}

static void multiply_any(int64_t rows, int64_t columns, const struct terms *t, float *c,
                         int64_t c_row, int64_t c_down, int64_t c_panel, bool add) {
    if (rows > SIDE && columns > SIDE) multiply(2, 2, t, c, c_row, c_down, c_panel, add);
    else if (rows > SIDE) multiply(2, 1, t, c, c_row, c_down, c_panel, add);
    else if (columns > SIDE) multiply(1, 2, t, c, c_row, c_down, c_panel, add);
    else multiply(1, 1, t, c, c_row, c_down, c_panel, add);
}

/* Rows of c by one or two panels, to or from rows of two tiles side by side. */
static void copy_rows(bool back, float *const *c, int64_t c_panel, int64_t rows, int64_t columns,
                      float *whole) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t n = 0; n < columns; n += SIDE) {
            float *at = c[r] + n / SIDE * c_panel, *tile = whole + r * 2 * SIDE + n;
            memcpy(back ? at : tile, back ? tile : at,
                   (size_t)least(columns - n, SIDE) * sizeof *at);
        }
}

/* Up to two tiles of rows by two of columns, of which `rows` and `columns` exist. */
static void multiply_rows(int64_t rows, int64_t columns, const struct terms *t, float *const *c,
                          int64_t c_panel, bool add) {
    const int64_t c_row = rows > 1 ? c[1] - c[0] : 0;
    bool whole = rows % SIDE == 0 && columns % SIDE == 0;
    for (int64_t r = 1; r < rows && whole; r++) whole = c[r] - c[r - 1] == c_row;
    if (whole) {
        multiply_any(rows, columns, t, c[0], c_row, SIDE * c_row, c_panel, add);
        return;
    }
    float tiles[4 * SIDE * SIDE];
    if (add) copy_rows(false, c, c_panel, rows, columns, tiles);
    multiply_any(rows, columns, t, tiles, 2 * SIDE, 2 * SIDE * SIDE, SIDE, add);
    copy_rows(true, c, c_panel, rows, columns, tiles);
}

/* ---- products in runs ---- */

/* Turns what two tiles of rows read; the runs then are those of `own`. */
static void turn_rows(const struct gemm_block *g, int64_t m, int64_t rows,
                      float (*turned)[GEMM_TILES_RUNS][GEMM_TILE], struct gemm_run *own) {
    for (int64_t i = 0; i < g->runs; i++) {
        own[i] = (struct gemm_run){i * GEMM_TILE, g->run[i].b, 0};
        for (int64_t k = 0; k * SIDE < rows; k++)
            half_turn(g->a + g->run[i].a + m + k * SIDE, g->a_k * (int64_t)sizeof *g->a,
                      turned[k][i]);
    }
}

void gemm_tiles_runs(const struct gemm_block *g) {
    float turned[2][GEMM_TILES_RUNS][GEMM_TILE] __attribute__((aligned(64)));
    struct gemm_run own[GEMM_TILES_RUNS];
    _tile_loadconfig(&tiles_used);
    for (int64_t m = 0; m < g->m; m += 2 * SIDE) {
        const int64_t rows = least(g->m - m, 2 * SIDE);
        struct terms t = {.a_row = 64, .run = g->run, .n = g->runs};
        if (g->a_k != 1) turn_rows(g, m, rows, turned, own), t.run = own;
        for (int64_t k = 0; k < 2; k++)
            t.a[k] = g->a_k == 1 ? g->a + (m + k * SIDE) * HALF_STEPS : turned[k][0];
        for (int64_t n = 0; n < g->n; n += 2 * SIDE) {
            const int64_t columns = least(g->n - n, 2 * SIDE);
            float *c[2 * SIDE];
            for (int64_t k = 0; k < 2; k++) t.b[k] = g->b + (n / SIDE + k) * g->b_panel;
            for (int64_t r = 0; r < rows; r++) c[r] = g->c[m + r] + n / SIDE * g->c_panel;
            /* The last panel of c is whole. */
            multiply_rows(rows, (columns + SIDE - 1) / SIDE * SIDE, &t, c, g->c_panel, g->add);
        }
    }
    _tile_release();
}

/* ---- whole tiles ---- */

static struct terms terms_at(const struct gemm_tiled *g, int64_t m, int64_t n) {
    struct terms t = {.a_row = 64, .run = g->run, .n = g->runs};
    for (int64_t k = 0; k < 2; k++) {
        t.a[k] = g->a + (m + k * SIDE) * HALF_STEPS;
        t.b[k] = g->b + (n / SIDE + k) * g->b_panel;
    }
    return t;
}

void gemm_tiles_sums(const struct gemm_tiled *g, float *c, int64_t c_down, bool add) {
    _tile_loadconfig(&tiles_used);
    for (int64_t n = 0; n < g->n; n += 2 * SIDE)
        for (int64_t m = 0; m < g->m; m += 2 * SIDE) {
            const struct terms t = terms_at(g, m, n);
            multiply_any(g->m - m, g->n - n, &t, c + m / SIDE * c_down + n * SIDE, SIDE, c_down,
                         SIDE * SIDE, add);
        }
    _tile_release();
}

/* Sums are no subnormals, which the instruction would take for zeros. */
INLINE void round_sums(__m512 x, uint16_t *to) {
    _mm256_storeu_si256((void *)to, (__m256i)_mm512_cvtneps_pbh(x));
}

/* Of up to two tiles of rows and columns. */
static void round_rows(const struct gemm_tiled *g, const struct gemm_rounded *to, int64_t m,
                       int64_t n, const float *tiles) {
    const int64_t rows = least(g->m - m, 2 * SIDE);
    for (int64_t k = 0; k < 2 && n + k * SIDE < g->n; k++) {
        uint16_t *c = to->c + (n / SIDE + k) * to->c_panel;
        const vec bias = to->bias ? vec_load(TRI_BF16, to->bias, n + k * SIDE) : (vec){0};
        for (int64_t r = 0; r < rows; r++) {
            const vec x = *(const vec_at *)(tiles + r * 2 * SIDE + k * SIDE);
            if (to->row[m + r] < 0) continue;
            if (to->bias) vec_store(TRI_BF16, c, to->row[m + r], x + bias);
            else round_sums((__m512)x, c + to->row[m + r]);
        }
    }
}

void gemm_tiles_rounded(const struct gemm_tiled *g, const struct gemm_rounded *to) {
    float tiles[4 * SIDE * SIDE] __attribute__((aligned(64)));
    _tile_loadconfig(&tiles_used);
    for (int64_t n = 0; n < g->n; n += 2 * SIDE)
        for (int64_t m = 0; m < g->m; m += 2 * SIDE) {
            const struct terms t = terms_at(g, m, n);
            multiply_any(g->m - m, g->n - n, &t, tiles, 2 * SIDE, 2 * SIDE * SIDE, SIDE, false);
            round_rows(g, to, m, n, tiles);
        }
    _tile_release();
}

/* ---- large products ---- */

/* Whole tiles of a, whose k lie together. */
static bool in_place(const struct product *p) {
    return p->a_k == 1 && p->m % SIDE == 0 && p->k % HALF_GROUP == 0;
}

/* Up to two tiles of rows and columns, over the k of a block. The last one rounds them. */
static void multiply_block(const struct product *p, const struct terms *t, int64_t m, int64_t n,
                           bool add, bool last) {
    const int64_t rows = least(p->m - m, 2 * SIDE), columns = least(p->n - n, 2 * SIDE);
    float *c[2 * SIDE], once[4 * SIDE * SIDE] __attribute__((aligned(64)));
    for (int64_t r = 0; r < rows; r++)
        c[r] = last && !add ? once + r * 2 * SIDE : p->c + (m + r) * p->c_row + n;
    multiply_rows(rows, columns, t, c, SIDE, add);
    for (int64_t r = 0; last && r < rows; r++) {
        uint16_t *y = p->y + (m + r) * p->y_row + n;
        int64_t i = 0;
        for (; i + SIDE <= columns; i += SIDE) round_sums(_mm512_loadu_ps(c[r] + i), y + i);
        if (i < columns) gemm_round(c[r] + i, columns - i, y + i);
    }
}

void gemm_tiles(const struct product *p, float *scratch) {
    const bool placed = in_place(p);
    _tile_loadconfig(&tiles_used);
    for (int64_t first = 0; first < p->k; first += GEMM_TILES_K) {
        const int64_t k = least(p->k - first, GEMM_TILES_K);
        struct gemm_run run[GEMM_TILES_K / HALF_GROUP];
        struct terms t = {.a_row = placed ? (size_t)p->a_row * 2 : 64, .run = run};
        for (; t.n * HALF_GROUP < k; t.n++)
            run[t.n] = (struct gemm_run){t.n * (placed ? SIDE : GEMM_TILE), t.n * GEMM_TILE, 0};
        const int64_t next = t.n * GEMM_TILE;
        const uint16_t *from = (const uint16_t *)p->a + first * p->a_k;
        float *a = scratch, *b = a + (placed ? 0 : (p->m + SIDE - 1) / SIDE * next);
        if (!placed) pack(false, from, p->a_row, p->a_k, p->m, k, a);
        for (int64_t n = 0; n < p->n; n += 2 * SIDE) {
            pack(true, (const uint16_t *)p->b + first * p->b_k + n * p->b_column, p->b_column,
                 p->b_k, least(p->n - n, 2 * SIDE), k, b);
            for (int64_t m = 0; m < p->m; m += 2 * SIDE) {
                for (int64_t i = 0; i < 2; i++) {
                    const void *rows = placed ? (const void *)(from + (m + i * SIDE) * p->a_row)
                                              : a + (m / SIDE + i) * next;
                    t.a[i] = rows;
                    t.b[i] = b + i * next;
                }
                multiply_block(p, &t, m, n, first > 0, first + k == p->k);
            }
        }
    }
    _tile_release();
}
