/* SPDX-License-Identifier: Apache-2.0
 * Depthwise convolutions and their derivatives by x in f32 (conv_depth.h). Some places of a line
 * are summed together in registers, over the taps in order, in blocks of 256 taps, each a chain of
 * fused multiply-adds from 0. Padding is left out.
 *
 * The derivative by x with strides is computed for each remainder of a place by the stride, which
 * has taps of its own; taps that fall between strides are not counted. */
#include "dev/cpu/conv_depth.h"
#include "dev/cpu/conv_rows.h"

#include "ops/window.h"

#define BESIDE 3 /* taps of a row that are multiplied together, if they read columns side by side */

/* n taps of a row, side by side. */
struct taps {
    int64_t weight;       /* floats: where the first one is */
    int64_t line, column; /* which place 0 reads by it */
    int64_t x;            /* the same in floats */
    int64_t chain, n;
};

/* The places of a plane that have the same remainders, and their taps in order. */
struct places {
    struct conv_axis down, across;
    const struct taps *taps;
    int64_t n, chains;
    int64_t left, right; /* the outermost columns that place 0 reads */
    int64_t width;       /* of x */
    enum shape shape;
};

struct state {
    struct window w;
    struct plane from, to;
    bool back;             /* dx */
    bool packed;           /* the weight */
    int64_t parts;
    int64_t down, across;  /* remainders along both axes */
    struct places *places; /* [down, across] */
    struct taps *taps;
};

/* ---- places ---- */

/* Places of a line, by the taps of a chain. */
struct line {
    const float *x; /* line `move` times the number of this one, column 0 */
    const struct taps *taps, *end;
    const float *weight, *bias; /* bias null: none */
    float *y;                   /* place 0 */
    bool add;
};

#define PLACES 14 /* of a piece; those at the end of a line have up to half of it */

/* Adds n taps side by side. Each column that they read is loaded once; from the last to the first
 * if they go back, so that each place takes its taps in order. */
INLINE void add_taps(const int n, const int places, const bool whole, const enum shape shape,
                     const struct places *p, int64_t column, const float *x, const float *weight,
                     vec *sum) {
    const int move = shape == TWO ? 2 : 1, reach = (places - 1) * move + n;
    const int64_t step = p->across.next_tap * BLOCK;
    vec w[BESIDE];
    UNROLL for (int k = 0; k < n; k++) w[k] = *(const vec_at *)(weight + k * step);
    if (shape == BACK) x -= (n - 1) * BLOCK, column -= n - 1;
    UNROLL_COLUMNS for (int i = 0; i < reach; i++) {
        const int q = shape == BACK ? reach - 1 - i : i;
        if ((n == 1 && q % move) || (!whole && !inside(column + q, p->width))) continue;
        if (n > 1) __builtin_prefetch(x + q * BLOCK + AHEAD);
        const vec v = load_once(x + q * BLOCK);
        UNROLL for (int k = 0; k < n; k++) {
            const int at = shape == BACK ? q - (n - 1) + k : q - k;
            if (at >= 0 && at % move == 0 && at / move < places)
                sum[at / move] = vec_fma(v, w[k], sum[at / move]);
        }
    }
}

INLINE void add_tap(const int places, const bool whole, const struct places *p, int64_t column,
                    const float *x, const float *weight, vec *sum) {
    const int64_t move = p->across.move;
    const vec w = *(const vec_at *)weight;
    UNROLL for (int j = 0; j < places; j++) {
        if (!whole && !inside(column + j * move, p->width)) continue;
        __builtin_prefetch(x + j * move * BLOCK + AHEAD);
        sum[j] = vec_fma(*(const vec_at *)(x + j * move * BLOCK), w, sum[j]);
    }
}

/* The places from `begin` on; whole: none reads padding. */
INLINE void sum_places(const int places, const bool whole, const enum shape shape,
                       const struct places *p, const struct line *l, int64_t begin) {
    const int64_t step = p->across.step * BLOCK, first = begin * p->across.move;
    for (int lane = 0; lane < BLOCK; lane += VEC) {
        float *y = l->y + begin * step + lane;
        vec sum[PLACES];
        for (int j = 0; lane == 0 && j < places; j++)
            __builtin_prefetch(y + j * step + AHEAD / 2, 1);
        UNROLL for (int j = 0; j < places; j++) sum[j] = (vec){0};
        for (const struct taps *t = l->taps, *end = l->end; t < end; t++) {
            const int64_t column = first + t->column;
            const float *x = l->x + first * BLOCK + t->x + lane, *w = l->weight + t->weight + lane;
            if (shape == ANY)
                add_tap(places, whole, p, column, x, w, sum);
            else if (t->n == 3)
                add_taps(3, places, whole, shape, p, column, x, w, sum);
            else if (t->n == 2)
                add_taps(2, places, whole, shape, p, column, x, w, sum);
            else
                add_taps(1, places, whole, shape, p, column, x, w, sum);
        }
        if (l->add)
            UNROLL for (int j = 0; j < places; j++) sum[j] = *(vec_at *)(y + j * step) + sum[j];
        if (l->bias) {
            const vec bias = *(const vec_at *)(l->bias + lane);
            UNROLL for (int j = 0; j < places; j++) sum[j] += bias;
        }
        UNROLL for (int j = 0; j < places; j++) *(vec_at *)(y + j * step) = sum[j];
    }
}

