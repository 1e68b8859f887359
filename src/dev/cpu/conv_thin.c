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

/* Places of a line, summed together in registers; those at its end have up to half of them. */
#define PLACES (VEC_REGISTERS == 32 ? 14 : 7)
/* Taps of a column, and terms that lie together, of the derivative by the weight, likewise. */
#define LINES (VEC_REGISTERS == 32 ? 3 : 2)
#define TERMS 3

/* ---- what is read ---- */

/* Some lines of a plane, widened; those that the next ones share with them stay. */
struct ring {
    struct plane plane;
    int64_t group, lines, column, columns; /* some columns lie beside the plane */
};

/* Floats of a line. */
static int64_t ring_line(const struct ring *r) { return r->columns * r->group * BLOCK; }

/* With what ring_start needs. */
static size_t ring_bytes(const struct ring *r) {
    return (size_t)(r->lines * ring_line(r)) * sizeof(float) + (size_t)(r->lines + 7) / 8 * 64;
}

static float **ring_start(const struct ring *r, void *scratch) {
    float *first = scratch, **line = (float **)(void *)(first + r->lines * ring_line(r));
    for (int64_t i = 0; i < r->lines; i++) line[i] = first + i * ring_line(r);
    return line;
}

/* 16 channels in an order of their own (lane_of), which saves moving them across vectors. */
#define VECS (BLOCK / VEC)
#if VEC == BLOCK
#define LOADED 1 /* vectors that are loaded together */
INLINE void load_block(const uint16_t *from, vec *v) { *v = vec_load(TRI_BF16, from, 0); }
INLINE void store_block(uint16_t *to, const vec *v) { vec_store(TRI_BF16, to, 0, *v); }
INLINE int64_t lane_of(int64_t channel) { return channel; }
#else
#define LOADED 2
INLINE void load_block(const uint16_t *from, vec *v) {
    for (int i = 0; i < VECS; i += 2) vec_load_two(TRI_BF16, from, i * VEC, v + i);
}
INLINE void store_block(uint16_t *to, const vec *v) {
    for (int i = 0; i < VECS; i += 2) vec_store_two(TRI_BF16, to, i * VEC, v + i);
}
INLINE int64_t lane_of(int64_t channel) { return vec_place(TRI_BF16, channel, BLOCK); }
#endif

/* Lanes `at` of v. */
INLINE vec pick(vec v, vec_u32 at) {
#if VEC == 16
    return _mm512_permutexvar_ps((__m512i)at, v);
#elif VEC == 8
    return _mm256_permutevar8x32_ps(v, (__m256i)at);
#else
    return (vec){v[at[0]], v[at[1]], v[at[2]], v[at[3]]};
#endif
}

/* To each output the j-th channel of its group: vectors that are loaded together have it in one of
 * them, in the same lanes for each. */
INLINE void spread(const vec *v, int64_t group, int64_t j, float *to) {
    static const uint32_t lanes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const vec_u32 first = *(const vec_u32_at *)lanes & (uint32_t)(-group / LOADED);
    for (int i = 0; i < VECS; i += LOADED) {
        const vec x = pick(v[i + j % LOADED], first + (uint32_t)(j / LOADED));
        for (int k = 0; k < LOADED; k++) *(vec_at *)(to + (i + k) * VEC) = x;
    }
}

/* n places of a line. */
INLINE void widen_places(const bool plain, const bool single, const struct ring *r,
                         const uint16_t *x, int64_t n, float *to) {
    const int64_t group = single ? 1 : r->group, plane = r->plane.h * r->plane.w;
    uint16_t own[BLOCK];
    for (; n; n--, x += plain ? 1 : BLOCK, to += group * BLOCK) {
        vec v[VECS];
        for (int k = 0; plain && k < BLOCK; k++) own[k] = x[k * plane];
        if (!plain) __builtin_prefetch(x + AHEAD);
        load_block(plain ? own : x, v);
        for (int i = 0; group == 1 && i < VECS; i++) *(vec_at *)(to + i * VEC) = v[i];
        for (int64_t j = 0; group > 1 && j < group; j++) spread(v, group, j, to + j * BLOCK);
    }
}

