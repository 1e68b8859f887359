/* SPDX-License-Identifier: Apache-2.0
 * Convolutions of few channels and several samples, with vectors across samples: what happens to a
 * place of one sample happens to the same place of the others. So planes of any width fill vectors,
 * and of a window what lies above or below a plane is left out, as is what lies beside it for all
 * of a few neighbouring columns; else zeros stand there. Tensors are brought into the order
 * [channels, h, pitch, VEC] before, and outputs out of it; that is little work beside the sums.
 *
 * An output, or an element of x's derivative, is one chain of fused multiply-adds over the channels
 * and the window, in the order of the weight. The weight's derivative has SUMS chains, of which
 * each takes every SUMS-th sample, strip of rows by strip; they are added when they are done. */
#include "dev/cpu/isa.h"

#include "dev/cpu/conv_own.h"
#include "dev/cpu/turn.h"
#include "ops/window.h"

/* Floats of strips of rows that stay in the first-level cache: what dw reads, and outputs, which
 * leave it soon. */
#define DW_CACHED 6144
#define CACHED 3072
#define NEIGHBOURS 4 /* columns that leave out the same of a window, whatever COLS is */

enum kind { ACROSS_Y, ACROSS_DX, ACROSS_DW };

/* A tensor [n, channels, h, w] in order: vectors of VEC samples. Zeros lie beside each row. */
struct field {
    int64_t channels, h, w, left, pitch;
};

/* Row r of what is made sees row r + from + i * step of the field by the window's row i. Columns
 * likewise. */
struct axis {
    int64_t from, step;
};

struct state {
    struct window w;
    enum kind kind;
    struct field in;               /* what is read through the window: x, or for dx dy */
    int64_t channels, h, v;        /* of what is made; dw: of dy */
    struct axis down, right;
    int64_t weight_out, weight_in; /* from one channel of what is made or read to the next */
    int64_t groups, pieces, parts; /* of SUMS samples; of a group's rows */
    int64_t strip;                 /* rows that are made together */
};


/* ---- into order and back ---- */

#if VEC == 4
#define TURN 4 /* samples that are transposed together */
#define TURN_IN turn_4_4
#define TURN_OUT turn_4_4
#else
#define TURN 8
#define TURN_IN turn_8_4
#define TURN_OUT turn_4_8
#endif

/* Runs of `count` floats of up to VEC samples, `size` apart, to `count` vectors. Samples that are
 * not there are zeros. */
static void bring_run(const float *x, int64_t size, int64_t samples, int64_t count, float *to) {
    for (int64_t l = 0; l < VEC; l += TURN) {
        int64_t some = least(most(samples - l, 0), TURN), i = 0;
        const float *from = x + l * size;
        for (; some == TURN && i + 4 <= count; i += 4)
            TURN_IN(from + i, size, to + i * VEC + l, VEC);
        for (; i < count; i++)
            for (int64_t k = 0; k < TURN; k++)
                to[i * VEC + l + k] = k < some ? from[k * size + i] : 0;
    }
}

static void give_run(const float *from, int64_t samples, int64_t count, float *y, int64_t size) {
    for (int64_t l = 0; l < samples; l += TURN) {
        int64_t some = least(samples - l, TURN), i = 0;
        float *to = y + l * size;
        for (; some == TURN && i + 4 <= count; i += 4)
            TURN_OUT(from + i * VEC + l, VEC, to + i, size);
        for (; i < count; i++)
            for (int64_t k = 0; k < some; k++) to[k * size + i] = from[i * VEC + l + k];
    }
}