typedef void sum_fn(const struct places *p, const struct line *l, int64_t begin);

#define EVERY_PLACES(X, whole, shape)                                                           \
    X(1, whole, shape) X(2, whole, shape) X(3, whole, shape) X(4, whole, shape)                 \
    X(5, whole, shape) X(6, whole, shape) X(7, whole, shape) X(14, whole, shape)
#define EVERY_SHAPE(X, whole)                                                                   \
    EVERY_PLACES(X, whole, ANY) EVERY_PLACES(X, whole, ONE)                                     \
    EVERY_PLACES(X, whole, TWO) EVERY_PLACES(X, whole, BACK)
#define SUM(n, whole, shape)                                                                    \
    static void sum_##n##whole##shape(const struct places *p, const struct line *l,             \
                                      int64_t begin) {                                          \
        sum_places(n, whole, shape, p, l, begin);                                               \
    }
#define SUM_ENTRY(n, whole, shape) [whole][shape][n] = sum_##n##whole##shape,
EVERY_SHAPE(SUM, 0)
EVERY_SHAPE(SUM, 1)
static sum_fn *const sums[2][SHAPES][PLACES + 1] = {EVERY_SHAPE(SUM_ENTRY, 0)
                                                    EVERY_SHAPE(SUM_ENTRY, 1)};

/* ---- planes ---- */

static void make_line(const struct places *p, const struct line *l) {
    const struct conv_axis *a = &p->across;
    for (int64_t begin = 0, n; begin < a->count; begin += n) {
        const int64_t left = a->count - begin;
        n = left >= PLACES ? PLACES : left > PLACES / 2 ? (left + 1) / 2 : left;
        const bool whole = begin * a->move + p->left >= 0 &&
                           (begin + n - 1) * a->move + p->right < p->width;
        sums[whole][p->shape][n](p, l, begin);
    }
}

/* Line r of these places, to the line y of the plane. */
static void make_places(const struct state *s, const struct places *p, int64_t r, const float *x,
                        const float *weight, const float *bias, float *y) {
    const int64_t at = r * p->down.move;
    const struct taps *t = p->taps, *end = t + p->n;
    struct line l = {.x = x + at * s->from.w * BLOCK, .weight = weight,
                     .y = y + p->across.first * BLOCK};
    while (t < end && !inside(at + t->line, s->from.h)) t++;
    while (t < end && !inside(at + end[-1].line, s->from.h)) end--;
    for (int64_t chain = 0; chain < p->chains; chain++) {
        const bool last = chain + 1 == p->chains;
        l.taps = t;
        while (!last && t < end && t->chain == chain) t++;
        l.end = last ? end : t;
        l.add = chain > 0;
        l.bias = last ? bias : NULL;
        make_line(p, &l);
    }
}

static void make_plane(const struct state *s, const float *x, const float *weight,
                       const float *bias, float *y) {
    int64_t left = s->to.h;
    for (int64_t r = 0; left; r++)
        for (int64_t i = 0; i < s->down && left; i++, left--, y += s->to.w * BLOCK)
            for (int64_t j = 0; j < s->across; j++)
                make_places(s, &s->places[i * s->across + j], r, x, weight, bias, y);
}

static int64_t taps_of(const struct state *s) { return s->w.kh * s->w.kw; }

static void run(const tri_call *c) {
    const struct state *s = c->state;
    const int64_t blocks = s->w.c / BLOCK, taps = taps_of(s);
    const struct cpu_range r = cpu_part(c, s->parts, s->w.n * blocks);
    float *own_weight = c->scratch, *own_x = own_weight, *own_y; /* null if there are none */
    if (!s->packed) own_x += taps * BLOCK;
    own_y = own_x;
    if (s->from.plain) own_y += floats(&s->from);
    for (int64_t at = r.begin; at < r.end; at++) {
        const int64_t block = at % blocks;
        const float *x = (const float *)c->in[0] + at * floats(&s->from);
        const float *weight = (const float *)c->in[1] + block * taps * BLOCK;
        const float *bias =
            c->node->n_in > 2 && !s->back ? (const float *)c->in[2] + block * BLOCK : NULL;
        float *y = (float *)c->out[0] + at * floats(&s->to);
        if (!s->packed) bring(weight, taps, own_weight);
        if (s->from.plain) bring(x, s->from.h * s->from.w, own_x);
        make_plane(s, s->from.plain ? own_x : x, s->packed ? weight : own_weight, bias,
                   s->to.plain ? own_y : y);
        if (s->to.plain) put(own_y, s->to.h * s->to.w, y);
    }
}