/* Line i of a plane of 16 channels. */
static void widen(const struct ring *r, const uint16_t *x, int64_t i, float *to) {
    const struct plane *p = &r->plane;
    const int64_t place = r->group * BLOCK, columns = inside(i, p->h) ? p->w : 0;
    const int64_t left = least(most(-r->column, 0), r->columns), first = r->column + left;
    const int64_t n = most(least(columns - first, r->columns - left), 0);
    memset(to, 0, (size_t)(left * place) * sizeof *to);
    to += left * place;
    x += (i * p->w + first) * (p->plain ? 1 : BLOCK);
    if (p->plain)
        widen_places(true, false, r, x, n, to);
    else if (r->group == 1)
        widen_places(false, true, r, x, n, to);
    else
        widen_places(false, false, r, x, n, to);
    memset(to + n * place, 0, (size_t)((r->columns - left - n) * place) * sizeof *to);
}

/* The lines from `first` on, `move` after those before. */
static void ring_move(const struct ring *r, const uint16_t *x, int64_t first, int64_t move,
                      float **line) {
    const int64_t keep = most(r->lines - move, 0);
    for (int64_t i = 0; i < keep; i++) {
        float *was = line[i];
        line[i] = line[i + move], line[i + move] = was;
    }
    for (int64_t i = keep; i < r->lines; i++) widen(r, x, first + i, line[i]);
}

/* The two chains of a group of n terms. Zeros that it lacks make +0 of a chain that is -0. */
INLINE vec chains(vec even, vec odd, int64_t n) {
    if (n < HALF_GROUP - 1) even += vec_set(0);
    if (n < HALF_GROUP) odd += vec_set(0);
    return even + odd;
}

/* ---- y and dx ---- */

struct term {
    int64_t line;      /* of the ring */
    int64_t x, weight; /* floats: after the line's beginning, and the weight's */
};

/* The places of a plane that have the same remainders, and their terms in order. */
struct places {
    struct conv_axis down, across;
    const struct term *term;
    int64_t n;
};

struct state {
    struct window w;
    struct plane to;
    bool back; /* dx */
    int64_t taps, parts;
    struct ring ring;      /* what a line of places reads, */
    int64_t first;         /* from this line on if it is line 0 */
    int64_t down, across;  /* remainders along both axes */
    struct places *places; /* [down, across] */
    struct term *terms;
};

/* Places of a line, x_step floats apart in what they read and y_step in y, which is f32. x: floats
 * from a line's beginning. */
INLINE void sum_places(const int places, const bool single, const struct places *p,
                       float *const *line, int64_t x, int64_t x_step, const float *weight,
                       float *y, int64_t y_step) {
    if (single) x_step = BLOCK;
    for (int lane = 0; lane < BLOCK; lane += VEC, x += VEC, weight += VEC, y += VEC)
        for (int64_t begin = 0; begin == 0 || begin < p->n; begin += HALF_GROUP) {
            const int64_t n = least(p->n - begin, HALF_GROUP);
            vec sum[2][PLACES];
            UNROLL for (int j = 0; j < places; j++) sum[0][j] = sum[1][j] = (vec){0};
            for (const struct term *t = p->term + begin, *end = t + n; t < end; t += 2)
                UNROLL for (int i = 0; i < 2; i++) {
                    if (i && t + 1 == end) break;
                    const vec w = load_once(weight + t[i].weight);
                    const float *from = line[t[i].line] + x + t[i].x;
                    UNROLL for (int j = 0; j < places; j++)
                        sum[i][j] = vec_fma(*(const vec_at *)(from + j * x_step), w, sum[i][j]);
                }
            if (!begin) { /* so that zeros for missing terms make no difference */
                UNROLL for (int j = 0; j < places; j++)
                    *(vec_at *)(y + j * y_step) = vec_set(0) + (sum[0][j] + sum[1][j]);
                continue;
            }
            UNROLL for (int j = 0; j < places; j++)
                *(vec_at *)(y + j * y_step) += chains(sum[0][j], sum[1][j], n);
        }
}

