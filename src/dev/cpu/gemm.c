/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/cpu/gemm.h"

#include "dev/cpu/gemm_tiles.h"
#include "dev/cpu/half.h"
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
#elif VEC == 8 || defined CPU_NEON
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

static int64_t within(int64_t x, int64_t most) { return x < 0 ? 0 : least(x, most); }

/* ---- one tile ---- */

struct factors {
    const float *a, *b;
    int64_t a_row, a_k, b_k, b_panel;
    const struct gemm_run *run;
    int64_t runs;
};

/* Row r begins at row[r] + at, if the rows are listed, or at c + r * c_row. */
struct sums {
    float *c;
    int64_t c_row;
    float *const *row;
    int64_t at, c_panel;
    bool add;
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

/* Where vector v begins in panels. */
INLINE int64_t vec_at_panel(int v, int64_t panel) {
    return v * VEC / GEMM_PANEL * panel + v * VEC % GEMM_PANEL;
}

INLINE float *row_of(const bool listed, const struct sums *y, int r, int v) {
    return (listed ? y->row[r] + y->at : y->c + r * y->c_row) + vec_at_panel(v, y->c_panel);
}

#if HALF_STEP == 2 && !HALF_TILES
/* The bits of a pair must not pass through arithmetic, which would flush them to zero. */
INLINE vec repeat(const bool half, const float *x) {
    return half ? (vec)(*(const half_step_bits *)(const void *)x - (vec_u32){0}) : vec_set(*x);
}
INLINE vec add_step(const bool half, vec a, vec b, vec sum) {
    return half ? (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b)
                : vec_fma(a, b, sum);
}
#else
INLINE vec repeat(const bool half, const float *x) {
    (void)half;
    return vec_set(*x);
}
INLINE vec add_step(const bool half, vec a, vec b, vec sum) {
    (void)half;
    return vec_fma(a, b, sum);
}
#endif

typedef vec tile_sums[ROWS][VECS];

/* Adds n steps, which begin at a and b, to the sums of rows x vecs vectors. */
INLINE void add_steps(const int rows, const int vecs, const bool part, const bool half,
                      const struct factors *f, int64_t a, int64_t b, int64_t n, int some,
                      tile_sums acc) {
    const int64_t a_row = f->a_row, a_k = f->a_k, b_k = f->b_k;
    const float *x = f->a + a, *column[VECS];
    UNROLL for (int v = 0; v < vecs; v++) column[v] = f->b + b + vec_at_panel(v, f->b_panel);
    UNROLL_4
    for (int64_t k = n; k > 0; k--, x += a_k) {
        vec line[VECS];
        UNROLL for (int v = 0; v < vecs; v++) {
            line[v] = load(column[v], part && v == vecs - 1, some);
            column[v] += b_k;
        }
        UNROLL for (int r = 0; r < rows; r++) {
            const vec each = repeat(half, x + r * a_row);
            UNROLL for (int v = 0; v < vecs; v++)
                acc[r][v] = add_step(half, each, line[v], acc[r][v]);
        }
    }
}

/* rows x vecs vectors of c over k; half: each run is a group, whose two chains are added to c. Of
 * each row's last vector only `some` floats exist, if not 0; of b's too, if `part`. */
INLINE void tile(const int rows, const int vecs, const bool part, const bool listed,
                 const bool half, const struct factors *f, const struct sums *y, int some) {
    tile_sums sum[2];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vecs; v++) {
            sum[0][r][v] = (vec){0};
            if (v * VEC % GEMM_PANEL == 0)
                __builtin_prefetch(row_of(listed, y, r, v), 1);
        }
    for (int64_t i = 0; i < f->runs; i++) {
        const struct gemm_run *run = f->run + i;
        if (listed && f->a_row > 1) { /* a slice: too short for hardware to prefetch the next one */
            const float *next = f->a + run[i + 1 < f->runs].a;
            UNROLL for (int r = 0; r < rows; r++)
                UNROLL for (int line = 0; line < f->a_row; line += LINE / 4)
                    __builtin_prefetch(next + r * f->a_row + line);
        }
        add_steps(rows, vecs, part, half, f, run->a, run->b, run->n, some, sum[0]);
        if (!half) continue;
        UNROLL for (int r = 0; r < rows; r++)
            UNROLL for (int v = 0; v < vecs; v++) sum[1][r][v] = (vec){0};
        add_steps(rows, vecs, part, half, f, run->a + run->n * f->a_k, run->b + run->n * f->b_k,
                  run->n, some, sum[1]);
        UNROLL for (int r = 0; r < rows; r++)
            UNROLL for (int v = 0; v < vecs; v++) {
                float *c = row_of(listed, y, r, v);
                const bool last = some && v == vecs - 1;
                const vec before = y->add || i ? load(c, last, some) : (vec){0};
                put(before + (sum[0][r][v] + sum[1][r][v]), c, false, last, some);
                sum[0][r][v] = (vec){0};
            }
    }
    UNROLL for (int r = 0; !half && r < rows; r++)
        UNROLL for (int v = 0; v < vecs; v++)
            put(sum[0][r][v], row_of(listed, y, r, v), y->add, some && v == vecs - 1, some);
}

