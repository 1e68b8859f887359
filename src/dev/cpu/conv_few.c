/* SPDX-License-Identifier: Apache-2.0
 * Convolutions of few channels, which a library that makes vectors of channels would have to round
 * up. Here vectors run along the places of a plane, which lies in one piece, row behind row. A
 * plane of 3x3 with padding 1, of which a row takes 4 (pitch), and what an output of 3x3 sees by
 * the middle of a 3x3 window (x) and by its right column (y), each in one run:
 *
 *     0 0 0 0     . . . .     . . . .
 *     0 a b c     . x x x     . . y y
 *     0 d e f     - x x x     y - y y
 *     0 g h i     - x x x     y - y y
 *     0 0 0 0     . . . .     y . . .
 *
 * The zeros left of a row are also those right of the row before; a place between two rows of a run
 * (-) stands for nothing, and is left out of outputs. For dw such places of dy are zeros.
 *
 * An output, or an element of x's derivative, is one chain of fused multiply-adds over the channels
 * and the window, in the order of the weight. The weight's derivative is summed over the places of
 * all samples in SUMS chains, which are added when they are done. */
#include "dev/cpu/isa.h"

#include "dev/cpu/conv_own.h"
#include "ops/window.h"

/* A tensor [n, channels, h, w] whose planes lie as above: a sample at a time. */
struct field {
    int64_t channels, h, w, above, left;
    int64_t plane, size; /* floats of a channel, of all with what is behind them */
};

enum kind { FEW_Y, FEW_DX, FEW_DW };

struct state {
    struct window w;
    enum kind kind;
    struct field in;       /* what is read */
    int64_t channels, h, v; /* of the output; dw: of what it is multiplied with, dy */
    int64_t pitch;         /* from row to row, of both */
    int64_t places;        /* from the first to the last of an output plane, rounded up */
    int64_t taps, row;     /* elements of the weight for an output channel; from one to the next */
    int64_t parts, group;  /* group: samples of dw that are in the cache together */
    int32_t *from, *weight; /* by tap: where it begins to see the input; its place in the weight */
};

/* ---- fields ---- */

static struct field field_of(int64_t channels, int64_t h, int64_t w, int64_t above, int64_t below,
                             int64_t left, int64_t pitch) {
    struct field f = {channels, h, w, above, left, (h + above + below) * pitch, 0};
    f.size = (channels * f.plane + pitch - w + 2 * SUMS - 1) / SUMS * SUMS;
    return f;
}

/* Rows of n floats, from plane to plane, column of vectors by column. */
static void copy_rows(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows,
                      int64_t n) {
    for (; n >= VEC; n -= VEC, to += VEC, from += VEC)
        for (int64_t r = 0; r < rows; r++)
            *(vec_at *)(to + r * to_row) = *(const vec_at *)(from + r * from_row);
    for (int64_t r = 0; n && r < rows; r++)
        vec_put(to + r * to_row, n, vec_take(from + r * from_row, n));
}

/* Only what is no zero: the rest is, from the begin on. */
static void bring(const struct field *f, int64_t pitch, const float *x, float *to) {
    for (int64_t c = 0; c < f->channels; c++, to += f->plane, x += f->h * f->w)
        copy_rows(to + f->above * pitch + f->left, pitch, x, f->w, f->h, f->w);
}

/* ---- outputs ---- */

INLINE void piece(const int rows, const int vecs, const struct state *s, const float *x,
                  const float *w, const float *bias, float *to) {
    vec acc[ROWS][COLS];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vecs; v++) acc[r][v] = vec_set(bias ? bias[r] : 0);
    for (int64_t k = 0; k < s->taps; k++) {
        const float *b = x + s->from[k], *a = w + s->weight[k];
        vec run[COLS];
        UNROLL for (int v = 0; v < vecs; v++) run[v] = *(const vec_at *)(b + v * VEC);
        UNROLL for (int r = 0; r < rows; r++) {
            vec one = vec_set(a[r * s->row]);
            UNROLL for (int v = 0; v < vecs; v++) acc[r][v] = vec_fma(one, run[v], acc[r][v]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vecs; v++)
            *(vec_at *)(to + r * s->places + v * VEC) = acc[r][v];
}

typedef void piece_fn(const struct state *s, const float *x, const float *w, const float *bias,
                      float *to);

#define PIECE(rows, vecs)                                                                   \
    static void piece_##rows##vecs(const struct state *s, const float *x, const float *w,   \
                                   const float *bias, float *to) {                          \
        piece(rows, vecs, s, x, w, bias, to);                                               \
    }
#define PIECE_NAME(rows, vecs) piece_##rows##vecs,
EVERY_PIECE(PIECE)
static piece_fn *const pieces[] = {EVERY_PIECE(PIECE_NAME)};