typedef void places_fn(const struct places *p, float *const *line, int64_t x, int64_t x_step,
                       const float *weight, float *y, int64_t y_step);

#if VEC_REGISTERS == 32
#define MANY_PLACES(X, single) X(14, single)
#else
#define MANY_PLACES(X, single)
#endif
#define EVERY_PLACES(X, single)                                                              \
    X(1, single) X(2, single) X(3, single) X(4, single) X(5, single) X(6, single)            \
    X(7, single) MANY_PLACES(X, single)
#define SUM(n, single)                                                                          \
    static void sum_##n##single(const struct places *p, float *const *line, int64_t x,          \
                                int64_t x_step, const float *weight, float *y,                  \
                                int64_t y_step) {                                               \
        sum_places(n, single, p, line, x, x_step, weight, y, y_step);                           \
    }
#define SUM_ENTRY(n, single) [single][n] = sum_##n##single,
EVERY_PLACES(SUM, 0)
EVERY_PLACES(SUM, 1)
static places_fn *const sums[2][PLACES + 1] = {EVERY_PLACES(SUM_ENTRY, 0)
                                               EVERY_PLACES(SUM_ENTRY, 1)};

/* y: the line in f32. */
static void sum_line(const struct state *s, const struct places *p, float *const *line,
                     const float *weight, float *y) {
    const struct conv_axis *a = &p->across;
    const int64_t x_step = a->move * s->ring.group * BLOCK, y_step = a->step * BLOCK;
    y += a->first * BLOCK;
    for (int64_t begin = 0, n; begin < a->count; begin += n) {
        const int64_t left = a->count - begin;
        n = left >= PLACES ? PLACES : left > PLACES / 2 ? (left + 1) / 2 : left;
        sums[x_step == BLOCK][n](p, line, begin * x_step, x_step, weight, y + begin * y_step,
                                 y_step);
    }
}

INLINE void put_places(const bool plain, const struct plane *p, const float *from,
                       const uint16_t *bias, uint16_t *y) {
    const int64_t n = p->w, plane = p->h * n;
    uint16_t own[BLOCK];
    vec v[VECS], b[VECS];
    if (bias) load_block(bias, b);
    for (int64_t i = 0; i < n; i++, from += BLOCK) {
        if (!plain) __builtin_prefetch(y + i * BLOCK + AHEAD / 2, 1);
        UNROLL for (int k = 0; k < VECS; k++) v[k] = *(const vec_at *)(from + k * VEC);
        if (bias)
            UNROLL for (int k = 0; k < VECS; k++) v[k] += b[k];
        store_block(plain ? own : y + i * BLOCK, v);
        for (int k = 0; plain && k < BLOCK; k++) y[k * plane + i] = own[k];
    }
}

APART void put_line(const struct plane *p, const float *from, const uint16_t *bias, uint16_t *y) {
    if (p->plain)
        put_places(true, p, from, bias, y);
    else if (bias)
        put_places(false, p, from, bias, y);
    else
        put_places(false, p, from, NULL, y);
}

static void make_plane(const struct state *s, const uint16_t *x, const float *weight,
                       const uint16_t *bias, uint16_t *y, float *made, float **line) {
    const int64_t move = s->places->down.move, each = s->to.w * (s->to.plain ? 1 : BLOCK);
    for (int64_t r = 0; r < s->places->down.count; r++) {
        ring_move(&s->ring, x, s->first + r * move, r ? move : s->ring.lines, line);
        for (int64_t i = 0; i < s->down; i++) {
            const struct places *p = &s->places[i * s->across];
            if (r >= p->down.count) continue;
            const uint64_t mode = half_flush();
            for (int64_t j = 0; j < s->across; j++) sum_line(s, &p[j], line, weight, made);
            half_restore(mode);
            put_line(&s->to, made, bias, y + (p->down.first + r * p->down.step) * each);
        }
    }
}

