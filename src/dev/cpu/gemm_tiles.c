/* SPDX-License-Identifier: Apache-2.0
 * Products of bf16 with AMX, in the order that docs/arithmetic.md gives them. A tile of a has 16
 * rows of a group of k, a tile of b the group's pairs of 16 columns, and four tiles of c stay in
 * registers over a block of k. Both factors are packed in tiles, 1 KiB each, one after the other
 * along k; what is missing at the end of a group, or of rows and columns, is zeros. */
#include "dev/cpu/gemm_tiles.h"

#include <immintrin.h>
#include <string.h>

#include "dev/cpu/vec.h"

#define SIDE 16           /* rows of a tile, columns of b and c */
#define GROUP 32          /* k of a tile of a and b */
#define TILE (SIDE *GROUP) /* elements */

/* Four tiles of c, then two of a, two of b: all of 16 rows of 64 bytes. */
static const struct {
    uint8_t palette, start_row, none[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} tiles_used __attribute__((aligned(64))) = {
    1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

/* ---- packing ---- */

/* Transposes 16 rows of 16 words. */
INLINE void turn(__m512i r[SIDE]) {
    __m512i t[SIDE];
    UNROLL for (int i = 0; i < SIDE; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    UNROLL for (int i = 0; i < SIDE; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
        r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
        r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
    }
}

/* Of 16 lines, `lines` exist, each with k elements, which lie together. */
INLINE void take_lines(const uint16_t *from, int64_t line, int64_t lines, int64_t k,
                       __m512i r[SIDE]) {
    const __mmask32 some = k < GROUP ? (__mmask32)((1u << k) - 1) : ~0u;
    UNROLL for (int i = 0; i < SIDE; i++)
        r[i] = i < lines ? _mm512_maskz_loadu_epi16(some, from + i * line) : _mm512_setzero_si512();
}

INLINE __m512i take_half_line(const uint16_t *from, __mmask16 some) {
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, from));
}

/* Of k steps, `step` apart, pairs: of each the elements of both steps alternate. Of the 16 that lie
 * together in a step, `lines` exist. */
INLINE void take_pairs(const uint16_t *from, int64_t step, int64_t lines, int64_t k,
                       __m512i r[SIDE]) {
    const __mmask16 some = lines < SIDE ? (__mmask16)((1u << lines) - 1) : 0xffff;
    UNROLL for (int i = 0; i < SIDE; i++, from += 2 * step) {
        r[i] = 2 * i < k ? take_half_line(from, some) : _mm512_setzero_si512();
        if (2 * i + 1 < k)
            r[i] = _mm512_or_si512(r[i], _mm512_slli_epi32(take_half_line(from + step, some), 16));
    }
}

/* Packs `lines` rows of a, or columns of b: of a tile's 16 lines the 32 of a group, or the pairs of
 * the group for all 16. */
INLINE void pack(const bool pairs, const uint16_t *x, int64_t line, int64_t step, int64_t lines,
                 int64_t k, uint16_t *to) {
    for (int64_t i = 0; i < lines; i += SIDE)
        for (int64_t g = 0; g < k; g += GROUP, to += TILE) {
            const uint16_t *from = x + i * line + g * step;
            __m512i r[SIDE];
            if (step == 1) take_lines(from, line, lines - i, k - g, r);
            else take_pairs(from, step, lines - i, k - g, r);
            if (pairs == (step == 1)) turn(r);
            UNROLL for (int row = 0; row < SIDE; row++)
                _mm512_store_si512(to + row * GROUP, r[row]);
        }
}

/* ---- tiles of c ---- */

/* Adds to c, or sets it: rows and columns of one or two tiles. From a tile of a or b to that of the
 * next lines there are `next` elements. */
INLINE void multiply(const int down, const int across, const uint16_t *a, const uint16_t *b,
                     int64_t next, float *c, int64_t c_row, bool add) {
    const size_t row = (size_t)c_row * sizeof *c;
    float *below = c + SIDE * c_row;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (add) {
        _tile_loadd(0, c, row);
        if (across > 1) _tile_loadd(1, c + SIDE, row);
        if (down > 1) _tile_loadd(2, below, row);
        if (down > 1 && across > 1) _tile_loadd(3, below + SIDE, row);
    }
    for (const uint16_t *end = a + next; a < end; a += TILE, b += TILE) {
        _tile_loadd(4, a, 64);
        _tile_loadd(6, b, 64);
        _tile_dpbf16ps(0, 4, 6);
        if (across > 1) {
            _tile_loadd(7, b + next, 64);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (down > 1) {
            _tile_loadd(5, a + next, 64);
            _tile_dpbf16ps(2, 5, 6);
            if (across > 1) _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, c, row);
    if (across > 1) _tile_stored(1, c + SIDE, row);
    if (down > 1) _tile_stored(2, below, row);
    if (down > 1 && across > 1) _tile_stored(3, below + SIDE, row);
}

static void multiply_any(int64_t rows, int64_t columns, const uint16_t *a, const uint16_t *b,
                         int64_t next, float *c, int64_t c_row, bool add) {
    if (rows > SIDE && columns > SIDE) multiply(2, 2, a, b, next, c, c_row, add);
    else if (rows > SIDE) multiply(2, 1, a, b, next, c, c_row, add);
    else if (columns > SIDE) multiply(1, 2, a, b, next, c, c_row, add);
    else multiply(1, 1, a, b, next, c, c_row, add);
}

static void copy_rows(const float *from, int64_t from_row, int64_t rows, int64_t columns,
                      float *to, int64_t to_row) {
    for (int64_t r = 0; r < rows; r++, from += from_row, to += to_row)
        memcpy(to, from, (size_t)columns * sizeof *to);
}

/* The same where c has fewer rows or columns than tiles. */
static void multiply_edge(int64_t rows, int64_t columns, const uint16_t *a, const uint16_t *b,
                          int64_t next, float *c, int64_t c_row, bool add) {
    float whole[4 * SIDE * SIDE];
    if (add) copy_rows(c, c_row, rows, columns, whole, 2 * SIDE);
    multiply_any(rows, columns, a, b, next, whole, 2 * SIDE, add);
    copy_rows(whole, 2 * SIDE, rows, columns, c, c_row);
}

void gemm_tiles(const struct product *p, float *scratch) {
    _tile_loadconfig(&tiles_used);
    for (int64_t first = 0; first < p->k; first += GEMM_TILES_BLOCK) {
        const int64_t k = least(p->k - first, GEMM_TILES_BLOCK);
        const int64_t next = (k + GROUP - 1) / GROUP * TILE;
        uint16_t *a = (uint16_t *)(void *)scratch, *b = a + (p->m + SIDE - 1) / SIDE * next;
        pack(false, (const uint16_t *)p->a + first * p->a_k, p->a_row, p->a_k, p->m, k, a);
        for (int64_t n = 0; n < p->n; n += 2 * SIDE) {
            const int64_t columns = least(p->n - n, 2 * SIDE);
            pack(true, (const uint16_t *)p->b + first * p->b_k + n * p->b_column, p->b_column,
                 p->b_k, columns, k, b);
            for (int64_t m = 0; m < p->m; m += 2 * SIDE) {
                const int64_t rows = least(p->m - m, 2 * SIDE);
                const bool whole = rows % SIDE == 0 && columns % SIDE == 0;
                (whole ? multiply_any : multiply_edge)(rows, columns, a + m / SIDE * next, b, next,
                                                       p->c + m * p->c_row + n, p->c_row,
                                                       first > 0);
            }
        }
    }
    _tile_release();
}
