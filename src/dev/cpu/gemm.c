/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/cpu/gemm.h"

#include "dev/cpu/turn.h"
#include "dev/cpu/vec.h"

#define FIRST_4(X) X(1) X(2) X(3) X(4)
#define FIRST_6(X) FIRST_4(X) X(5) X(6)
#define FIRST_8(X) FIRST_6(X) X(7) X(8)
#define FIRST_14(X) FIRST_8(X) X(9) X(10) X(11) X(12) X(13) X(14)

/* c is computed in tiles of up to ROWS rows of VECS vectors, held in registers; of factors in place
 * up to PLACED_ROWS. */
#if VEC == 16
#define ROWS 14
#define VECS 2
#define PLACED_ROWS 8
#define EVERY_PACKED FIRST_14
#define EVERY_PLACED FIRST_8
#elif VEC == 8 || defined __aarch64__
#define ROWS 6
#define VECS (16 / VEC)
#define PLACED_ROWS 6
#define EVERY_PACKED FIRST_6
#define EVERY_PLACED FIRST_6
#else
#define ROWS 4
#define VECS (16 / VEC)
#define PLACED_ROWS 4
#define EVERY_PACKED FIRST_4
#define EVERY_PLACED FIRST_4
#endif
#define COLUMNS (VECS * VEC)
#define LINE 64

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t within(int64_t x, int64_t most) { return x < 0 ? 0 : least(x, most); }

/* ---- one tile ---- */

struct factors {
    const float *a, *b;
    int64_t a_row, a_k, b_k, b_panel;
};

INLINE vec load(const float *from, bool part, int some) {
    if (part) return vec_take(from, some);
    return *(const vec_at *)from;
}

/* Stores a vector of c, of which `some` floats exist if `part`, or adds to it. */
INLINE void put(vec x, float *c, bool add, bool part, int some) {
    if (add) x += load(c, part, some);
    if (part)
        vec_put(c, some, x);
    else
        *(vec_at *)c = x;
}

/* rows x vecs vectors of c over k. Of each row's last vector only `some` floats exist, if not 0; of
 * b's too, unless it is packed. */