/* The rows [begin, end) of all channels. */
static void bring(const struct field *f, const float *x, int64_t size, int64_t samples,
                  int64_t begin, int64_t end, float *to) {
    const int64_t right = f->pitch - f->left - f->w;
    for (int64_t c = 0; c < f->channels; c++) {
        const float *from = x + (c * f->h + begin) * f->w;
        float *row = to + (c * f->h + begin) * f->pitch * VEC;
        if (f->pitch == f->w) {
            bring_run(from, size, samples, (end - begin) * f->w, row);
            continue;
        }
        for (int64_t r = begin; r < end; r++, from += f->w, row += f->pitch * VEC) {
            memset(row, 0, (size_t)(f->left * VEC) * sizeof *row);
            bring_run(from, size, samples, f->w, row + f->left * VEC);
            memset(row + (f->left + f->w) * VEC, 0, (size_t)(right * VEC) * sizeof *row);
        }
    }
}

/* ---- windows ---- */

struct span {
    int64_t begin, end;
};

/* Which of a window's `size` elements see any of the places [0, length) from one of `n` neighbours,
 * `at` being the first of them. */
static struct span seen(struct axis a, int64_t at, int64_t n, int64_t size, int64_t length) {
    struct span s = {0, size};
    at += a.from;
    while (s.begin < s.end && (at + s.begin * a.step + n <= 0 || at + s.begin * a.step >= length))
        s.begin++;
    while (s.begin < s.end &&
           (at + (s.end - 1) * a.step + n <= 0 || at + (s.end - 1) * a.step >= length))
        s.end--;
    return s;
}

/* Which of the places [begin, end) see a place of [0, length) by the window's element i. */
static struct span seeing(struct axis a, int64_t i, int64_t begin, int64_t end, int64_t length) {
    int64_t shift = a.from + i * a.step;
    return (struct span){most(begin, -shift), least(end, length - shift)};
}

/* ---- outputs ---- */

/* x: what the first column sees by the first row and column of the window that are not left out. */
struct look {
    const float *x, *w, *bias;
    int64_t down, right; /* how many rows and columns of the window */
};

INLINE void piece(const int rows, const int cols, const struct state *s, struct look l, float *to,
                  int64_t to_row) {
    const int64_t plane = s->in.h * s->in.pitch * VEC, row = s->down.step * s->in.pitch * VEC;
    const int64_t step = s->right.step * VEC;
    vec acc[ROWS][COLS];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < cols; v++) acc[r][v] = vec_set(l.bias ? l.bias[r] : 0);
    for (int64_t c = 0; c < s->in.channels; c++)
        for (int64_t i = 0; i < l.down; i++) {
            const float *b = l.x + c * plane + i * row, *a = l.w + c * s->weight_in + i * s->w.kw;
            for (int64_t j = 0; j < l.right; j++, b += step, a++) {
                vec run[COLS];
                UNROLL for (int v = 0; v < cols; v++) run[v] = *(const vec_at *)(b + v * VEC);
                UNROLL for (int r = 0; r < rows; r++) {
                    vec one = vec_set(a[r * s->weight_out]);
                    UNROLL for (int v = 0; v < cols; v++) acc[r][v] =
                        vec_fma(one, run[v], acc[r][v]);
                }
            }
        }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < cols; v++) *(vec_at *)(to + r * to_row + v * VEC) = acc[r][v];
}

typedef void piece_fn(const struct state *s, struct look l, float *to, int64_t to_row);

#define PIECE(rows, cols)                                                                   \
    static void piece_##rows##cols(const struct state *s, struct look l, float *to,         \
                                   int64_t to_row) {                                        \
        piece(rows, cols, s, l, to, to_row);                                                \
    }
#define PIECE_NAME(rows, cols) piece_##rows##cols,
EVERY_PIECE(PIECE)
static piece_fn *const pieces[] = {EVERY_PIECE(PIECE_NAME)};

