/* SPDX-License-Identifier: Apache-2.0
 * The derivative of a convolution's weight in bf16 with AVX-512. Eight output channels by up to
 * three vectors of input channels are summed in registers over the places that a tap of the weight
 * reads; padding is left out, not multiplied by zero.
 *
 * An element of a vector is a pair, the same place of two samples: so strides, padding and odd
 * widths need no care, and the instruction that multiplies pairs adds up over the samples. The
 * partner of an odd number's last sample is zero. */
#include "dev/cpu/conv_dw.h"
#include "dev/cpu/vec.h"

#if VEC == DW_BLOCK

#define ROWS 8       /* output channels of a tile */
#define COLS 3       /* vectors of input channels of a tile */
#define PLACES 200   /* of a piece, or fewer: dy's block stays in the first-level cache */
#define GROUP 393216 /* bytes: of x as much is gone through together, in the second-level cache */

/* One of dy and x in a piece; steps are in elements. */
struct side {
    const float *at; /* sample 0, row 0 of the piece, block 0 */
    int64_t block, sample, row;
};

/* Output rows [row, row + rows) of the samples [sample, sample + samples); x's rows from `top` on.
 */
struct piece {
    int64_t sample, samples, row, rows, top, deep;
};

/* Three loops, the innermost first: how often, and steps in dy and x. */
struct loops {
    int64_t count[3], dy[3], x[3];
};

struct job {
    const struct window *w;
    int64_t samples;         /* elements */
    struct piece first;      /* no other is larger */
    int64_t group;           /* blocks of x that are gone through together */
    const char *dy, *x;
    float *sum;
    int64_t begin, end;      /* blocks of output channels */
    float *packed_x, *packed_dy;
};

/* ---- tiles ---- */

/* A pair, in all elements. */
INLINE vec same(const float *at) {
    int bits;
    memcpy(&bits, at, sizeof bits);
    return (vec)_mm512_set1_epi32(bits);
}

#define WITH_BF16 __attribute__((target("avx512bf16")))

/* The tile of ROWS output channels by `cols` vectors that lie `next` apart. */
WITH_BF16 INLINE void tile_any(const int cols, const struct loops *l, const float *dy,
                               const float *x, int64_t next, float *to, int64_t row, bool add) {
    vec sum[ROWS][COLS], v[COLS];
    UNROLL for (int i = 0; i < ROWS; i++)
        UNROLL for (int j = 0; j < cols; j++) sum[i][j] = (vec){0};
    for (int64_t p = 0; p < l->count[2]; p++)
        for (int64_t q = 0; q < l->count[1]; q++) {
            const float *a = dy + p * l->dy[2] + q * l->dy[1];
            const float *b = x + p * l->x[2] + q * l->x[1];
            for (int64_t k = 0; k < l->count[0]; k++, a += l->dy[0], b += l->x[0]) {
                UNROLL for (int j = 0; j < cols; j++) v[j] = *(const vec_at *)(b + j * next);
                UNROLL for (int i = 0; i < ROWS; i++) {
                    const vec y = same(a + i);
                    UNROLL for (int j = 0; j < cols; j++)
                        sum[i][j] = (vec)_mm512_dpbf16_ps((__m512)sum[i][j], (__m512bh)y,
                                                          (__m512bh)v[j]);
                }
            }
        }
    UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int j = 0; j < cols; j++) {
        vec_at *at = (vec_at *)(to + i * row + j * DW_BLOCK);
        if (add) sum[i][j] += *at;
        *at = sum[i][j];
    }
}

WITH_BF16 static void tile(int cols, const struct loops *l, const float *dy, const float *x,
                           int64_t next, float *to, int64_t row, bool add) {
    if (cols == 3)
        tile_any(3, l, dy, x, next, to, row, add);
    else if (cols == 2)
        tile_any(2, l, dy, x, next, to, row, add);
    else
        tile_any(1, l, dy, x, next, to, row, add);
}

/* ---- pairs ---- */

/* b null: zeros. */
static void pair_up(const uint16_t *a, const uint16_t *b, float *to, int64_t n, int64_t ahead) {
    for (int64_t i = 0; i < n; i += DW_BLOCK) {
        __builtin_prefetch(a + i + ahead);
        if (b) __builtin_prefetch(b + i + ahead);
        __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(a + i)));
        if (b) {
            __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(b + i)));
            low = _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
        }
        _mm512_storeu_si512(to + i, low);
    }
}

