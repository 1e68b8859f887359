/* SPDX-License-Identifier: Apache-2.0
 * The derivative of a depthwise convolution's weight in f32 (conv_depth.h). The sums of a tile of
 * taps are in registers while they go over the places of dy of all samples, line by line, in blocks
 * of 256 places, each a chain of fused multiply-adds from 0. A tap leaves out the places where it
 * reads padding. A part has some blocks of channels, with all samples. */
#include "dev/cpu/conv_depth.h"

#include "ops/window.h"

#define TILE 3 /* rows and columns of taps that are summed together */
#define RUN 7  /* places of a line that are added together to a full tile */

/* Taps [row, row_end) x [column, column_end) of the weight. */
struct tile {
    int64_t row, row_end, column, column_end;
    int64_t top, bottom; /* by lines [top, bottom) of dy all rows read lines inside of x */
};

struct state {
    struct window w;
    struct plane x, dy;
    enum shape shape;
    int64_t parts, n;
    struct tile *tiles; /* n of them */
};

/* The planes of a block, and the steps from sample to sample. */
struct planes {
    const float *dy, *x;
    int64_t dy_step, x_step;
};

/* A place of dy, and the planes of its sample. */
struct place {
    const float *dy, *x;
    int64_t line, column;
};

/* ---- tiles ---- */

/* Adds places of dy to the sums of the rows [top, bottom) of taps. x: what the first place reads by
 * the first tap of each row, in column `column`. mask: null, or which rows are inside of x. */
INLINE void add_places(const int places, const int top, const int bottom, const int columns,
                       const enum shape shape, const struct window *w, const vec_mask *mask,
                       int64_t column, const float *dy, const float *const x[TILE],
                       vec sum[TILE][TILE]) {
    const int move = shape == TWO ? 2 : 1, reach = (places - 1) * move + columns;
    vec d[RUN];
    UNROLL_COLUMNS for (int q = 0; q < reach; q++) {
        if (q % move == 0 && q / move < places) {
            __builtin_prefetch(dy + q / move * BLOCK + AHEAD);
            d[q / move] = load_once(dy + q / move * BLOCK);
        }
        const int64_t at = shape == ANY ? q * w->dw : q;
        if (!inside(column + at, w->w)) continue;
        UNROLL for (int i = top; i < bottom; i++) {
            if (i >= bottom - move) __builtin_prefetch(x[i] + at * BLOCK + AHEAD);
            const vec v = load_once(x[i] + at * BLOCK);
            UNROLL for (int j = 0; j < columns; j++) {
                if (q < j || (q - j) % move || (q - j) / move >= places) continue;
                const vec s = vec_fma(d[(q - j) / move], v, sum[i][j]);
                sum[i][j] = mask ? vec_select(mask[i], s, sum[i][j]) : s;
            }
        }
    }
}

/* The same for n places of a line; only a full tile is worth the code for several at once. */
INLINE void add_line(const int top, const int bottom, const int columns, const enum shape shape,
                     const struct window *w, const vec_mask *mask, int64_t n, int64_t column,
                     const float *dy, const float *const x[TILE], vec sum[TILE][TILE]) {
    const int64_t move = shape == ANY ? w->sw : shape == TWO ? 2 : 1;
    const float *from[TILE];
    UNROLL for (int i = top; i < bottom; i++) from[i] = x[i];
    for (; !mask && columns == TILE && shape != ANY && n >= RUN; n -= RUN) {
        add_places(RUN, top, bottom, columns, shape, w, mask, column, dy, from, sum);
        UNROLL for (int i = top; i < bottom; i++) from[i] += RUN * move * BLOCK;
        dy += RUN * BLOCK, column += RUN * move;
    }
    for (; n; n--) {
        add_places(1, top, bottom, columns, shape, w, mask, column, dy, from, sum);
        UNROLL for (int i = top; i < bottom; i++) from[i] += move * BLOCK;
        dy += BLOCK, column += move;
    }
}