/* Factors in place, where a vector of b may be part of one. */
typedef void placed_fn(const struct factors *f, int64_t k, const struct sums *y, int some);
#define PLACED(rows, vecs, part)                                                            \
    static void placed_##rows##vecs##part(const struct factors *f, int64_t k,               \
                                          const struct sums *y, int some) {                 \
        const struct gemm_run one = {0, 0, k};                                              \
        tile(rows, vecs, part, false, false,                                                \
             &(struct factors){f->a, f->b, f->a_row, f->a_k, f->b_k, f->b_panel, &one, 1},  \
             &(struct sums){y->c, y->c_row, NULL, 0, GEMM_PANEL, y->add}, some);            \
    }
/* Rows of a that lie beside each other, or in slices; b in panels. */
typedef void packed_fn(const struct factors *f, const struct sums *y, int some);
#define PACKED_AS(name, rows, vecs, half, a_row, a_k)                                       \
    static void name##_##rows##vecs(const struct factors *f, const struct sums *y,          \
                                    int some) {                                             \
        tile(rows, vecs, false, true, half,                                                 \
             &(struct factors){f->a, f->b, a_row, a_k, f->b_k, f->b_panel, f->run,          \
                               f->runs},                                                    \
             &(struct sums){NULL, 0, y->row, y->at, y->c_panel, y->add}, some);             \
    }
#define PACKED(rows, vecs)                                                                  \
    PACKED_AS(packed, rows, vecs, false, 1, f->a_k)                                         \
    PACKED_AS(sliced, rows, vecs, false, GEMM_SLICE, 1)                                     \
    PACKED_AS(half_packed, rows, vecs, true, 1, f->a_k)                                     \
    PACKED_AS(half_sliced, rows, vecs, true, HALF_STEPS, 1)
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

/* By rows - 1, vecs - 1, and part or half and sliced. */
#define PLACED_ROW(rows) {EVERY_VECS(PLACED_AT, rows)},
#define PLACED_AT(rows, vecs) {placed_##rows##vecs##0, placed_##rows##vecs##1},
#define PACKED_ROW(rows) {EVERY_VECS(PACKED_AT, rows)},
static placed_fn *const placed[][VECS][2] = {EVERY_PLACED(PLACED_ROW)};
#define PACKED_AT(rows, vecs)                     \
    {{packed_##rows##vecs, sliced_##rows##vecs},  \
     {half_packed_##rows##vecs, half_sliced_##rows##vecs}},
static packed_fn *const packed[][VECS][2][2] = {EVERY_PACKED(PACKED_ROW)};

/* ---- prefetching ---- */

int64_t gemm_share(const struct gemm_next *x, int64_t n) {
    return (x->rows * ((x->width + LINE - 1) / LINE) + n - 1) / n;
}

void gemm_fetch(struct gemm_next *x, int64_t lines) {
    for (; x->rows && lines; lines--) {
        __builtin_prefetch(x->at + x->done, 0, 2);
        x->done += LINE;
        if (x->done < x->width) continue;
        x->done = 0;
        x->at += x->row;
        x->rows--;
    }
}

#define LINES_AHEAD 24 /* per tile: enough for products of 64 x 64 and larger */

static void fetch(struct gemm_ahead *x) {
    if (x->now == x->n) return;
    gemm_fetch(&x->matrix[x->now], LINES_AHEAD);
    if (!x->matrix[x->now].rows) x->now++;
}

/* ---- rows of c ---- */

/* m rows make n groups of at most `most`, the first `more` of them with a row more. */
struct groups {
    int64_t n, rows, more;
};

static struct groups groups_of(int64_t m, int64_t most) {
    if (m <= most) return (struct groups){m > 0, m, 0};
    const int64_t n = (m + most - 1) / most, rows = m / n;
    return (struct groups){n, rows, m - n * rows};
}

static int64_t rows_in(const struct groups *g, int64_t i) { return g->rows + (i < g->more); }

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
            const struct groups groups = groups_of(rows, PLACED_ROWS);
            struct factors f = {g->a + m * g->a_row + from * g->a_k, b + from * g->b_k, g->a_row,
                                g->a_k, g->b_k, g->b_panel, NULL, 0};
            struct sums y = {.c = g->c + m * g->c_row + n, .c_row = g->c_row, .add = add};
            for (int64_t i = 0; i < groups.n; i++) {
                const int64_t few = rows_in(&groups, i);
                placed[few - 1][vecs - 1][some && !g->padded](&f, to - from, &y, some);
                f.a += few * g->a_row;
                y.c += few * g->c_row;
                if (g->ahead) fetch(g->ahead);
            }
        }
    }
}

