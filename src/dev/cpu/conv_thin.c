/* SPDX-License-Identifier: Apache-2.0
 * Convolutions of bf16 with thin groups (conv_thin_fits) and their derivatives. The channels fill
 * blocks of 16, and vectors run over the outputs of a block. What some lines read is widened to
 * f32: for each place, and each channel of a group, 16 floats, one for each output, of its own
 * group; zeros for padding. So each output has its terms in one lane, [tap, channel of a group],
 * and they are added as product16 (docs/arithmetic.md).
 *
 * The derivative by x with strides is computed for each remainder of a place by the stride, which
 * has taps of its own; taps that fall between strides are not counted. */
#include "dev/cpu/conv_depth.h"
#include "dev/cpu/conv_dw.h"
#include "dev/cpu/conv_rows.h"
#include "dev/cpu/half.h"

#define PLACES 7 /* of a line, summed together in registers */
#define TERMS (VEC_REGISTERS == 32 ? 9 : 7) /* of the derivative by the weight, likewise */
#define STRIP 16384 /* floats that are widened for some lines, if the taps of one need no more */

/* ---- what is read ---- */

/* Lines and columns that are widened; some lie beside the plane. */
struct strip {
    int64_t line, lines, column, columns;
};

/* VEC of 16 channels from `lane` on, each the j-th of its group. */
INLINE vec spread(const uint16_t *from, int64_t lane, int64_t group, int64_t j) {
    static const uint32_t lanes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const vec_u32 at = (*(const vec_u32_at *)(lanes + lane) & (uint32_t)-group) + (uint32_t)j;
#if VEC == 16
    return _mm512_permutexvar_ps((__m512i)at, vec_load(TRI_BF16, from, lane));
#elif VEC == 8
    return _mm256_permutevar8x32_ps(vec_load(TRI_BF16, from, lane), (__m256i)at);
#else
    vec_u16 x = {0};
    for (int k = 0; k < VEC; k++) x[k] = from[at[k]];
    return vec_of_bf16(x);
#endif
}

/* n places of a line. */
static void widen_places(const struct plane *p, const uint16_t *x, int64_t group, int64_t n,
                         float *to) {
    uint16_t own[BLOCK];
    for (; n; n--, x += p->plain ? 1 : BLOCK) {
        for (int k = 0; p->plain && k < BLOCK; k++) own[k] = x[k * p->h * p->w];
        const uint16_t *from = p->plain ? own : x;
        for (int64_t j = 0; j < group; j++, to += BLOCK)
            for (int lane = 0; lane < BLOCK; lane += VEC)
                *(vec_at *)(to + lane) = group == 1 ? vec_load(TRI_BF16, from, lane)
                                                    : spread(from, lane, group, j);
    }
}

/* x: a plane of 16 channels; to [line, column, channel of a group, 16]. */
static void widen(const struct plane *p, const uint16_t *x, int64_t group, const struct strip *s,
                  float *to) {
    const int64_t place = group * BLOCK, end = s->column + s->columns;
    const int64_t left = least(most(s->column, 0), end), right = most(least(end, p->w), left);
    for (int64_t i = s->line; i < s->line + s->lines; i++, to += s->columns * place) {
        const bool some = inside(i, p->h);
        const int64_t first = some ? left - s->column : s->columns, last = some ? right : end;
        memset(to, 0, (size_t)(first * place) * sizeof *to);
        if (some)
            widen_places(p, x + (i * p->w + left) * (p->plain ? 1 : BLOCK), group, right - left,
                         to + first * place);
        memset(to + (last - s->column) * place, 0, (size_t)((end - last) * place) * sizeof *to);
    }
}

/* The two chains of a group of n terms. Zeros that it lacks make +0 of a chain that is -0. */
INLINE vec chains(vec even, vec odd, int64_t n) {
    if (n < HALF_GROUP - 1) even += vec_set(0);
    if (n < HALF_GROUP) odd += vec_set(0);
    return even + odd;
}

/* ---- y and dx ---- */

struct term {
    int64_t x, weight; /* floats: from the strip's first place, and from the weight's */
};

/* The places of a plane that have the same remainders, and their terms in order. */
struct places {
    struct conv_axis down, across;
    const struct term *term;
    int64_t n;
};

struct state {
    struct window w;
    struct plane from, to;
    bool back; /* dx */
    int64_t group, taps, parts;
    struct strip reach;    /* of what place 0 reads; `columns` of all places of a line */
    int64_t rows, strip;   /* places along a plane; those whose lines are widened together */
    int64_t down, across;  /* remainders along both axes */
    struct places *places; /* [down, across] */
    struct term *terms;
};