/* So many channels of one sample, from the first on. */
static void make_planes(const struct state *s, const float *x, const float *w, const float *bias,
                        int64_t rows, float *planes, float *y) {
    for (int64_t at = 0; at < s->places; at += COLS * VEC) {
        int64_t vecs = least((s->places - at + VEC - 1) / VEC, COLS);
        pieces[PIECE_AT(rows, vecs)](s, x + at, w, bias, planes + at);
    }
    for (int64_t c = 0; c < rows; c++, planes += s->places, y += s->h * s->v)
        copy_rows(y, s->v, planes, s->pitch, s->h, s->v);
}

/* y or dx, of the part's samples. */
static void run_outputs(const tri_call *c) {
    const struct state *s = c->state;
    const float *bias = s->kind == FEW_Y && c->node->n_in > 2 ? c->in[2] : NULL;
    const int64_t in_size = s->in.channels * s->in.h * s->in.w, plane = s->h * s->v;
    struct cpu_range r = cpu_part(c, s->parts, s->w.n);
    float *field = c->scratch, *planes = field + s->in.size;
    memset(field, 0, (size_t)s->in.size * sizeof *field);
    for (int64_t n = r.begin; n < r.end; n++) {
        float *y = (float *)c->out[0] + n * s->channels * plane;
        bring(&s->in, s->pitch, (const float *)c->in[0] + n * in_size, field);
        for (int64_t first = 0; first < s->channels; first += ROWS)
            make_planes(s, field, (const float *)c->in[1] + first * s->row,
                        bias ? bias + first : NULL, least(s->channels - first, ROWS), planes,
                        y + first * plane);
    }
}

/* ---- the weight's derivative ---- */

/* Adds to the sums of rows x taps elements what `n` samples give, VEC of the SUMS chains. */
INLINE void sums(const int rows, const int taps, const struct state *s, int64_t n, const float *x,
                 const int32_t *from, const float *dy, float *sum) {
    vec acc[DW_TAPS][DW_ROWS];
    UNROLL for (int k = 0; k < taps; k++)
        UNROLL for (int r = 0; r < rows; r++)
            acc[k][r] = *(const vec_at *)(sum + (k * DW_ROWS + r) * SUMS);
    for (; n; n--, x += s->in.size, dy += DW_ROWS * s->places)
        for (int64_t at = 0; at < s->places; at += SUMS) {
            vec d[DW_ROWS];
            UNROLL for (int r = 0; r < rows; r++) d[r] = *(const vec_at *)(dy + r * s->places + at);
            UNROLL for (int k = 0; k < taps; k++) {
                vec run = *(const vec_at *)(x + from[k] + at);
                UNROLL for (int r = 0; r < rows; r++) acc[k][r] = vec_fma(d[r], run, acc[k][r]);
            }
        }
    UNROLL for (int k = 0; k < taps; k++)
        UNROLL for (int r = 0; r < rows; r++)
            *(vec_at *)(sum + (k * DW_ROWS + r) * SUMS) = acc[k][r];
}

typedef void sums_fn(const struct state *s, int64_t n, const float *x, const int32_t *from,
                     const float *dy, float *sum);

#define SUM(rows, taps)                                                                     \
    static void sums_##rows##taps(const struct state *s, int64_t n, const float *x,         \
                                  const int32_t *from, const float *dy, float *sum) {       \
        sums(rows, taps, s, n, x, from, dy, sum);                                           \
    }
#define SUM_NAME(rows, taps) sums_##rows##taps,
EVERY_SUM(SUM)
static sums_fn *const summing[] = {EVERY_SUM(SUM_NAME)};

/* The part's output channels, of all samples. */
static void run_dw(const tri_call *c) {
    const struct state *s = c->state;
    const int64_t image = s->in.channels * s->in.h * s->in.w;
    struct cpu_range o = cpu_part(c, s->parts, s->w.o);
    int64_t rows = o.end - o.begin;
    const struct field own = {.channels = rows, .h = s->h, .w = s->v, .plane = s->places};
    float *x = c->scratch, *dy = x + s->group * s->in.size,
          *sum = dy + s->group * DW_ROWS * s->places;
    memset(x, 0, (size_t)(sum + s->taps * DW_ROWS * SUMS - x) * sizeof *x);
    for (int64_t first = 0; first < s->w.n; first += s->group) {
        int64_t n = least(s->group, s->w.n - first);
        for (int64_t i = 0; i < n; i++) {
            bring(&s->in, s->pitch, (const float *)c->in[1] + (first + i) * image,
                  x + i * s->in.size);
            bring(&own, s->pitch,
                  (const float *)c->in[0] + ((first + i) * s->w.o + o.begin) * s->h * s->v,
                  dy + i * DW_ROWS * s->places);
        }
        for (int64_t k = 0; k < s->taps; k += DW_TAPS)
            for (int64_t chain = 0; chain < SUMS; chain += VEC)
                summing[SUM_AT(rows, least(DW_TAPS, s->taps - k))](
                    s, n, x + chain, s->from + k, dy + chain, sum + k * DW_ROWS * SUMS + chain);
    }
    float *dw = (float *)c->out[0] + o.begin * s->taps;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < s->taps; k++) *dw++ = conv_total(sum + (k * DW_ROWS + r) * SUMS);
}

