/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/cpu/gemm_tile.h"

#include "dev/cpu/turn.h"
#include "dev/cpu/vec.h"

/* c is computed in pieces of up to ROWS rows of VECS vectors, held in registers: 16, or 8 with
 * AVX2, which has only 16 in all. */
#define VECS 2
#if VEC == 8
#define ROWS 4
#else
#define ROWS 8
#endif

/* ---- one piece ---- */

INLINE vec load(const float *from, bool part, int some) {
    if (part) return vec_take(from, some);
    return *(const vec_at *)from;
}

/* rows x vecs vectors of c. If `part`, only `some` floats of each row's last vector exist. */
INLINE void piece(const int rows, const int vecs, const bool part, const struct gemm *g,
                  const float *a, const float *b, float *c, int64_t k, int some) {
    vec acc[ROWS][VECS];
    const int last = part ? vecs - 1 : vecs;
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vecs; v++)
            acc[r][v] = g->add ? load(c + r * g->c_row + v * VEC, v == last, some) : (vec){0};
    for (; k > 0; k--, a += g->a_k, b += g->b_k) {
        vec row[VECS];
        UNROLL for (int v = 0; v < vecs; v++) row[v] = load(b + v * VEC, v == last, some);
        UNROLL for (int r = 0; r < rows; r++) {
            vec x = vec_set(a[r * g->a_row]);
            UNROLL for (int v = 0; v < vecs; v++) acc[r][v] = vec_fma(x, row[v], acc[r][v]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vecs; v++) {
            float *to = c + r * g->c_row + v * VEC;
            if (v == last)
                vec_put(to, some, acc[r][v]);
            else
                *(vec_at *)to = acc[r][v];
        }
}

typedef void piece_fn(const struct gemm *g, const float *a, const float *b, float *c, int64_t k,
                      int some);

#define PIECE(rows, vecs, part)                                                             \
    static void piece_##rows##vecs##part(const struct gemm *g, const float *a,              \
                                         const float *b, float *c, int64_t k, int some) {   \
        piece(rows, vecs, part, g, a, b, c, k, some);                                       \
    }
#define PIECES(rows) PIECE(rows, 1, 0) PIECE(rows, 1, 1) PIECE(rows, 2, 0) PIECE(rows, 2, 1)
#define POINTERS(rows)                                                                      \
    {{piece_##rows##10, piece_##rows##11}, {piece_##rows##20, piece_##rows##21}},
#if ROWS == 8
#define EVERY_SIZE(X) X(1) X(2) X(4) X(8)
#else
#define EVERY_SIZE(X) X(1) X(2) X(4)
#endif

EVERY_SIZE(PIECES)

/* By log2(rows), vecs - 1, part. */
static piece_fn *const pieces[][VECS][2] = {EVERY_SIZE(POINTERS)};

/* ---- prefetching ---- */

#define ROWS_AHEAD 6 /* per piece: enough for products of 64 x 64 and larger */
#define LINE 64

static void fetch(struct gemm_ahead *x) {
    for (int i = 0; i < ROWS_AHEAD && x->now < x->n; i++) {
        struct gemm_rows *r = &x->left[x->now];
        for (int64_t k = 0; k < r->width; k += LINE) __builtin_prefetch(r->at + k, 0, 2);
        r->at += r->row;
        if (!--r->rows) x->now++;
    }
}

/* ---- all of c ---- */

/* What a group of rows of c, from m, needs for the columns from n. */
struct range {
    int64_t rows, begin, end; /* rows 0: nothing */
};

static int64_t within(int64_t x, int64_t most) { return x < 0 ? 0 : x < most ? x : most; }

static struct range range_of(const struct gemm *g, int64_t m, int64_t n) {
    struct range r = {within(g->m - m, GEMM_GROUP), 0, g->k};
    int64_t last = m + r.rows - 1;
    if (g->shape == GEMM_C_LOWER && n > last + g->diagonal) r.rows = 0;
    if (g->shape == GEMM_A_LOWER) r.end = within(last + g->diagonal + 1, g->k);
    if (g->shape == GEMM_A_UPPER) r.begin = within(m - g->diagonal, g->k);
    return r;
}

void gemm_tile(const struct gemm *g) {
    for (int64_t n = 0; n < g->n; n += VECS * VEC) {
        int64_t columns = within(g->n - n, VECS * VEC);
        int vecs = (int)((columns + VEC - 1) / VEC), some = (int)(columns % VEC);
        const float *b = g->b + n / GEMM_PANEL * g->b_panel + n % GEMM_PANEL;
        for (int64_t m = 0; m < g->m; m += GEMM_GROUP) {
            struct range r = range_of(g, m, n);
            const float *a = g->a + m * g->a_row + r.begin * g->a_k;
            float *c = g->c + m * g->c_row + n;
            while (r.rows) {
                int size = r.rows >= ROWS ? ROWS / 4 + 1 : r.rows >= 4 ? 2 : r.rows >= 2;
                pieces[size][vecs - 1][some != 0](g, a, b + r.begin * g->b_k, c, r.end - r.begin,
                                                  some);
                if (g->ahead) fetch(g->ahead);
                r.rows -= 1 << size;
                a += g->a_row << size;
                c += g->c_row << size;
            }
        }
    }
}

/* ---- packing ---- */

void gemm_pack(const float *x, int64_t row, int64_t n, int64_t k, float *to) {
    for (int64_t j = 0; j < n; j += GEMM_PANEL, to += GEMM_PANEL * k)
        for (int64_t c = 0; c < GEMM_PANEL; c += 8) {
            const float *from = x + (j + c) * row;
            int64_t i = 0, some = within(n - j - c, 8);
            for (; some == 8 && i + 4 <= k; i += 4)
                turn_8_4(from + i, row, to + i * GEMM_PANEL + c, GEMM_PANEL);
            for (; i < k; i++)
                for (int64_t l = 0; l < 8; l++)
                    to[i * GEMM_PANEL + c + l] = l < some ? from[l * row + i] : 0;
        }
}