/* ---- preparation ---- */

static enum shape shape_of(const struct conv_axis *a) {
    if (a->taps > 1 && a->next_read != 1)
        return a->next_read == -1 && a->move == 1 ? BACK : ANY;
    return a->move == 1 ? ONE : a->move == 2 ? TWO : ANY;
}

/* Returns where the next taps go. */
static struct taps *list_taps(const struct state *s, struct places *p, struct taps *to) {
    const struct conv_axis *down = &p->down, *across = &p->across;
    p->taps = to;
    for (int64_t i = 0; i < down->taps; i++)
        for (int64_t j = 0; j < across->taps; j += to++->n) {
            const int64_t term = i * across->taps + j, row = down->tap + i * down->next_tap;
            const int64_t column = across->tap + j * across->next_tap;
            *to = (struct taps){.weight = (row * s->w.kw + column) * BLOCK,
                                .line = down->read + i * down->next_read,
                                .column = across->read + j * across->next_read,
                                .chain = term / CHAIN, .n = 1};
            to->x = (to->line * s->from.w + to->column) * BLOCK;
            if (p->shape != ANY)
                to->n = least(least(BESIDE, across->taps - j), CHAIN - term % CHAIN);
        }
    p->n = to - p->taps;
    p->chains = most((down->taps * across->taps + CHAIN - 1) / CHAIN, 1);
    return to;
}

static void list_places(struct state *s) {
    const struct window *w = &s->w;
    struct taps *to = s->taps;
    for (int64_t i = 0; i < s->down * s->across; i++) {
        struct places *p = &s->places[i];
        struct conv_axis *a = &p->across;
        p->down = conv_axis_of(s->back, i / s->across, s->to.h, w->kh, w->sh, w->ph, w->dh);
        *a = conv_axis_of(s->back, i % s->across, s->to.w, w->kw, w->sw, w->pw, w->dw);
        const int64_t last = a->read + (a->taps - 1) * a->next_read;
        p->left = least(a->read, last);
        p->right = most(a->read, last);
        p->width = s->from.w;
        p->shape = shape_of(a);
        to = list_taps(s, p, to);
    }
}

static void release(void *state) {
    struct state *s = state;
    free(s->places);
    free(s->taps);
    free(s);
}

static tri_status prepare(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    struct state *s = *state;
    CHECK(window_of(n, &s->w));
    s->from = plane_of(n->in[0]);
    s->to = plane_of(n->out);
    s->back = node_is(n, "conv2d_dx");
    s->packed = *n->in[1]->pack;
    s->parts = cpu_parts(s->w.n * s->w.c / BLOCK, s->w.oh * s->w.ow * taps_of(s));
    s->down = s->back ? least(s->w.sh, s->to.h) : 1;
    s->across = s->back ? least(s->w.sw, s->to.w) : 1;
    s->places = calloc((size_t)(s->down * s->across), sizeof *s->places);
    s->taps = calloc((size_t)taps_of(s), sizeof *s->taps);
    if (s->places && s->taps) {
        list_places(s);
        return TRI_OK;
    }
    release(s);
    return base_no_memory(n->name);
}

static void plan(const tri_node *n, struct kernel *k) {
    const struct state *s = k->state;
    (void)n;
    k->parts = s->parts;
    k->scratch = (size_t)((s->packed ? 0 : taps_of(s) * BLOCK) +
                          (s->from.plain ? floats(&s->from) : 0) +
                          (s->to.plain ? floats(&s->to) : 0)) * sizeof(float);
}

static void formats(const tri_node *n, struct format *in, struct format *out) {
    (void)n;
    in[0].block = out[0].block = BLOCK;
    strcpy(in[1].pack, CONV_DEPTH_PACK);
}

#define ENTRY(name) \
    {.op = name, .run = run, .prepare = prepare, .release = release, .plan = plan, \
     .formats = formats, .any_order = true}

const struct dev_row FOR_ISA(cpu_conv_depth)[] = {ENTRY("conv2d"), ENTRY("conv2d_dx"), {0}};