/* Row r of `rows` channels from `first` on, of VEC samples. */
static void make_row(const struct state *s, const float *field, const float *weight,
                     const float *bias, int64_t first, int64_t rows, int64_t r, float *to) {
    const struct window *w = &s->w;
    struct span down = seen(s->down, r, 1, w->kh, s->in.h);
    int64_t in_row = r + s->down.from + down.begin * s->down.step;
    for (int64_t q = 0; q < s->v; q += COLS) {
        int64_t cols = least(s->v - q, COLS), first_of = q - q % NEIGHBOURS;
        struct span right =
            seen(s->right, first_of, least(s->v - first_of, NEIGHBOURS), w->kw, s->in.w);
        int64_t column = s->in.left + q + s->right.from + right.begin * s->right.step;
        struct look l = {.down = down.end - down.begin, .right = right.end - right.begin};
        l.w = weight + first * s->weight_out + down.begin * w->kw + right.begin;
        l.bias = bias ? bias + first : NULL;
        if (l.down && l.right) l.x = field + (in_row * s->in.pitch + column) * VEC;
        pieces[PIECE_AT(rows, cols)](s, l, to + q * VEC, s->strip * s->v * VEC);
    }
}

/* Rows [begin, end) of y or dx, of up to VEC samples. */
static void make_outputs(const struct state *s, const float *field, const float *weight,
                         const float *bias, struct span range, int64_t samples, float *strip,
                         float *y) {
    const int64_t plane = s->h * s->v;
    for (int64_t first = 0; first < s->channels; first += ROWS) {
        int64_t rows = least(s->channels - first, ROWS);
        for (int64_t at = range.begin; at < range.end; at += s->strip) {
            int64_t n = least(range.end - at, s->strip);
            for (int64_t r = 0; r < n; r++)
                make_row(s, field, weight, bias, first, rows, at + r, strip + r * s->v * VEC);
            for (int64_t c = 0; c < rows; c++)
                give_run(strip + c * s->strip * s->v * VEC, samples, n * s->v,
                         y + (first + c) * plane + at * s->v, s->channels * plane);
        }
    }
}

/* The rows of the field that rows of the output see. */
static struct span rows_seen(const struct state *s, struct span out) {
    int64_t reach = (s->w.kh - 1) * s->down.step;
    int64_t begin = most(out.begin + s->down.from + least(reach, 0), 0);
    int64_t end = least(out.end + s->down.from + most(reach, 0), s->in.h);
    return (struct span){begin, most(begin, end)};
}

static void run_outputs(const tri_call *c) {
    const struct state *s = c->state;
    const float *bias = s->kind == ACROSS_Y && c->node->n_in > 2 ? c->in[2] : NULL;
    const int64_t size = s->in.channels * s->in.h * s->in.w, plane = s->h * s->v;
    const struct cpu_range part = cpu_part(c, s->parts, s->groups * s->pieces);
    float *field = c->scratch, *strip = field + s->in.channels * s->in.h * s->in.pitch * VEC;
    for (int64_t k = part.begin; k < part.end; k++) {
        int64_t group = k / s->pieces, i = k % s->pieces;
        int64_t end = least((group + 1) * SUMS, s->w.n);
        struct span out = {s->h * i / s->pieces, s->h * (i + 1) / s->pieces},
                    in = rows_seen(s, out);
        for (int64_t n = group * SUMS; n < end; n += VEC) {
            bring(&s->in, (const float *)c->in[0] + n * size, size, least(end - n, VEC), in.begin,
                  in.end, field);
            make_outputs(s, field, c->in[1], bias, out, least(end - n, VEC), strip,
                         (float *)c->out[0] + n * s->channels * plane);
        }
    }
}

/* ---- the weight's derivative ---- */

/* Adds what rows of dy, [DW_ROWS or fewer][rows, v], give to the sums of neighbours in a window's
 * row. */
struct strip {
    const float *x, *dy;
    int64_t rows;
    int64_t dy_plane;
    float *sum;
    int64_t sum_row; /* from one output channel to the next */
};