INLINE void tile(const int rows, const int vecs, const bool part, const struct factors *f,
                 float *c, int64_t c_row, int64_t k, bool add, int some) {
    vec acc[ROWS][VECS];
    const float *a = f->a, *b[VECS];
    const int64_t a_row = f->a_row, a_k = f->a_k, b_k = f->b_k;
    UNROLL for (int v = 0; v < vecs; v++)
        b[v] = f->b + v * VEC / GEMM_PANEL * f->b_panel + v * VEC % GEMM_PANEL;
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vecs; v++) acc[r][v] = (vec){0};
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vecs; v += LINE / 4 / VEC)
            __builtin_prefetch(c + r * c_row + v * VEC, 1);
    for (; k > 0; k--, a += a_k) {
        vec row[VECS];
        UNROLL for (int v = 0; v < vecs; v++) {
            row[v] = load(b[v], part && v == vecs - 1, some);
            b[v] += b_k;
        }
        UNROLL for (int r = 0; r < rows; r++) {
            vec x = vec_set(a[r * a_row]);
            UNROLL for (int v = 0; v < vecs; v++) acc[r][v] = vec_fma(x, row[v], acc[r][v]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vecs; v++)
            put(acc[r][v], c + r * c_row + v * VEC, add, some && v == vecs - 1, some);
}

/* The same of a product in slices, for the rows from `top` and the panels from `panel`. */
INLINE void sliced_tile(const int rows, const int vecs, const struct gemm_sliced *g, int64_t top,
                        int64_t panel) {
    vec acc[ROWS][VECS];
    float *const *c = g->c + top;
    const float *from = g->a + top * GEMM_SLICE, *panels = g->b + panel * g->b_panel;
    const int64_t b_panel = g->b_panel, c_at = panel * g->c_panel;
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vecs; v++) {
            acc[r][v] = (vec){0};
            __builtin_prefetch(c[r] + c_at + v * VEC / GEMM_PANEL * g->c_panel, 1);
        }
    for (int64_t s = 0; s < g->slices; s++, from += g->a_slice) {
        const float *a = from, *b = panels + g->b_slice[s];
        UNROLL for (int r = 0; r < rows; r++) /* of the next slice: too short for hardware */
            __builtin_prefetch(from + g->a_slice + r * GEMM_SLICE);
        for (int k = 0; k < GEMM_SLICE; k++, a++, b += GEMM_PANEL) {
            vec row[VECS];
            UNROLL for (int v = 0; v < vecs; v++)
                row[v] = *(const vec_at *)(b + v * VEC / GEMM_PANEL * b_panel +
                                           v * VEC % GEMM_PANEL);
            UNROLL for (int r = 0; r < rows; r++) {
                vec x = vec_set(a[r * GEMM_SLICE]);
                UNROLL for (int v = 0; v < vecs; v++) acc[r][v] = vec_fma(x, row[v], acc[r][v]);
            }
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vecs; v++)
            put(acc[r][v], c[r] + c_at + v * VEC / GEMM_PANEL * g->c_panel + v * VEC % GEMM_PANEL,
                g->add, false, 0);
}

/* The same of a product in segments, for the rows from `top`. */
INLINE void segments_tile(const int rows, const int vecs, const struct gemm_segments *g,
                          int64_t top) {
    vec acc[ROWS][VECS];
    float *c = g->c + top * g->c_row;
    const int64_t b_k = g->b_k, b_panel = g->b_panel, c_row = g->c_row;
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vecs; v++) acc[r][v] = (vec){0};
    for (int64_t s = 0; s < g->n; s++) {
        const float *a = g->a + g->segment[s].a + top, *b = g->b + g->segment[s].b;
        for (int64_t k = g->segment[s].n; k > 0; k--, a += GEMM_PANEL, b += b_k) {
            vec row[VECS];
            UNROLL for (int v = 0; v < vecs; v++)
                row[v] = *(const vec_at *)(b + v * VEC / GEMM_PANEL * b_panel +
                                           v * VEC % GEMM_PANEL);
            UNROLL for (int r = 0; r < rows; r++) {
                vec x = vec_set(a[r]);
                UNROLL for (int v = 0; v < vecs; v++) acc[r][v] = vec_fma(x, row[v], acc[r][v]);
            }
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vecs; v++)
            put(acc[r][v], c + r * c_row + v * VEC, true, false, 0);
}

typedef void tile_fn(const struct factors *f, float *c, int64_t c_row, int64_t k, bool add,
                     int some);

/* Factors in place, where a vector of b may be part of one. */
#define PLACED(rows, vecs, part)                                                            \
    static void placed_##rows##vecs##part(const struct factors *f, float *c, int64_t c_row, \
                                          int64_t k, bool add, int some) {                  \
        tile(rows, vecs, part, f, c, c_row, k, add, some);                                  \
    }
/* Packed factors: the rows of a lie beside each other, those of b in panels. */
#define PACKED(rows, vecs)                                                                  \
    static void packed_##rows##vecs(const struct factors *f, float *c, int64_t c_row,       \
                                    int64_t k, bool add, int some) {                        \
        const struct factors p = {f->a, f->b, 1, rows, GEMM_PANEL, f->b_panel};             \
        tile(rows, vecs, false, &p, c, c_row, k, add, some);                                \
    }
#if VECS == 2
#define EVERY_VECS(X, rows) X(rows, 1) X(rows, 2)
#else
#define EVERY_VECS(X, rows) X(rows, 1) X(rows, 2) X(rows, 3) X(rows, 4)
#endif

#define PLACED_TILES(rows) EVERY_VECS(PLACED_BOTH, rows)
#define PLACED_BOTH(rows, vecs) PLACED(rows, vecs, 0) PLACED(rows, vecs, 1)
#define PACKED_TILES(rows) EVERY_VECS(PACKED, rows)
EVERY_PLACED(PLACED_TILES)
EVERY_PACKED(PACKED_TILES)