/* Places of a line, x_step floats apart in what they read and y_step in y, which is f32. */
INLINE void sum_places(const int places, const struct places *p, const float *x, int64_t x_step,
                       const float *weight, float *y, int64_t y_step) {
    for (int lane = 0; lane < BLOCK; lane += VEC, x += VEC, weight += VEC, y += VEC)
        for (int64_t begin = 0; begin == 0 || begin < p->n; begin += HALF_GROUP) {
            const int64_t n = least(p->n - begin, HALF_GROUP);
            vec sum[2][PLACES];
            UNROLL for (int j = 0; j < places; j++) sum[0][j] = sum[1][j] = (vec){0};
            for (const struct term *t = p->term + begin, *end = t + n; t < end; t += 2)
                UNROLL for (int i = 0; i < 2; i++) {
                    if (i && t + 1 == end) break;
                    const vec w = load_once(weight + t[i].weight);
                    const float *from = x + t[i].x;
                    UNROLL for (int j = 0; j < places; j++)
                        sum[i][j] = vec_fma(*(const vec_at *)(from + j * x_step), w, sum[i][j]);
                }
            UNROLL for (int j = 0; j < places; j++) {
                vec_at *to = (vec_at *)(y + j * y_step);
                vec all = {0};
                if (begin) all = *to;
                *to = all + chains(sum[0][j], sum[1][j], n);
            }
        }
}

typedef void places_fn(const struct places *p, const float *x, int64_t x_step, const float *weight,
                       float *y, int64_t y_step);

#define EVERY_PLACES(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define SUM(n)                                                                               \
    static void sum_##n(const struct places *p, const float *x, int64_t x_step,              \
                        const float *weight, float *y, int64_t y_step) {                     \
        sum_places(n, p, x, x_step, weight, y, y_step);                                      \
    }
#define SUM_ENTRY(n) [n] = sum_##n,
EVERY_PLACES(SUM)
static places_fn *const sums[PLACES + 1] = {EVERY_PLACES(SUM_ENTRY)};

static int64_t place_floats(const struct state *s) { return s->group * BLOCK; }

/* x: what the line's place 0 reads; y: the line in f32. */
static void sum_line(const struct state *s, const struct places *p, const float *x,
                     const float *weight, float *y) {
    const struct conv_axis *a = &p->across;
    const int64_t x_step = a->move * place_floats(s), y_step = a->step * BLOCK;
    y += a->first * BLOCK;
    for (int64_t begin = 0, n; begin < a->count; begin += n) {
        n = least(a->count - begin, PLACES);
        sums[n](p, x + begin * x_step, x_step, weight, y + begin * y_step, y_step);
    }
}

static void put_line(const struct plane *p, const float *from, const uint16_t *bias, uint16_t *y) {
    uint16_t own[BLOCK];
    for (int64_t i = 0; i < p->w; i++, from += BLOCK) {
        for (int lane = 0; lane < BLOCK; lane += VEC) {
            vec v = *(const vec_at *)(from + lane);
            if (bias) v += vec_load(TRI_BF16, bias, lane);
            vec_store(TRI_BF16, p->plain ? own : y + i * BLOCK, lane, v);
        }
        for (int k = 0; p->plain && k < BLOCK; k++) y[k * p->h * p->w + i] = own[k];
    }
}

static void make_plane(const struct state *s, const uint16_t *x, const float *weight,
                       const uint16_t *bias, uint16_t *y, float *line) {
    float *wide = line + s->to.w * BLOCK;
    const int64_t move = s->places->down.move, each = s->to.w * (s->to.plain ? 1 : BLOCK);
    for (int64_t row = 0; row < s->rows; row += s->strip) {
        const int64_t n = least(s->strip, s->rows - row);
        struct strip strip = s->reach;
        strip.line += row * move, strip.lines += (n - 1) * move;
        widen(&s->from, x, s->group, &strip, wide);
        for (int64_t r = 0; r < n; r++)
            for (int64_t i = 0; i < s->down; i++) {
                const struct places *p = &s->places[i * s->across];
                if (row + r >= p->down.count) continue;
                const uint64_t mode = half_flush();
                for (int64_t j = 0; j < s->across; j++)
                    sum_line(s, &p[j], wide + r * move * strip.columns * place_floats(s), weight,
                             line);
                half_restore(mode);
                put_line(&s->to, line, bias,
                         y + (p->down.first + (row + r) * p->down.step) * each);
            }
    }
}