/* The weight of a block, [tap, channel of a group, 16]. */
static void take_weight(const struct state *s, const uint16_t *weight, int64_t block, float *to) {
    const int64_t group = s->ring.group;
    for (int64_t t = 0; t < s->taps; t++)
        for (int64_t j = 0; j < group; j++, to += BLOCK)
            for (int64_t k = 0; k < BLOCK; k++) {
                const int64_t made = block * BLOCK + k, in = made % group;
                const int64_t from = s->back ? (made - in + j) * group + in : made * group + j;
                to[lane_of(k)] = convert_bf16_to_f32(weight[from * s->taps + t]);
            }
}

static void run(const tri_call *c) {
    const struct state *s = c->state;
    const int64_t blocks = s->w.c / BLOCK;
    const struct cpu_range r = cpu_part(c, s->parts, s->w.n * blocks);
    float *weight = c->scratch, *made = weight + s->taps * s->ring.group * BLOCK;
    float **line = ring_start(&s->ring, made + s->to.w * BLOCK);
    for (int64_t at = r.begin; at < r.end; at++) {
        const int64_t block = at / s->w.n, plane = at % s->w.n * blocks + block;
        const uint16_t *bias =
            c->node->n_in > 2 && !s->back ? (const uint16_t *)c->in[2] + block * BLOCK : NULL;
        if (at == r.begin || at % s->w.n == 0) take_weight(s, c->in[1], block, weight);
        make_plane(s, (const uint16_t *)c->in[0] + plane * floats(&s->ring.plane), weight, bias,
                   (uint16_t *)c->out[0] + plane * floats(&s->to), made, line);
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
            for (int64_t k = 0; k < s->ring.group; k++, to++) {
                const int64_t column = across->read + j * across->next_read - s->ring.column;
                const int64_t tap = conv_tap(down, across, s->w.kw, i * across->taps + j);
                to->line = down->read + i * down->next_read - s->first;
                to->x = (column * s->ring.group + k) * BLOCK;
                to->weight = (tap * s->ring.group + k) * BLOCK;
            }
    p->n = to - p->term;
    return to;
}

static void list_places(struct state *s) {
    const struct window *w = &s->w;
    struct term *to = s->terms;
    struct ring *r = &s->ring;
    for (int64_t i = 0; i < s->down * s->across; i++) {
        struct places *p = &s->places[i];
        p->down = conv_axis_of(s->back, i / s->across, s->to.h, w->kh, w->sh, w->ph, w->dh);
        p->across = conv_axis_of(s->back, i % s->across, s->to.w, w->kw, w->sw, w->pw, w->dw);
        reach_of(&p->down, &s->first, &r->lines);
        reach_of(&p->across, &r->column, &r->columns);
    }
    r->lines -= s->first;
    /* The first have the most places. */
    r->columns += (s->places->across.count - 1) * s->places->across.move - r->column;
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
    s->to = plane_of(n->out);
    s->back = node_is(n, "conv2d_dx");
    s->ring.plane = plane_of(n->in[0]);
    s->ring.group = s->w.c / s->w.groups;
    s->taps = s->w.kh * s->w.kw;
    s->parts = cpu_parts(s->w.n * s->w.c / BLOCK, s->w.oh * s->w.ow * s->taps * s->ring.group);
    s->down = s->back ? least(s->w.sh, s->to.h) : 1;
    s->across = s->back ? least(s->w.sw, s->to.w) : 1;
    s->places = calloc((size_t)(s->down * s->across), sizeof *s->places);
    s->terms = calloc((size_t)(s->taps * s->ring.group), sizeof *s->terms);
    if (s->places && s->terms) {
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
    k->scratch = (size_t)((s->taps * s->ring.group + s->to.w) * BLOCK) * sizeof(float) +
                 ring_bytes(&s->ring);
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

/* Lines of dy, and what they read: line + r * sh for the r-th by the first tap. */
struct lines {
    const struct window *w;
    const float *dy;
    float **line;
    int64_t n, step; /* lines of dy; floats from place to place */
    int64_t k;       /* places of the present group before them */
};

/* Of a term of the weight: the sum of all groups of places so far, and the present one's chains. */
struct sum {
    float all[BLOCK], chain[2][BLOCK];
};

INLINE void add_place(const int rows, const int terms, const float *dy, const float *const *x,
                      int64_t at, vec sum[LINES][TERMS]) {
    const vec d = load_once(dy);
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int t = 0; t < terms; t++)
            sum[i][t] = vec_fma(d, *(const vec_at *)(x[i] + at + t * BLOCK), sum[i][t]);
}

/* Adds places to terms of some rows of taps, from row `first` on, which read from x on in their
 * lines. */
INLINE void add_lines(const int rows, const int terms, const struct lines *l, int64_t first,
                      int64_t from, struct sum *to, int64_t row) {
#define EACH_TERM \
    UNROLL for (int i = 0; i < rows; i++) \
        UNROLL for (int t = 0; t < terms; t++)
    const struct window *w = l->w;
    const int64_t step = l->step;
    for (int lane = 0; lane < BLOCK; lane += VEC) {
        const float *dy = l->dy + lane, *x[LINES];
        int64_t k = l->k;
        vec sum[2][LINES][TERMS];
        EACH_TERM for (int odd = 0; odd < 2; odd++)
            sum[odd][i][t] = *(const vec_at *)(to[i * row + t].chain[odd] + lane);
        for (int64_t r = 0; r < l->n; r++) {
            int64_t at = from + lane;
            UNROLL for (int i = 0; i < rows; i++) x[i] = l->line[r * w->sh + (first + i) * w->dh];
            for (int64_t left = w->ow, some; left; left -= some) {
                const int64_t odd = k % 2;
                some = least(left, HALF_GROUP - k);
                if (odd) {
                    add_place(rows, terms, dy, x, at, sum[1]);
                    dy += BLOCK, at += step;
                }
                for (int64_t n = some - odd; n > 1; n -= 2, dy += 2 * BLOCK, at += 2 * step) {
                    add_place(rows, terms, dy, x, at, sum[0]);
                    add_place(rows, terms, dy + BLOCK, x, at + step, sum[1]);
                }
                if ((some - odd) % 2) {
                    add_place(rows, terms, dy, x, at, sum[0]);
                    dy += BLOCK, at += step;
                }
                k += some;
                if (k < HALF_GROUP) continue;
                k = 0;
                EACH_TERM {
                    *(vec_at *)(to[i * row + t].all + lane) += sum[0][i][t] + sum[1][i][t];
                    sum[0][i][t] = sum[1][i][t] = (vec){0};
                }
            }
        }
        EACH_TERM for (int odd = 0; odd < 2; odd++)
            *(vec_at *)(to[i * row + t].chain[odd] + lane) = sum[odd][i][t];
    }
}

typedef void lines_fn(const struct lines *l, int64_t first, int64_t from, struct sum *to,
                      int64_t row);

#define EVERY_TILE(X) X(1, 1) X(1, 2) X(1, 3) X(2, 1) X(2, 2) X(2, 3)
#if VEC_REGISTERS == 32
#define EVERY_TILE_ALL(X) EVERY_TILE(X) X(3, 1) X(3, 2) X(3, 3)
#else
#define EVERY_TILE_ALL EVERY_TILE
#endif
#define ADD(rows, terms)                                                                    \
    static void add_##rows##terms(const struct lines *l, int64_t first, int64_t from,       \
                                  struct sum *to, int64_t row) {                            \
        add_lines(rows, terms, l, first, from, to, row);                                    \
    }
#define ADD_ENTRY(rows, terms) [rows][terms] = add_##rows##terms,
EVERY_TILE_ALL(ADD)
static lines_fn *const adds[LINES + 1][TERMS + 1] = {EVERY_TILE_ALL(ADD_ENTRY)};

#define AT_ONCE 64 /* places of dy, at least, for which sums are kept in registers */

/* What is done for all of a call. */
struct dw {
    struct ring ring, dy;
    int64_t row, terms; /* terms of a row of taps, and of all */
    int64_t together;   /* terms of a row that lie together */
    size_t sums, own;   /* bytes of them and of dy's ring */
};

static struct dw dw_of(const struct window *w) {
    const int64_t group = w->c / w->groups, n = least((AT_ONCE + w->ow - 1) / w->ow, w->oh);
    struct dw d = {{{w->c, w->h, w->w, false}, group, (w->kh - 1) * w->dh + 1 + (n - 1) * w->sh,
                    -w->pw, (w->ow - 1) * w->sw + (w->kw - 1) * w->dw + 1},
                   {{w->o, w->oh, w->ow, false}, 1, n, 0, w->ow}, .row = w->kw * group};
    d.terms = w->kh * d.row;
    d.together = w->dw == 1 ? d.row : group;
    d.sums = (size_t)d.terms * sizeof(struct sum);
    d.own = ring_bytes(&d.dy);
    return d;
}

static size_t scratch_of(const struct window *w, bool half, int64_t outputs) {
    const struct dw d = dw_of(w);
    (void)half, (void)outputs;
    return d.sums + d.own + ring_bytes(&d.ring);
}

/* All terms of some lines. */
static void add_taps(const struct dw *d, const struct lines *l, struct sum *sum) {
    const struct window *w = l->w;
    for (int64_t i = 0, rows; i < w->kh; i += rows) {
        rows = least(LINES, w->kh - i);
        for (int64_t t = 0, terms; t < d->row; t += terms) {
            const int64_t in = t % d->together, column = (t - in) / d->ring.group * w->dw;
            terms = least(TERMS, d->together - in);
            adds[rows][terms](l, i, (column * d->ring.group + in) * BLOCK, sum + i * d->row + t,
                              d->row);
        }
    }
}

/* The sums of a block over all samples. */
static void sum_block(const struct window *w, const struct dw *d, const uint16_t *dy,
                      const uint16_t *x, char *scratch) {
    struct sum *sum = (struct sum *)(void *)scratch;
    float **own = ring_start(&d->dy, scratch + d->sums);
    float **line = ring_start(&d->ring, scratch + d->sums + d->own);
    struct lines l = {w, own[0], line, 0, w->sw * d->ring.group * BLOCK, 0};
    memset(sum, 0, d->sums);
    for (int64_t i = 0; i < w->n; i++, dy += w->o * w->oh * w->ow, x += w->c * w->h * w->w)
        for (int64_t row = 0; row < w->oh; row += l.n) {
            ring_move(&d->ring, x, row * w->sh - w->ph, row ? l.n * w->sh : d->ring.lines, line);
            ring_move(&d->dy, dy, row, d->dy.lines, own);
            l.n = least(d->dy.lines, w->oh - row);
            add_taps(d, &l, sum);
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
    const uint64_t mode = half_flush();
    (void)half;
    for (int64_t o = r.begin; o < r.end; o += BLOCK, to += BLOCK * d.terms) {
        sum_block(w, &d, (const uint16_t *)dy + o * w->oh * w->ow,
                  (const uint16_t *)x + o * w->h * w->w, scratch);
        const struct sum *sum = scratch;
        for (int64_t t = 0; t < d.terms; t++)
            for (int k = 0; k < BLOCK; k++) to[k * d.terms + t] = sum[t].all[lane_of(k)];
    }
    half_restore(mode);
}

const struct conv_dw_way FOR_ISA(conv_thin_dw) = {scratch_of, sum_up};