INLINE void sums(const int rows, const int taps, const struct state *s, struct strip t) {
    const int64_t step = s->right.step * VEC;
    vec acc[DW_ROWS][DW_TAPS];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int k = 0; k < taps; k++)
            acc[r][k] = *(const vec_at *)(t.sum + r * t.sum_row + k * SUMS);
    for (int64_t i = 0; i < t.rows; i++, t.x += s->in.pitch * VEC, t.dy += s->v * VEC)
        for (int64_t q = 0; q < s->v; q++) {
            vec d[DW_ROWS];
            UNROLL for (int r = 0; r < rows; r++)
                d[r] = *(const vec_at *)(t.dy + r * t.dy_plane + q * VEC);
            UNROLL for (int k = 0; k < taps; k++) {
                vec run = *(const vec_at *)(t.x + q * VEC + k * step);
                UNROLL for (int r = 0; r < rows; r++) acc[r][k] = vec_fma(d[r], run, acc[r][k]);
            }
        }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int k = 0; k < taps; k++)
            *(vec_at *)(t.sum + r * t.sum_row + k * SUMS) = acc[r][k];
}

typedef void sums_fn(const struct state *s, struct strip t);

#define SUM(rows, taps) \
    static void sums_##rows##taps(const struct state *s, struct strip t) { sums(rows, taps, s, t); }
#define SUM_NAME(rows, taps) sums_##rows##taps,
EVERY_SUM(SUM)
static sums_fn *const summing[] = {EVERY_SUM(SUM_NAME)};

/* By one strip of dy, for all elements of the window of `rows` output channels. */
static void add_strip(const struct state *s, const float *x, const float *dy, int64_t rows,
                      struct span strip, float *sum) {
    const struct window *w = &s->w;
    struct strip t = {.dy_plane = s->h * s->v * VEC, .sum = sum,
                      .sum_row = s->in.channels * w->kh * w->kw * SUMS};
    for (int64_t c = 0; c < s->in.channels; c++, x += s->in.h * s->in.pitch * VEC)
        for (int64_t i = 0; i < w->kh; i++) {
            struct span r = seeing(s->down, i, strip.begin, strip.end, s->in.h);
            t.rows = r.end - r.begin;
            t.dy = t.rows > 0 ? dy + r.begin * s->v * VEC : dy;
            for (int64_t j = 0; j < w->kw; j += DW_TAPS) {
                int64_t taps = least(w->kw - j, DW_TAPS);
                int64_t row = r.begin + s->down.from + i * s->down.step;
                int64_t column = s->in.left + s->right.from + j * s->right.step;
                if (t.rows > 0) {
                    t.x = x + (row * s->in.pitch + column) * VEC;
                    summing[SUM_AT(rows, taps)](s, t);
                }
                t.sum += taps * SUMS;
            }
        }
}

/* The part's output channels, of all samples. */
static void run_dw(const tri_call *c) {
    const struct state *s = c->state;
    const int64_t size = s->in.channels * s->in.h * s->in.w, plane = s->h * s->v;
    const int64_t taps = s->in.channels * s->w.kh * s->w.kw;
    const struct cpu_range o = cpu_part(c, s->parts, s->w.o);
    const struct field own = {o.end - o.begin, s->h, s->v, 0, s->v};
    float *x = c->scratch, *dy = x + s->in.channels * s->in.h * s->in.pitch * VEC;
    float *sum = dy + own.channels * plane * VEC;
    memset(sum, 0, (size_t)(own.channels * taps * SUMS) * sizeof *sum);
    for (int64_t n = 0; n < s->w.n; n += VEC) {
        int64_t samples = least(s->w.n - n, VEC);
        bring(&s->in, (const float *)c->in[1] + n * size, size, samples, 0, s->in.h, x);
        bring(&own, (const float *)c->in[0] + (n * s->w.o + o.begin) * plane, s->w.o * plane,
              samples, 0, s->h, dy);
        for (int64_t at = 0; at < s->h; at += s->strip)
            for (int64_t r = 0; r < own.channels; r += DW_ROWS)
                add_strip(s, x, dy + r * plane * VEC, least(own.channels - r, DW_ROWS),
                          (struct span){at, least(at + s->strip, s->h)},
                          sum + r * taps * SUMS + n % SUMS);
    }
    float *dw = (float *)c->out[0] + o.begin * taps;
    for (int64_t i = 0; i < own.channels * taps; i++) dw[i] = conv_total(sum + i * SUMS);
}