/* The weight of a block, [tap, channel of a group, 16]. */
static void take_weight(const struct state *s, const uint16_t *weight, int64_t block, float *to) {
    for (int64_t t = 0; t < s->taps; t++)
        for (int64_t j = 0; j < s->group; j++)
            for (int64_t at = block * BLOCK; at < (block + 1) * BLOCK; at++) {
                const int64_t in = at % s->group;
                const int64_t from = s->back ? (at - in + j) * s->group + in : at * s->group + j;
                *to++ = convert_bf16_to_f32(weight[from * s->taps + t]);
            }
}

static void run(const tri_call *c) {
    const struct state *s = c->state;
    const int64_t blocks = s->w.c / BLOCK;
    const struct cpu_range r = cpu_part(c, s->parts, s->w.n * blocks);
    float *weight = c->scratch, *line = weight + s->taps * place_floats(s);
    for (int64_t at = r.begin; at < r.end; at++) {
        const int64_t block = at / s->w.n, plane = at % s->w.n * blocks + block;
        const uint16_t *bias =
            c->node->n_in > 2 && !s->back ? (const uint16_t *)c->in[2] + block * BLOCK : NULL;
        if (at == r.begin || at % s->w.n == 0) take_weight(s, c->in[1], block, weight);
        make_plane(s, (const uint16_t *)c->in[0] + plane * floats(&s->from), weight, bias,
                   (uint16_t *)c->out[0] + plane * floats(&s->to), line);
    }
}

/* ---- preparation ---- */

static void reach_of(const struct conv_axis *a, int64_t *first, int64_t *end) {
    const int64_t last = a->read + (a->taps - 1) * a->next_read;
    if (a->taps <= 0) return;
    *first = least(*first, least(a->read, last));
    *end = most(*end, most(a->read, last) + 1);
}

/* Returns where the next terms go. */
static struct term *list_terms(const struct state *s, struct places *p, struct term *to) {
    const struct conv_axis *down = &p->down, *across = &p->across;
    p->term = to;
    for (int64_t i = 0; i < down->taps; i++)
        for (int64_t j = 0; j < across->taps; j++)
            for (int64_t k = 0; k < s->group; k++, to++) {
                const int64_t line = down->read + i * down->next_read - s->reach.line;
                const int64_t column = across->read + j * across->next_read - s->reach.column;
                const int64_t tap = (down->tap + i * down->next_tap) * s->w.kw + across->tap +
                                    j * across->next_tap;
                to->x = ((line * s->reach.columns + column) * s->group + k) * BLOCK;
                to->weight = (tap * s->group + k) * BLOCK;
            }
    p->n = to - p->term;
    return to;
}

static int64_t strip_of(int64_t lines, int64_t move, int64_t line_floats, int64_t rows) {
    return most(1, least(rows, (STRIP / line_floats - lines) / move + 1));
}

static void list_places(struct state *s) {
    const struct window *w = &s->w;
    struct term *to = s->terms;
    struct strip *r = &s->reach;
    for (int64_t i = 0; i < s->down * s->across; i++) {
        struct places *p = &s->places[i];
        p->down = conv_axis_of(s->back, i / s->across, s->to.h, w->kh, w->sh, w->ph, w->dh);
        p->across = conv_axis_of(s->back, i % s->across, s->to.w, w->kw, w->sw, w->pw, w->dw);
        reach_of(&p->down, &r->line, &r->lines);
        reach_of(&p->across, &r->column, &r->columns);
    }
    const struct places *first = s->places; /* it has the most places */
    r->lines -= r->line;
    r->columns += (first->across.count - 1) * first->across.move - r->column;
    s->rows = first->down.count;
    s->strip = strip_of(r->lines, first->down.move, r->columns * place_floats(s), s->rows);
    for (int64_t i = 0; i < s->down * s->across; i++) to = list_terms(s, &s->places[i], to);
}

static void release(void *state) {
    struct state *s = state;
    free(s->places);
    free(s->terms);
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
    s->group = s->w.c / s->w.groups;
    s->taps = s->w.kh * s->w.kw;
    s->parts = cpu_parts(s->w.n * s->w.c / BLOCK, s->w.oh * s->w.ow * s->taps * s->group);
    s->down = s->back ? least(s->w.sh, s->to.h) : 1;
    s->across = s->back ? least(s->w.sw, s->to.w) : 1;
    s->places = calloc((size_t)(s->down * s->across), sizeof *s->places);
    s->terms = calloc((size_t)(s->taps * s->group), sizeof *s->terms);
    if (s->places && s->terms) {
        list_places(s);
        return TRI_OK;
    }
    release(s);
    return base_no_memory(n->name);
}