static void by_columns(const struct gemm *g) {
    int64_t k = 0;
    do {
        block(g, k, least(g->k, k + GEMM_BLOCK));
        k += GEMM_BLOCK;
    } while (k < g->k);
}

void gemm_direct(const struct gemm *g) {
    struct gemm rows = *g;
    if (g->shape == GEMM_FULL && g->k * GEMM_PANEL <= g->n) /* mostly writing: whole rows of c */
        rows.m = PLACED_ROWS;
    for (int64_t m = 0; m < g->m; m += rows.m) {
        rows.m = least(g->m - m, rows.m);
        rows.a = g->a + m * g->a_row;
        rows.c = g->c + m * g->c_row;
        by_columns(&rows);
    }
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
        if (some < GEMM_PANEL) memset(to, 0, (size_t)(k * GEMM_PANEL) * sizeof *to);
        for (int64_t c = 0; c < some; c += 8) {
            const float *from = b + c * b_column;
            int64_t i = 0, left = least(some - c, 8);
            if (b_k == 1 && left == 8)
                for (; i + 4 <= k; i += 4)
                    turn_8_4(from + i, b_column, to + i * GEMM_PANEL + c, GEMM_PANEL);
            for (int64_t l = 0; l < left; l++)
                for (int64_t rest = i; rest < k; rest++)
                    to[rest * GEMM_PANEL + c + l] = from[l * b_column + rest * b_k];
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

/* ---- packing bf16 ---- */

/* n k of a group, which are `next` apart. */
static void list_terms(const uint16_t *from, int64_t next, int64_t n,
                       const uint16_t *term[HALF_GROUP]) {
    for (int64_t i = 0; i < n; i++) term[i] = from + i * next;
}

/* The same for bf16, group by group; if k lie together, the steps of a row do. */
static void pack_half_rows(const uint16_t *a, int64_t a_row, int64_t a_k, int64_t k, int64_t rows,
                           float *to) {
    const uint16_t *term[HALF_GROUP];
    if (a_k == 1) {
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < k; i += HALF_GROUP)
                half_along(a + r * a_row + i, least(k - i, HALF_GROUP),
                         to + (i / HALF_GROUP * rows + r) * HALF_STEPS);
        return;
    }
    for (int64_t i = 0; i < k; i += HALF_GROUP, to += HALF_STEPS * rows) {
        const int64_t n = least(k - i, HALF_GROUP);
        list_terms(a + i * a_k, a_k, n, term);
        half_across(term, n, rows, to, rows);
    }
}

/* spare: GEMM_HALF_SCRATCH floats. */
static void pack_half_panel(const uint16_t *b, int64_t b_k, int64_t b_column, int64_t k,
                            int64_t some, float *spare, float *to) {
    const uint16_t *term[HALF_GROUP];
    if (b_column != 1 && b_column % 2 == 0 && k % 2 == 0) { /* pairs of k lie together */
        gemm_pack((const float *)(const void *)b, 1, b_column / 2, k / 2, some, spare);
        for (int64_t i = 0; i < k; i += HALF_GROUP)
            half_pairs(spare + i / 2 * GEMM_PANEL, least(k - i, HALF_GROUP), GEMM_PANEL,
                       to + i / HALF_GROUP * HALF_STEPS * GEMM_PANEL);
        return;
    }
    if (b_column != 1) {
        for (int64_t c = 0; c < some; c++) half_along(b + c * b_column, k, spare + c * GEMM_BLOCK);
        gemm_pack(spare, 1, GEMM_BLOCK, half_steps(k), some, to);
        return;
    }
    if (some < GEMM_PANEL) memset(to, 0, (size_t)(half_steps(k) * GEMM_PANEL) * sizeof *to);
    for (int64_t i = 0; i < k; i += HALF_GROUP, to += HALF_STEPS * GEMM_PANEL) {
        const int64_t n = least(k - i, HALF_GROUP);
        list_terms(b + i * b_k, b_k, n, term);
        half_across(term, n, some, to, GEMM_PANEL);
    }
}

int64_t gemm_list_runs(bool half, int64_t k, int64_t a_step, struct gemm_run *run) {
    int64_t n = 0;
    if (!half) run[n++] = (struct gemm_run){0, 0, k};
    for (; half && n * HALF_GROUP < k; n++)
        run[n] = (struct gemm_run){n * HALF_STEPS * a_step, n * HALF_STEPS * GEMM_PANEL,
                                   half_chain(least(k - n * HALF_GROUP, HALF_GROUP))};
    return n;
}

void gemm_round(const float *from, int64_t n, uint16_t *to) {
    int64_t i = 0;
    for (; i + VEC <= n; i += VEC) vec_store(TRI_BF16, to, i, *(const vec_at *)(from + i));
    for (; i < n; i++) to[i] = convert_f32_to_bf16(from[i]);
}

/* ---- large products ---- */

/* A factor's element. */
static const void *at(const struct product *g, const void *factor, int64_t i) {
    return (const char *)factor + i * (g->half ? 2 : 4);
}

static void pack_a(const struct product *g, int64_t top, int64_t rows, int64_t first, int64_t k,
                   float *to) {
    const void *a = at(g, g->a, top * g->a_row + first * g->a_k);
    if (g->half)
        pack_half_rows(a, g->a_row, g->a_k, k, rows, to);
    else
        pack_rows(a, g->a_row, g->a_k, k, rows, to);
}

static void pack_b(const struct product *g, const void *b, int64_t k, int64_t columns,
                   float *spare, float *to) {
    if (!g->half) {
        gemm_pack(b, g->b_k, g->b_column, k, columns, to);
        return;
    }
    for (int64_t c = 0; c < columns; c += GEMM_PANEL, to += half_steps(k) * GEMM_PANEL)
        pack_half_panel(at(g, b, c * g->b_column), g->b_k, g->b_column, k,
                        least(columns - c, GEMM_PANEL), spare, to);
}

static void run_blocked(const struct product *g, float *scratch) {
    const struct groups groups = groups_of(g->m, ROWS);
    const int64_t size = g->half ? 2 : 4;
    const bool sliced = g->half && g->a_k == 1;
    const int64_t row = gemm_row(g->k, g->half);
    float *panels = scratch + (g->m * row + 15) / 16 * 16, *spare = panels + COLUMNS * row;
    for (int64_t first = 0; first < g->k; first += GEMM_BLOCK) {
        const int64_t k = least(g->k - first, GEMM_BLOCK), steps = k_steps(g->half, k);
        const int64_t a_steps = g->half ? (k + HALF_GROUP - 1) / HALF_GROUP * HALF_STEPS : k;
        for (int64_t i = 0, top = 0, rows; i < groups.n; i++, top += rows) {
            rows = rows_in(&groups, i);
            pack_a(g, top, rows, first, k, scratch + top * a_steps);
        }
        for (int64_t n = 0; n < g->n; n += COLUMNS) {
            const int64_t columns = least(g->n - n, COLUMNS);
            const int vecs = (int)((columns + VEC - 1) / VEC), some = (int)(columns % VEC);
            const void *b = at(g, g->b, first * g->b_k + n * g->b_column);
            pack_b(g, b, k, columns, spare, panels);
            const int64_t left = within(g->n - n - COLUMNS, COLUMNS);
            const char *to_come = at(g, b, COLUMNS * g->b_column);
            struct gemm_next next =
                g->b_column == 1
                    ? (struct gemm_next){to_come, left ? k : 0, g->b_k * size, left * size, 0}
                    : (struct gemm_next){to_come, left, g->b_column * size, k * size, 0};
            const int64_t share = gemm_share(&next, groups.n);
            for (int64_t i = 0, top = 0, rows; i < groups.n; i++, top += rows) {
                rows = rows_in(&groups, i);
                struct gemm_run run[GEMM_BLOCK / HALF_GROUP];
                const struct factors f = {.a = scratch + top * a_steps, .b = panels, .a_k = rows,
                                          .b_k = GEMM_PANEL, .b_panel = steps * GEMM_PANEL,
                                          .run = run,
                                          .runs = gemm_list_runs(g->half, k, rows, run)};
                float *c[ROWS];
                for (int64_t r = 0; r < rows; r++) c[r] = g->c + (top + r) * g->c_row + n;
                gemm_fetch(&next, share);
                packed[rows - 1][vecs - 1][g->half][sliced](
                    &f, &(struct sums){.row = c, .c_panel = GEMM_PANEL, .add = first > 0}, some);
            }
        }
    }
}

void gemm_blocked(const struct product *g, float *scratch) {
#ifdef CPU_TILES
    if (g->half) {
        gemm_tiles(g, scratch);
        return;
    }
#endif
    const uint64_t mode = g->half ? half_flush() : 0;
    run_blocked(g, scratch);
    if (!g->half) return;
    half_restore(mode);
    for (int64_t i = 0; i < g->m; i++) gemm_round(g->c + i * g->c_row, g->n, g->y + i * g->y_row);
}

/* ---- products in runs ---- */

void gemm_runs(const struct gemm_block *g) {
#ifdef CPU_TILES
    if (g->half) {
        gemm_tiles_runs(g);
        return;
    }
#endif
    const struct groups groups = groups_of(g->m, ROWS);
    const bool sliced = g->a_k == 1;
    const int64_t a_row = !sliced ? 1 : g->half ? HALF_STEPS : GEMM_SLICE;
    struct gemm_next next = g->next;
    const int64_t share = gemm_share(&next, (g->n + COLUMNS - 1) / COLUMNS * groups.n);
    const uint64_t mode = g->half ? half_flush() : 0;
    for (int64_t n = 0; n < g->n; n += COLUMNS) {
        const int64_t vecs = (least(g->n - n, COLUMNS) + VEC - 1) / VEC;
        const int64_t b_at = n / GEMM_PANEL * g->b_panel, c_at = n / GEMM_PANEL * g->c_panel;
        for (int64_t i = 0, top = 0, rows; i < groups.n; i++, top += rows) {
            rows = rows_in(&groups, i);
            const struct factors f = {g->a + top * a_row, g->b + b_at, 0, g->a_k, g->b_k,
                                      g->b_panel, g->run, g->runs};
            const struct sums y = {.row = g->c + top, .at = c_at, .c_panel = g->c_panel,
                                   .add = g->add};
            gemm_fetch(&next, share);
            packed[rows - 1][vecs - 1][g->half][sliced](&f, &y, 0);
        }
    }
    if (g->half) half_restore(mode);
}

#if HALF_STEP == 2 && !HALF_TILES
static float pair_sum(const float a[2], const float b[2], float sum) {
    uint32_t x = (uint32_t)convert_f32_to_bf16(a[0]) | (uint32_t)convert_f32_to_bf16(a[1]) << 16;
    uint32_t y = (uint32_t)convert_f32_to_bf16(b[0]) | (uint32_t)convert_f32_to_bf16(b[1]) << 16;
    return add_step(true, (vec)(vec_u32){x}, (vec)(vec_u32){y}, (vec){sum})[0];
}

bool FOR_ISA(gemm_pairs_as_documented)(void) {
    static const struct {
        float a[2], b[2], sum, expected;
    } cases[] = {
        {{1, 0x1p24f}, {1, 1}, -0x1p24f, 1},              /* the second first */
        {{0x1p24f, 1}, {1, 1}, -0x1p24f, 1},
        {{1, 0x1p24f}, {1, 1}, 1, 0x1p24f},               /* rounded after each */
        {{0, 0x1.02p0f}, {0, 0x1.02p0f}, 0x1p-23f, 0x1.040402p0f},
        {{0, 0x1.02p0f}, {0, 0x1.02p0f}, -0x1.04p0f, 0x1p-14f}, /* the product is not */
        {{0, 0x1p-126f}, {0, 0.5f}, 0, 0},                /* results below the normal range */
        {{0, 0x1p-127f}, {0, 0x1p10f}, 1, 1},             /* operands likewise */
        {{0, 0x1p-127f}, {0, 0x1p127f}, 0, 0},
        {{0, 0}, {0, 0}, 0x1p-127f, 0},
        {{0x1p-126f, -0x1p-126f}, {1, 0.5f}, 0x1p-126f, 0x1p-126f},
        /* rounded before it is found to be normal */
        {{0, -0x1p-76f}, {0, 0x1p-76f}, 0x1p-126f, 0x1p-126f},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        if (pair_sum(cases[i].a, cases[i].b, cases[i].sum) != cases[i].expected) return false;
    return true;
}
#endif

const struct gemm_set FOR_ISA(gemm_set) = {gemm_direct, gemm_blocked, gemm_pack,
                                           HALF_TILES ? GEMM_TILES_K : 0};