/* A line of which some rows of taps read padding. `line` is what the first row reads. */
INLINE void add_border(const int rows, const int columns, const enum shape shape,
                       const struct window *w, int64_t n, int64_t line, int64_t column,
                       const float *dy, const float *x[TILE], vec sum[TILE][TILE]) {
    int top = 0, bottom = rows;
    vec_mask mask[TILE];
    while (top < bottom && line + top * w->dh < 0) top++;
    while (top < bottom && line + (bottom - 1) * w->dh >= w->h) bottom--;
    if (top == bottom) return;
    if (rows == TILE && columns == TILE && top == 1 && bottom == TILE) {
        add_line(1, TILE, columns, shape, w, NULL, n, column, dy, x, sum);
        return;
    }
    if (rows == TILE && columns == TILE && top == 0 && bottom == TILE - 1) {
        add_line(0, TILE - 1, columns, shape, w, NULL, n, column, dy, x, sum);
        return;
    }
    UNROLL for (int i = 0; i < rows; i++) {
        const bool counts = i >= top && i < bottom;
        mask[i] = vec_less(vec_set(0), vec_set(counts));
        if (!counts) x[i] = x[top];
    }
    add_line(0, rows, columns, shape, w, mask, n, column, dy, x, sum);
}

/* Adds n places, as a chain, to the sums of rows x columns taps; returns the place after them. */
INLINE struct place sum_tile(const int rows, const int columns, const enum shape shape,
                             const struct window *w, const struct planes *p, const struct tile *t,
                             struct place from, int64_t n, float *to) {
    const int64_t row = w->w * BLOCK, left = t->column * w->dw - w->pw;
    struct place at = from;
    for (int lane = 0; lane < BLOCK; lane += VEC) {
        vec sum[TILE][TILE];
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int j = 0; j < columns; j++) sum[i][j] = (vec){0};
        at = from;
        for (int64_t rest = n; rest;) {
            if (at.column == w->ow) at.column = 0, at.line++;
            if (at.line == w->oh) at.line = 0, at.dy += p->dy_step, at.x += p->x_step;
            const int64_t line = at.line * w->sh - w->ph + t->row * w->dh;
            const float *dy = at.dy + (at.line * w->ow + at.column) * BLOCK + lane, *x[TILE];
            int64_t column = at.column * w->sw + left, some = least(rest, w->ow - at.column);
            UNROLL for (int i = 0; i < rows; i++)
                x[i] = at.x + (line + i * w->dh) * row + column * BLOCK + lane;
            if (at.line < t->top || at.line >= t->bottom) {
                add_border(rows, columns, shape, w, some, line, column, dy, x, sum);
                rest -= some, at.column += some;
                continue;
            }
            for (;; some = w->ow) {
                add_line(0, rows, columns, shape, w, NULL, some, column, dy, x, sum);
                rest -= some, at.column += some;
                if (at.column < w->ow || rest < w->ow || at.line + 1 == t->bottom) break;
                at.column = 0, at.line++;
                dy += some * BLOCK;
                UNROLL for (int i = 0; i < rows; i++)
                    x[i] += w->sh * row - (column - left) * BLOCK;
                column = left;
            }
        }
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int j = 0; j < columns; j++)
                *(vec_at *)(to + (i * w->kw + j) * BLOCK + lane) += sum[i][j];
    }
    return at;
}

typedef struct place tile_fn(const struct window *w, const struct planes *p, const struct tile *t,
                             struct place from, int64_t n, float *to);

#define EVERY_TILE(X, shape)                                                                    \
    X(1, 1, shape) X(1, 2, shape) X(1, 3, shape) X(2, 1, shape) X(2, 2, shape) X(2, 3, shape)   \
    X(3, 1, shape) X(3, 2, shape) X(3, 3, shape)
#define EVERY_SHAPE(X) EVERY_TILE(X, ANY) EVERY_TILE(X, ONE) EVERY_TILE(X, TWO)
#define SUM(rows, columns, shape)                                                               \
    static struct place tile_##rows##columns##shape(                                            \
        const struct window *w, const struct planes *p, const struct tile *t,                   \
        struct place from, int64_t n, float *to) {                                              \
        return sum_tile(rows, columns, shape, w, p, t, from, n, to);                            \
    }
#define SUM_ENTRY(rows, columns, shape) [shape][rows][columns] = tile_##rows##columns##shape,
EVERY_SHAPE(SUM)
static tile_fn *const sums[SHAPES][TILE + 1][TILE + 1] = {EVERY_SHAPE(SUM_ENTRY)};

/* ---- running ---- */