static void plan(const tri_node *n, struct kernel *k) {
    const struct state *s = k->state;
    const int64_t lines = s->reach.lines + (s->strip - 1) * s->places->down.move;
    (void)n;
    k->parts = s->parts;
    k->scratch = (size_t)((s->taps + lines * s->reach.columns) * place_floats(s) +
                          s->to.w * BLOCK) * sizeof(float);
}

static void formats(const tri_node *n, struct format *in, struct format *out) {
    (void)n;
    in[0].block = out[0].block = BLOCK;
}

#define ENTRY(name) \
    {.op = name, .run = run, .prepare = prepare, .release = release, .plan = plan, \
     .formats = formats, .any_order = true}

const struct dev_row FOR_ISA(cpu_conv_thin)[] = {ENTRY("conv2d"), ENTRY("conv2d_dx"), {0}};

/* ---- dw ---- */

/* Lines of dy, and what their places read by the first tap. */
struct lines {
    const float *dy, *x;
    int64_t n, ow, x_line, x_step;
    int64_t k; /* places of the present group before them */
};

/* A term of the weight's sums: of all groups of places so far, and the chains of the present one. */
struct sum {
    float all[BLOCK], chain[2][BLOCK];
};

INLINE void add_place(const int terms, const float *dy, const float *x, const int64_t *at,
                      vec *sum) {
    const vec d = load_once(dy);
    UNROLL for (int t = 0; t < terms; t++)
        sum[t] = vec_fma(d, *(const vec_at *)(x + at[t]), sum[t]);
}

/* Adds places to terms; `at`: where they read, from the first tap on. */
INLINE void add_lines(const int terms, const struct lines *l, const int64_t *at, struct sum *to) {
    for (int lane = 0; lane < BLOCK; lane += VEC) {
        const float *dy = l->dy + lane, *x = l->x + lane;
        const int64_t step = l->x_step;
        int64_t k = l->k;
        vec sum[2][TERMS];
        UNROLL for (int t = 0; t < terms; t++)
            for (int i = 0; i < 2; i++) sum[i][t] = *(const vec_at *)(to[t].chain[i] + lane);
        for (int64_t i = 0; i < l->n; i++, x += l->x_line - l->ow * step)
            for (int64_t left = l->ow, some; left; left -= some) {
                some = least(left, HALF_GROUP - k);
                const float *end = x + some * step;
                if (k % 2) {
                    add_place(terms, dy, x, at, sum[1]);
                    dy += BLOCK, x += step;
                }
                for (; end - x >= 2 * step; dy += 2 * BLOCK, x += 2 * step) {
                    add_place(terms, dy, x, at, sum[0]);
                    add_place(terms, dy + BLOCK, x + step, at, sum[1]);
                }
                if (x < end) {
                    add_place(terms, dy, x, at, sum[0]);
                    dy += BLOCK, x += step;
                }
                k += some;
                if (k < HALF_GROUP) continue;
                k = 0;
                UNROLL for (int t = 0; t < terms; t++) {
                    *(vec_at *)(to[t].all + lane) += sum[0][t] + sum[1][t];
                    sum[0][t] = sum[1][t] = (vec){0};
                }
            }
        UNROLL for (int t = 0; t < terms; t++)
            for (int i = 0; i < 2; i++) *(vec_at *)(to[t].chain[i] + lane) = sum[i][t];
    }
}

typedef void lines_fn(const struct lines *l, const int64_t *at, struct sum *to);

#if VEC_REGISTERS == 32
#define EVERY_TERMS(X) EVERY_PLACES(X) X(8) X(9)
#else
#define EVERY_TERMS(X) EVERY_PLACES(X)
#endif
#define ADD(n)                                                                      \
    static void add_##n(const struct lines *l, const int64_t *at, struct sum *to) { \
        add_lines(n, l, at, to);                                                    \
    }
#define ADD_ENTRY(n) [n] = add_##n,
EVERY_TERMS(ADD)
static lines_fn *const adds[TERMS + 1] = {EVERY_TERMS(ADD_ENTRY)};