/* ---- preparation ---- */

/* With zeros beside the rows for all that a window in the output's plane sees there. */
static struct field field_of(int64_t channels, int64_t h, int64_t w, struct axis right, int64_t v,
                             int64_t size) {
    int64_t reach = (size - 1) * right.step;
    int64_t left = most(-(right.from + least(reach, 0)), 0);
    int64_t last = v - 1 + right.from + most(reach, 0);
    return (struct field){channels, h, w, left, left + w + most(last - (w - 1), 0)};
}

static void measure(struct state *s) {
    const struct window *w = &s->w;
    s->groups = (w->n + SUMS - 1) / SUMS;
    if (s->kind == ACROSS_DX) {
        s->down = (struct axis){w->ph, -w->dh};
        s->right = (struct axis){w->pw, -w->dw};
        s->in = field_of(w->o, w->oh, w->ow, s->right, w->w, w->kw);
        s->channels = w->c, s->h = w->h, s->v = w->w;
        s->weight_out = w->kh * w->kw;
        s->weight_in = w->c * w->kh * w->kw;
    } else {
        s->down = (struct axis){-w->ph, w->dh};
        s->right = (struct axis){-w->pw, w->dw};
        s->in = field_of(w->c, w->h, w->w, s->right, w->ow, w->kw);
        s->channels = w->o, s->h = w->oh, s->v = w->ow;
        s->weight_out = w->c * w->kh * w->kw;
        s->weight_in = w->kh * w->kw;
    }
    if (s->kind == ACROSS_DW) {
        s->parts = w->o <= 2 * DW_ROWS ? (w->o + DW_ROWS - 1) / DW_ROWS
                                       : (w->o + 2 * DW_ROWS - 1) / (2 * DW_ROWS);
        s->strip = least(most(DW_CACHED / ((DW_ROWS * s->v + s->in.pitch) * SUMS), 1), s->h);
    } else {
        s->pieces = s->groups == 1 && s->h > 1 ? 2 : 1;
        s->parts = cpu_parts(s->groups * s->pieces,
                             s->channels * s->in.channels * w->kh * w->kw * s->h * s->v);
        s->strip = least(most(CACHED / (ROWS * s->v * SUMS), 1), s->h);
    }
}

static tri_status prepare(const tri_node *n, enum kind kind, void **state) {
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    struct state *s = *state;
    CHECK(window_of(n, &s->w));
    s->kind = kind;
    measure(s);
    return TRI_OK;
}

static tri_status prepare_y(const tri_node *n, void **state) { return prepare(n, ACROSS_Y, state); }
static tri_status prepare_dx(const tri_node *n, void **state) {
    return prepare(n, ACROSS_DX, state);
}
static tri_status prepare_dw(const tri_node *n, void **state) {
    return prepare(n, ACROSS_DW, state);
}

static void plan(const tri_node *n, struct kernel *k) {
    const struct state *s = k->state;
    int64_t floats = s->in.channels * s->in.h * s->in.pitch * VEC;
    (void)n;
    if (s->kind == ACROSS_DW) {
        int64_t most = (s->w.o + s->parts - 1) / s->parts;
        floats += most * (s->h * s->v * VEC + s->in.channels * s->w.kh * s->w.kw * SUMS);
    } else {
        floats += ROWS * s->strip * s->v * VEC;
    }
    k->parts = s->parts;
    k->scratch = (size_t)floats * sizeof(float);
}

const struct dev_row FOR_ISA(cpu_conv_across)[] = {
    {.op = "conv2d", .run = run_outputs, .prepare = prepare_y, .release = free, .plan = plan},
    {.op = "conv2d_dx", .run = run_outputs, .prepare = prepare_dx, .release = free, .plan = plan},
    {.op = "conv2d_dw", .run = run_dw, .prepare = prepare_dw, .release = free, .plan = plan},
    {0},
};