/* `deep` rows of `width` places from row `top` on, of a block of the piece's samples, one after the
 * other. */
static void pack(const struct job *j, const struct piece *p, const void *from, int64_t blocks,
                 int64_t block, int64_t height, int64_t width, int64_t top, int64_t deep,
                 float *to) {
    const uint16_t *base = from;
    for (int64_t s = p->sample; s < p->sample + p->samples; s++, to += deep * width * DW_BLOCK) {
        const int64_t first = 2 * s * blocks + block, second = first + blocks;
        const bool both = 2 * s + 1 < j->w->n;
        const int64_t skip = top * width * DW_BLOCK, plane = height * width * DW_BLOCK;
        pair_up(base + first * plane + skip, both ? base + second * plane + skip : NULL, to,
                deep * width * DW_BLOCK, plane);
    }
}

/* ---- pieces ---- */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* The outputs [begin, end) of an axis, of those in [first, behind), that see the input through a
 * tap. */
static void seen(int64_t tap, int64_t stride, int64_t pad, int64_t length, int64_t first,
                 int64_t behind, int64_t *begin, int64_t *end) {
    const int64_t from = pad - tap, to = length + pad - tap; /* from <= at * stride < to */
    *begin = most(first, from > 0 ? (from + stride - 1) / stride : 0);
    *end = least(behind, to > 0 ? (to + stride - 1) / stride : 0);
}

/* The loop that is longest goes innermost. */
static void order(struct loops *l) {
    int longest = 0;
    for (int i = 1; i < 3; i++)
        if (l->count[i] > l->count[longest]) longest = i;
    const struct loops was = *l;
    l->count[0] = was.count[longest], l->count[longest] = was.count[0];
    l->dy[0] = was.dy[longest], l->dy[longest] = was.dy[0];
    l->x[0] = was.x[longest], l->x[longest] = was.x[0];
}

/* Rows that lie one behind the other are one. */
static void join(struct loops *l) {
    if (l->dy[1] != l->count[0] * l->dy[0] || l->x[1] != l->count[0] * l->x[0]) return;
    l->count[0] *= l->count[1];
    l->count[1] = 1;
}

/* What the tap (r, q) sees of the piece; where it begins. False: nothing. */
static bool tap_loops(const struct job *j, const struct piece *p, const struct side *dy,
                      const struct side *x, int64_t r, int64_t q, struct loops *l, int64_t *at_dy,
                      int64_t *at_x) {
    const struct window *w = j->w;
    int64_t row, row_end, col, col_end;
    seen(r * w->dh, w->sh, w->ph, w->h, p->row, p->row + p->rows, &row, &row_end);
    seen(q * w->dw, w->sw, w->pw, w->w, 0, w->ow, &col, &col_end);
    if (row >= row_end || col >= col_end) return false;
    *l = (struct loops){{col_end - col, row_end - row, p->samples},
                        {DW_BLOCK, dy->row, dy->sample},
                        {w->sw * DW_BLOCK, w->sh * x->row, x->sample}};
    *at_dy = (row - p->row) * dy->row + col * DW_BLOCK;
    *at_x = (row * w->sh + r * w->dh - w->ph - p->top) * x->row +
            (col * w->sw + q * w->dw - w->pw) * DW_BLOCK;
    join(l);
    order(l);
    return true;
}

/* Four are done as two and two. */
static int cols_of(int64_t left) { return left == 4 ? 2 : left < COLS ? (int)left : COLS; }