/* What is done for all of a call, and where it lies in the scratch. */
struct dw {
    int64_t group, terms, rows; /* lines of dy at a time */
    struct strip reach;         /* of what the first line reads */
    size_t at, dy, x, all;      /* bytes, after the sums */
};

static struct dw dw_of(const struct window *w) {
    struct dw d = {.group = w->c / w->groups, .reach = {-w->ph, 0, -w->pw, 0}};
    d.terms = w->kh * w->kw * d.group;
    d.reach.lines = (w->kh - 1) * w->dh + 1;
    d.reach.columns = (w->ow - 1) * w->sw + (w->kw - 1) * w->dw + 1;
    const int64_t line = d.reach.columns * d.group * BLOCK;
    d.rows = strip_of(d.reach.lines, w->sh, line, w->oh);
    d.dy = (size_t)d.terms * sizeof(struct sum);
    d.x = d.dy + (size_t)(d.rows * w->ow * BLOCK) * sizeof(float);
    d.at = d.x + (size_t)((d.reach.lines + (d.rows - 1) * w->sh) * line) * sizeof(float);
    d.all = d.at + (size_t)d.terms * sizeof(int64_t);
    return d;
}

static size_t scratch_of(const struct window *w, bool half, int64_t outputs) {
    (void)half, (void)outputs;
    return dw_of(w).all;
}

/* The sums of a block over all samples. */
static void sum_block(const struct window *w, const struct dw *d, const uint16_t *dy,
                      const uint16_t *x, char *scratch) {
    const struct plane from = {w->c, w->h, w->w, false}, by = {w->o, w->oh, w->ow, false};
    struct sum *sum = (struct sum *)scratch;
    const int64_t *at = (const int64_t *)(scratch + d->at), step = d->group * BLOCK;
    float *wide_dy = (float *)(scratch + d->dy), *wide = (float *)(scratch + d->x);
    struct lines l = {wide_dy, wide, 0, w->ow, w->sh * d->reach.columns * step, w->sw * step, 0};
    const int64_t tiles = (d->terms + TERMS - 1) / TERMS;
    memset(sum, 0, (size_t)d->terms * sizeof *sum);
    for (int64_t i = 0; i < w->n; i++, dy += w->o * w->oh * w->ow, x += w->c * w->h * w->w)
        for (int64_t row = 0; row < w->oh; row += l.n) {
            l.n = least(d->rows, w->oh - row);
            const struct strip own = {row, l.n, 0, w->ow};
            struct strip strip = d->reach;
            strip.line += row * w->sh, strip.lines += (l.n - 1) * w->sh;
            widen(&by, dy, 1, &own, wide_dy);
            widen(&from, x, d->group, &strip, wide);
            for (int64_t t = 0; t < tiles; t++) {
                const int64_t begin = d->terms * t / tiles, end = d->terms * (t + 1) / tiles;
                adds[end - begin](&l, at + begin, sum + begin);
            }
            l.k = (l.k + l.n * w->ow) % HALF_GROUP;
        }
    for (int64_t t = 0; l.k && t < d->terms; t++)
        for (int lane = 0; lane < BLOCK; lane += VEC)
            *(vec_at *)(sum[t].all + lane) += chains(*(vec_at *)(sum[t].chain[0] + lane),
                                                     *(vec_at *)(sum[t].chain[1] + lane), l.k);
}

static void sum_up(const struct window *w, bool half, struct cpu_range r, const void *dy,
                   const void *x, float *to, void *scratch) {
    const struct dw d = dw_of(w);
    int64_t *at = (int64_t *)((char *)scratch + d.at);
    (void)half;
    for (int64_t t = 0; t < d.terms; t++) {
        const int64_t tap = t / d.group, line = tap / w->kw * w->dh, column = tap % w->kw * w->dw;
        at[t] = ((line * d.reach.columns + column) * d.group + t % d.group) * BLOCK;
    }
    const uint64_t mode = half_flush();
    for (int64_t o = r.begin; o < r.end; o += BLOCK, to += BLOCK * d.terms) {
        sum_block(w, &d, (const uint16_t *)dy + o * w->oh * w->ow,
                  (const uint16_t *)x + o * w->h * w->w, scratch);
        const struct sum *sum = scratch;
        for (int64_t t = 0; t < d.terms; t++)
            for (int k = 0; k < BLOCK; k++) to[k * d.terms + t] = sum[t].all[k];
    }
    half_restore(mode);
}

const struct conv_dw_way FOR_ISA(conv_thin_dw) = {scratch_of, sum_up, NULL};