/* Of one panel, or two if a tile is that wide. */
typedef void sliced_fn(const struct gemm_sliced *g, int64_t top, int64_t panel);
#define PANEL_VECS (GEMM_PANEL / VEC)
#define SLICED(rows, panels)                                                                \
    static void sliced_##rows##panels(const struct gemm_sliced *g, int64_t top,             \
                                      int64_t panel) {                                      \
        sliced_tile(rows, panels * PANEL_VECS, g, top, panel);                              \
    }
#if COLUMNS > GEMM_PANEL
#define EVERY_PANELS(X, rows) X(rows, 1) X(rows, 2)
#else
#define EVERY_PANELS(X, rows) X(rows, 1)
#endif
typedef void segments_fn(const struct gemm_segments *g, int64_t top);
#define SEGMENTS(rows, panels)                                                              \
    static void segments_##rows##panels(const struct gemm_segments *g, int64_t top) {       \
        segments_tile(rows, panels * PANEL_VECS, g, top);                                   \
    }
#define SLICED_TILES(rows) EVERY_PANELS(SLICED, rows)
#define SEGMENTS_TILES(rows) EVERY_PANELS(SEGMENTS, rows)
EVERY_PLACED(SEGMENTS_TILES)
EVERY_PACKED(SLICED_TILES)

/* By rows - 1, vecs - 1, and part. */
#define PLACED_ROW(rows) {EVERY_VECS(PLACED_AT, rows)},
#define PLACED_AT(rows, vecs) {placed_##rows##vecs##0, placed_##rows##vecs##1},
#define PACKED_ROW(rows) {EVERY_VECS(PACKED_AT, rows)},
#define PACKED_AT(rows, vecs) packed_##rows##vecs,
static tile_fn *const placed[][VECS][2] = {EVERY_PLACED(PLACED_ROW)};
static tile_fn *const packed[][VECS] = {EVERY_PACKED(PACKED_ROW)};
#define SLICED_ROW(rows) {EVERY_PANELS(SLICED_AT, rows)},
#define SLICED_AT(rows, panels) sliced_##rows##panels,
static sliced_fn *const sliced[][COLUMNS / GEMM_PANEL] = {EVERY_PACKED(SLICED_ROW)};
#define SEGMENTS_ROW(rows) {EVERY_PANELS(SEGMENTS_AT, rows)},
#define SEGMENTS_AT(rows, panels) segments_##rows##panels,
static segments_fn *const segments[][COLUMNS / GEMM_PANEL] = {EVERY_PLACED(SEGMENTS_ROW)};

/* ---- prefetching ---- */

#define ROWS_AHEAD 6 /* per tile: enough for products of 64 x 64 and larger */

static void fetch(struct gemm_ahead *x) {
    for (int i = 0; i < ROWS_AHEAD && x->now < x->n; i++) {
        struct gemm_rows *r = &x->left[x->now];
        for (int64_t k = 0; k < r->width; k += LINE) __builtin_prefetch(r->at + k, 0, 2);
        r->at += r->row;
        if (!--r->rows) x->now++;
    }
}

/* ---- small products ---- */

/* Rows [m, m + rows) of c use k in [begin, end) for the columns from n. */
struct range {
    int64_t rows, begin, end; /* rows 0: nothing */
};

static struct range range_of(const struct gemm *g, int64_t m, int64_t n) {
    const bool full = g->shape == GEMM_FULL;
    struct range r = {full ? g->m - m : within(g->m - m, GEMM_GROUP), 0, g->k};
    const int64_t last = m + r.rows - 1;
    if (g->shape == GEMM_C_LOWER && n > last + g->diagonal) r.end = 0, r.begin = -1;
    if (g->shape == GEMM_A_LOWER) r.end = within(last + g->diagonal + 1, g->k);
    if (g->shape == GEMM_A_UPPER) r.begin = within(m - g->diagonal, g->k);
    return r;
}