/* One block of output channels by the blocks [first, first + n) of input channels. */
static void run_block(const struct job *j, const struct piece *p, const struct side *dy,
                      const struct side *x, int64_t block, int64_t first, int64_t n) {
    const struct window *w = j->w;
    const int64_t taps = w->kh * w->kw, row = taps * w->c;
    const bool add = p->sample || p->row;
    for (int64_t tap = 0; tap < taps; tap++) {
        struct loops l = {{0}, {0}, {0}};
        int64_t at_dy = 0, at_x = 0;
        if (!tap_loops(j, p, dy, x, tap / w->kw, tap % w->kw, &l, &at_dy, &at_x) && add) continue;
        float *to = j->sum + (block - j->begin) * DW_BLOCK * row + tap * w->c + first * DW_BLOCK;
        for (int64_t k = 0, cols; k < n; k += cols) {
            cols = cols_of(n - k);
            for (int half = 0; half < DW_BLOCK; half += ROWS)
                tile((int)cols, &l, dy->at + at_dy + half, x->at + k * x->block + at_x, x->block,
                     to + half * row + k * DW_BLOCK, row, add);
        }
    }
}

static struct side packed_side(const struct piece *p, const float *at, int64_t width,
                               int64_t deep) {
    return (struct side){.at = at,
                         .block = p->samples * deep * width * DW_BLOCK,
                         .sample = deep * width * DW_BLOCK,
                         .row = width * DW_BLOCK};
}

/* Of a block of channels. */
static int64_t packed_bytes(const struct piece *p, int64_t deep, int64_t width) {
    return p->samples * deep * width * DW_BLOCK * (int64_t)sizeof(float);
}

static void run_piece(const struct job *j, const struct piece *p) {
    const struct window *w = j->w;
    const int64_t blocks = w->c / DW_BLOCK;
    for (int64_t first = 0; first < blocks; first += j->group) {
        const int64_t n = least(j->group, blocks - first);
        struct side x = packed_side(p, j->packed_x, w->w, p->deep);
        for (int64_t k = 0; k < n; k++)
            pack(j, p, j->x, blocks, first + k, w->h, w->w, p->top, p->deep,
                 j->packed_x + k * x.block);
        for (int64_t block = j->begin; block < j->end; block++) {
            struct side dy = packed_side(p, j->packed_dy, w->ow, p->rows);
            pack(j, p, j->dy, w->o / DW_BLOCK, block, w->oh, w->ow, p->row, p->rows, j->packed_dy);
            run_block(j, p, &dy, &x, block, first, n);
        }
    }
}

static struct job job_of(const struct window *w) {
    struct job j = {.w = w};
    struct piece *p = &j.first;
    const int64_t places = PLACES / w->sh; /* x is the larger by strides */
    j.samples = (w->n + 1) / 2;
    p->samples = least(j.samples, most(places / (w->oh * w->ow), 1));
    p->rows = least(w->oh, most(places / w->ow, 1));
    p->deep = least(w->h, (p->rows - 1) * w->sh + (w->kh - 1) * w->dh + 1);
    j.group = least(w->c / DW_BLOCK, most(GROUP / packed_bytes(p, p->deep, w->w), COLS));
    return j;
}

static size_t scratch_of(const struct window *w, int64_t outputs) {
    const struct job j = job_of(w);
    const struct piece *p = &j.first;
    (void)outputs;
    return (size_t)(packed_bytes(p, p->rows, w->ow) + j.group * packed_bytes(p, p->deep, w->w));
}

static void sum_up(const struct window *w, struct cpu_range r, const void *dy, const void *x,
                   float *sum, void *scratch) {
    struct job j = job_of(w);
    struct piece p = j.first;
    j.dy = dy;
    j.x = x;
    j.sum = sum;
    j.begin = r.begin / DW_BLOCK;
    j.end = r.end / DW_BLOCK;
    j.packed_dy = scratch;
    j.packed_x = j.packed_dy + packed_bytes(&p, p.rows, w->ow) / (int64_t)sizeof(float);
    for (p.sample = 0; p.sample < j.samples; p.sample += j.first.samples)
        for (p.row = 0; p.row < w->oh; p.row += j.first.rows) {
            p.samples = least(j.first.samples, j.samples - p.sample);
            p.rows = least(j.first.rows, w->oh - p.row);
            p.top = most(p.row * w->sh - w->ph, 0);
            const int64_t bottom = (p.row + p.rows - 1) * w->sh + (w->kh - 1) * w->dh - w->ph;
            p.deep = most(least(w->h, bottom + 1) - p.top, 0);
            run_piece(&j, &p);
        }
}

const struct conv_dw_way conv_dw_bf16 = {scratch_of, sum_up};

#endif