/* ---- preparation ---- */

static void release(void *state) {
    struct state *s = state;
    free(s->from);
    free(s->weight);
    free(s);
}

/* Element (c, i, j) of the weight of an output channel; of dx that is one of the input, the
 * weight's channels are taken crosswise, and windows are walked backwards. */
static void list_taps(struct state *s) {
    const struct window *w = &s->w;
    const bool back = s->kind == FEW_DX;
    const int64_t window = w->kh * w->kw;
    int64_t k = 0;
    for (int64_t c = 0; c < s->in.channels; c++)
        for (int64_t i = 0; i < w->kh; i++)
            for (int64_t j = 0; j < w->kw; j++, k++) {
                int64_t down = back ? w->kh - 1 - i : i, right = back ? w->kw - 1 - j : j;
                s->from[k] = (int32_t)(c * s->in.plane + down * w->dh * s->pitch + right * w->dw);
                s->weight[k] = (int32_t)(c * (back ? w->c : 1) * window + i * w->kw + j);
            }
}

#define CACHED                                                                                    \
    8192 /* floats of dw's tensors that stay in the first-level cache: samples worked on together \
          */

static void measure(struct state *s) {
    const struct window *w = &s->w;
    if (s->kind == FEW_DX) {
        const int64_t down = (w->kh - 1) * w->dh, across = (w->kw - 1) * w->dw;
        s->pitch = w->ow + most(across - w->pw, across - w->pw_end);
        s->in = field_of(w->o, w->oh, w->ow, down - w->ph, down - w->ph_end, across - w->pw,
                         s->pitch);
        s->channels = w->c, s->h = w->h, s->v = w->w;
        s->row = w->kh * w->kw;
    } else {
        s->pitch = w->w + most(w->pw, w->pw_end);
        s->in = field_of(w->c, w->h, w->w, w->ph, w->ph_end, w->pw, s->pitch);
        s->channels = w->o, s->h = w->oh, s->v = w->ow;
        s->row = w->c * w->kh * w->kw;
    }
    s->places = ((s->h - 1) * s->pitch + s->v + SUMS - 1) / SUMS * SUMS;
    s->taps = s->in.channels * w->kh * w->kw;
    int64_t group = CACHED / (s->in.size + DW_ROWS * s->places);
    s->group = group < 1 ? 1 : least(group, w->n);
    s->parts = s->kind == FEW_DW ? (w->o + DW_ROWS - 1) / DW_ROWS
                                 : cpu_parts(w->n, s->channels * s->taps * s->places / SUMS);
}

static tri_status prepare(const tri_node *n, enum kind kind, void **state) {
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    struct state *s = *state;
    CHECK(window_of(n, &s->w));
    s->kind = kind;
    measure(s);
    s->from = malloc((size_t)s->taps * sizeof *s->from);
    s->weight = malloc((size_t)s->taps * sizeof *s->weight);
    if (s->from && s->weight) {
        list_taps(s);
        return TRI_OK;
    }
    release(s);
    return base_no_memory(n->name);
}

static tri_status prepare_y(const tri_node *n, void **state) { return prepare(n, FEW_Y, state); }
static tri_status prepare_dx(const tri_node *n, void **state) { return prepare(n, FEW_DX, state); }
static tri_status prepare_dw(const tri_node *n, void **state) { return prepare(n, FEW_DW, state); }

static void plan(const tri_node *n, struct kernel *k) {
    const struct state *s = k->state;
    int64_t floats = s->in.size + ROWS * s->places;
    (void)n;
    if (s->kind == FEW_DW)
        floats = s->group * (s->in.size + DW_ROWS * s->places) + s->taps * DW_ROWS * SUMS;
    k->parts = s->parts;
    k->scratch = (size_t)floats * sizeof(float);
}

const struct dev_row FOR_ISA(cpu_conv_few)[] = {
    {.op = "conv2d", .run = run_outputs, .prepare = prepare_y, .release = release, .plan = plan},
    {.op = "conv2d_dx",
     .run = run_outputs,
     .prepare = prepare_dx,
     .release = release,
     .plan = plan},
    {.op = "conv2d_dw", .run = run_dw, .prepare = prepare_dw, .release = release, .plan = plan},
    {0},
};