/* One block of k, of all columns. */
static void block(const struct gemm *g, int64_t first, int64_t end) {
    for (int64_t n = 0; n < g->n; n += COLUMNS) {
        const int64_t columns = within(g->n - n, COLUMNS);
        const int vecs = (int)((columns + VEC - 1) / VEC), some = (int)(columns % VEC);
        const float *b = g->b + n / GEMM_PANEL * g->b_panel + n % GEMM_PANEL;
        for (int64_t m = 0, rows; m < g->m; m += rows) {
            const struct range r = range_of(g, m, n);
            rows = r.rows;
            if (r.begin < 0) continue;
            const int64_t from = r.begin > first ? r.begin : first, to = least(r.end, end);
            const bool add = g->add || from > r.begin;
            if (to <= from && (add || first)) continue;
            const int64_t groups = (rows + PLACED_ROWS - 1) / PLACED_ROWS;
            for (int64_t i = 0; i < groups; i++) {
                const int64_t top = m + rows * i / groups, next = m + rows * (i + 1) / groups;
                const struct factors f = {g->a + top * g->a_row + from * g->a_k,
                                          b + from * g->b_k, g->a_row, g->a_k, g->b_k,
                                          g->b_panel};
                placed[next - top - 1][vecs - 1][some != 0](&f, g->c + top * g->c_row + n,
                                                            g->c_row, to - from, add, some);
                if (g->ahead) fetch(g->ahead);
            }
        }
    }
}

void gemm_direct(const struct gemm *g) {
    int64_t k = 0;
    do {
        block(g, k, least(g->k, k + GEMM_BLOCK));
        k += GEMM_BLOCK;
    } while (k < g->k);
}

/* ---- packing ---- */

void gemm_pack(const float *b, int64_t b_k, int64_t b_column, int64_t k, int64_t n, float *to) {
    for (int64_t j = 0; j < n; j += GEMM_PANEL, to += GEMM_PANEL * k, b += GEMM_PANEL * b_column) {
        const int64_t some = least(n - j, GEMM_PANEL);
        if (b_column == 1) {
            for (int64_t i = 0; i < k; i++)
                for (int64_t c = 0; c < GEMM_PANEL; c += VEC)
                    *(vec_at *)(to + i * GEMM_PANEL + c) =
                        load(b + i * b_k + c, c + VEC > some, (int)within(some - c, VEC));
            continue;
        }
        for (int64_t c = 0; c < GEMM_PANEL; c += 8) {
            const float *from = b + c * b_column;
            int64_t i = 0, left = within(some - c, 8);
            if (b_k == 1 && left == 8)
                for (; i + 4 <= k; i += 4)
                    turn_8_4(from + i, b_column, to + i * GEMM_PANEL + c, GEMM_PANEL);
            for (; i < k; i++)
                for (int64_t l = 0; l < 8; l++)
                    to[i * GEMM_PANEL + c + l] = l < left ? from[l * b_column + i * b_k] : 0;
        }
    }
}

INLINE void copy_4(float *to, const float *from) { memcpy(to, from, 4 * sizeof *to); }

/* Packs `rows` rows of a, so that those of a tile lie beside each other. Vectors of four rows; the
 * last may repeat some rows. */
static void pack_rows(const float *a, int64_t a_row, int64_t a_k, int64_t k, int64_t rows,
                      float *to) {
    int64_t i = 0;
    if (rows >= 4 && a_k == 1)
        for (; i + 4 <= k; i += 4) {
            for (int64_t r = 0; r + 4 < rows; r += 4)
                turn_4_4(a + r * a_row + i, a_row, to + i * rows + r, rows);
            turn_4_4(a + (rows - 4) * a_row + i, a_row, to + i * rows + rows - 4, rows);
        }
    if (rows >= 4 && a_row == 1)
        for (; i < k; i++) {
            for (int64_t r = 0; r + 4 < rows; r += 4)
                copy_4(to + i * rows + r, a + i * a_k + r);
            copy_4(to + i * rows + rows - 4, a + i * a_k + rows - 4);
        }
    for (; i < k; i++)
        for (int64_t r = 0; r < rows; r++) to[i * rows + r] = a[r * a_row + i * a_k];
}