/* The planes of a block; `step`: from sample to sample. */
static const float *planes_of(const struct plane *p, const float *all, int64_t n, int64_t block,
                              float *own, int64_t *step) {
    const int64_t next = p->channels / BLOCK * floats(p);
    all += block * floats(p);
    *step = p->plain ? floats(p) : next;
    for (int64_t i = 0; p->plain && i < n; i++)
        bring(all + i * next, p->h * p->w, own + i * floats(p));
    return p->plain ? own : all;
}

static int64_t taps_of(const struct state *s) { return s->w.kh * s->w.kw; }

static void run(const tri_call *c) {
    const struct state *s = c->state;
    const struct window *w = &s->w;
    const int64_t places = w->n * w->oh * w->ow, taps = taps_of(s);
    const struct cpu_range r = cpu_part(c, s->parts, w->c / BLOCK);
    float *sum = c->scratch, *own_x = sum + taps * BLOCK;
    float *own_dy = own_x + (s->x.plain ? w->n * floats(&s->x) : 0);
    for (int64_t block = r.begin; block < r.end; block++) {
        struct planes p;
        p.x = planes_of(&s->x, c->in[1], w->n, block, own_x, &p.x_step);
        p.dy = planes_of(&s->dy, c->in[0], w->n, block, own_dy, &p.dy_step);
        struct place at = {p.dy, p.x, 0, 0}, next = at;
        memset(sum, 0, (size_t)(taps * BLOCK) * sizeof *sum);
        for (int64_t left = places; left > 0; left -= CHAIN, at = next)
            for (int64_t i = 0; i < s->n; i++) {
                const struct tile *t = &s->tiles[i];
                tile_fn *add = sums[s->shape][t->row_end - t->row][t->column_end - t->column];
                next = add(w, &p, t, at, least(left, CHAIN),
                           sum + (t->row * w->kw + t->column) * BLOCK);
            }
        put(sum, taps, (float *)c->out[0] + block * taps * BLOCK);
    }
}

/* ---- preparation ---- */

static struct tile tile_of(const struct window *w, int64_t row, int64_t column) {
    struct tile t = {row, least(row + TILE, w->kh), column, least(column + TILE, w->kw), 0, w->oh};
    const int64_t first = row * w->dh - w->ph, last = (t.row_end - 1) * w->dh - w->ph;
    while (t.top < w->oh && t.top * w->sh + first < 0) t.top++;
    while (t.bottom > t.top && (t.bottom - 1) * w->sh + last >= w->h) t.bottom--;
    return t;
}

static void release(void *state) {
    struct state *s = state;
    free(s->tiles);
    free(s);
}

static tri_status prepare(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    struct state *s = *state;
    const struct window *w = &s->w;
    CHECK(window_of(n, &s->w));
    s->dy = plane_of(n->in[0]);
    s->x = plane_of(n->in[1]);
    s->shape = w->dw > 1 || w->sw > 2 ? ANY : w->sw == 2 ? TWO : ONE;
    s->parts = cpu_parts(w->c / BLOCK, w->n * w->oh * w->ow * taps_of(s));
    s->tiles = calloc((size_t)(((w->kh + TILE - 1) / TILE) * ((w->kw + TILE - 1) / TILE)),
                      sizeof *s->tiles);
    if (!s->tiles) {
        release(s);
        return base_no_memory(n->name);
    }
    for (int64_t i = 0; i < w->kh; i += TILE)
        for (int64_t j = 0; j < w->kw; j += TILE) s->tiles[s->n++] = tile_of(w, i, j);
    return TRI_OK;
}

static void plan(const tri_node *n, struct kernel *k) {
    const struct state *s = k->state;
    const int64_t brought = (s->x.plain ? floats(&s->x) : 0) + (s->dy.plain ? floats(&s->dy) : 0);
    (void)n;
    k->parts = s->parts;
    k->scratch = (size_t)(taps_of(s) * BLOCK + s->w.n * brought) * sizeof(float);
}

static void formats(const tri_node *n, struct format *in, struct format *out) {
    (void)n, (void)out;
    in[0].block = in[1].block = BLOCK;
}

const struct dev_row FOR_ISA(cpu_conv_depth_dw)[] = {
    {.op = "conv2d_dw",
     .run = run,
     .prepare = prepare,
     .release = release,
     .plan = plan,
     .formats = formats,
     .any_order = true},
    {0}};