void gemm_fetch(const struct gemm_next *x, int64_t i, int64_t n) {
    const int64_t lines = (x->width + LINE / 4 - 1) / (LINE / 4), all = x->rows * lines;
    int64_t at = all * i / n, r = lines ? at / lines : 0, l = at - r * lines;
    for (const int64_t end = all * (i + 1) / n; at < end; at++) {
        __builtin_prefetch(x->at + r * x->row + l * (LINE / 4), 0, 2);
        if (++l == lines) l = 0, r++;
    }
}

/* ---- large products ---- */

static int64_t row_at(int64_t m, int64_t groups, int64_t i) { return m * i / groups; }

void gemm_blocked(const struct product *g, float *scratch) {
    const int64_t groups = (g->m + ROWS - 1) / ROWS;
    for (int64_t first = 0; first < g->k; first += GEMM_BLOCK) {
        const int64_t k = least(g->k - first, GEMM_BLOCK);
        float *a = scratch, *panels = scratch + (g->m * k + 15) / 16 * 16;
        for (int64_t i = 0; i < groups; i++) {
            const int64_t top = row_at(g->m, groups, i);
            pack_rows(g->a + top * g->a_row + first * g->a_k, g->a_row, g->a_k, k,
                      row_at(g->m, groups, i + 1) - top, a + top * k);
        }
        for (int64_t n = 0; n < g->n; n += COLUMNS) {
            const int64_t columns = least(g->n - n, COLUMNS);
            const int vecs = (int)((columns + VEC - 1) / VEC), some = (int)(columns % VEC);
            const float *b = g->b + first * g->b_k + n * g->b_column;
            gemm_pack(b, g->b_k, g->b_column, k, columns, panels);
            const int64_t left = within(g->n - n - COLUMNS, COLUMNS);
            struct gemm_next next = {b + COLUMNS * g->b_column, left, g->b_column, k};
            if (g->b_column == 1) next = (struct gemm_next){next.at, left ? k : 0, g->b_k, left};
            for (int64_t i = 0; i < groups; i++) {
                const int64_t top = row_at(g->m, groups, i);
                const int64_t rows = row_at(g->m, groups, i + 1) - top;
                const struct factors f = {.a = a + top * k, .b = panels,
                                          .b_panel = k * GEMM_PANEL};
                gemm_fetch(&next, i, groups);
                packed[rows - 1][vecs - 1](&f, g->c + top * g->c_row + n, g->c_row, k, first > 0,
                                           some);
            }
        }
    }
}

/* ---- products in slices ---- */

void gemm_sliced_run(const struct gemm_sliced *g) {
    const int64_t groups = (g->m + ROWS - 1) / ROWS, wide = COLUMNS / GEMM_PANEL;
    const int64_t tiles = (g->panels + wide - 1) / wide * groups;
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t i = t % groups, p = t / groups * wide, panels = least(g->panels - p, wide);
        const int64_t top = row_at(g->m, groups, i), end = row_at(g->m, groups, i + 1);
        gemm_fetch(&g->next, t, tiles);
        sliced[end - top - 1][panels - 1](g, top, p);
    }
}

/* ---- products in segments ---- */

void gemm_segments_run(const struct gemm_segments *g) {
    const int64_t groups = (GEMM_PANEL + PLACED_ROWS - 1) / PLACED_ROWS;
    const int64_t wide = COLUMNS / GEMM_PANEL;
    for (int64_t p = 0, panels; p < g->panels; p += panels) {
        struct gemm_segments part = *g;
        panels = least(g->panels - p, wide);
        part.b += p * g->b_panel;
        part.c += p * GEMM_PANEL;
        for (int64_t i = 0; i < groups; i++) {
            const int64_t top = row_at(GEMM_PANEL, groups, i);
            segments[row_at(GEMM_PANEL, groups, i + 1) - top - 1][panels - 1](&part, top);
        }
    }
}

const struct gemm_set FOR_ISA(gemm_set) = {gemm_direct, gemm_blocked, gemm_pack};
