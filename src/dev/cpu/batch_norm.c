/* SPDX-License-Identifier: Apache-2.0
 * Batch norm: x lies as [n, c / block, places, block]; the samples [k n / G, (k+1) n / G) of one
 * channel share group k's statistics. Sums are of differences to the group's first element, so that
 * a large mean costs no accuracy: of PIECE elements of a sample in f32, where element i goes to sum
 * i % SUMS, and of these in double. So the bits do not depend on how x lies. */
#include <math.h>

#include "dev/cpu/isa.h"
#include "dev/cpu/tail.h"
#include "dev/cpu/vec.h"

struct state {
    const struct tail *tail; /* what comes behind; null: nothing */
};

/* A block of 1 is plain; without places all channels are one block. */
struct sizes {
    int64_t samples, channels, places, block, groups;
    tri_type type;
    int64_t width, units; /* channels that are done together, of one block; how many such there are */
};

#define WIDTH 32 /* at most; a line of the cache */
#define SUMS 8
#define PIECE 256

/* stats: a tensor [G, c]. */
static struct sizes sizes_of(const tri_tensor *x, const tri_spec *stats) {
    const tri_shape *s = &x->spec.shape;
    struct sizes z = {s->dim[0], s->dim[1], cpu_span(s, 2, s->rank), x->block ? x->block : 1,
                      stats->shape.dim[0], x->spec.type, 0, 0};
    if (z.places == 1) z.block = z.channels;
    int64_t line = 64 / (int64_t)tri_type_size(z.type);
    z.width = z.block < line ? z.block : line;
    z.units = z.channels / z.block * ((z.block + z.width - 1) / z.width);
    return z;
}

/* Some channels in one group: in each of its samples rows of `width` neighbours. */
struct part {
    int64_t channel; /* the first */
    int64_t first, sample, samples;
    int64_t rows, row;
    int64_t width;
    double count; /* elements of a channel */
};

static struct part part_of(const struct sizes *z, int64_t group, int64_t unit) {
    int64_t begin = group * z->samples / z->groups, end = (group + 1) * z->samples / z->groups;
    int64_t in_block = (z->block + z->width - 1) / z->width, step = z->channels * z->places;
    int64_t block = unit / in_block, at = unit % in_block * z->width;
    int64_t width = z->block - at < z->width ? z->block - at : z->width;
    int64_t first = begin * step + block * z->places * z->block + at;
    struct part p = {.channel = block * z->block + at, .first = first, .sample = step,
                     .samples = end - begin, .rows = z->places, .row = z->block, .width = width,
                     .count = (double)((end - begin) * z->places)};
    if (z->places == 1) { /* the samples are the rows */
        p.rows = p.samples;
        p.row = p.sample;
        p.samples = 1;
    }
    return p;
}

/* Numbers of the channels of a part. The center is the mean, rounded. Beyond the last channel they
 * are zero. */
struct numbers {
    double mean[WIDTH], var[WIDTH], sum[WIDTH], dot[WIDTH];
    float center[WIDTH], scale[WIDTH], a[WIDTH], b[WIDTH];
};

/* ---- loops ---- */

/* What is done over a part, for a type known to the compiler. A run is one channel, its elements
 * side by side; columns are several.
 * sums       sum of u, dot of u v: u = x - center, v = u; or, of dy, u = dy, v = x - center
 * normalise  y = (x - center) scale + a
 * derive     dx = scale (dy - a - (x - center) b) */

#define TOTAL(v) \
    ((((v)[0] + (v)[4]) + ((v)[2] + (v)[6])) + (((v)[1] + (v)[5]) + ((v)[3] + (v)[7])))

#define AT(p, s, r) ((p)->first + (s) * (p)->sample + (r) * (p)->row)
/* Rows r to end of sample s. */
#define EACH_PIECE(p)                                                                       \
    for (int64_t s = 0; s < (p)->samples; s++)                                              \
        for (int64_t r = 0, end; end = r + PIECE < (p)->rows ? r + PIECE : (p)->rows,       \
                                 r < (p)->rows; r = end)
#define EACH_COLUMN(p) for (int64_t column = 0; column < (p)->width; column += VEC)

/* Vectors of a row; where it has no more elements, zeros. */
#define SOME(p) ((p)->width - column < VEC ? (p)->width - column : VEC)
#define GET(t, x, at) (some == VEC ? vec_load(t, x, at) : vec_load_some(t, x, at, some, 0))
#define PUT(t, y, at, v) (some == VEC ? vec_store(t, y, at, v) : vec_store_some(t, y, at, some, v))
#define OF(array) (*(const vec_at *)((array) + column))

/* dy null: moments of x. */
INLINE void add_row(tri_type t, const void *dy, const void *x, int64_t at, int64_t some,
                    vec center, vec *sum, vec *dot) {
    vec v = GET(t, x, at) - center, u = dy ? GET(t, dy, at) : v;
    *sum += u;
    *dot += u * v;
}

INLINE void sum_columns(tri_type t, const struct part *p, const void *dy, const void *x,
                        struct numbers *n) {
    EACH_PIECE(p) EACH_COLUMN(p) {
        const int64_t some = SOME(p);
        const vec center = OF(n->center);
        vec sum[SUMS] = {{0}}, dot[SUMS] = {{0}};
        int64_t k = r;
        for (; k + SUMS <= end; k += SUMS)
            for (int i = 0; i < SUMS; i++)
                add_row(t, dy, x, AT(p, s, k + i) + column, some, center, &sum[i], &dot[i]);
        for (int i = 0; i < end - k; i++)
            add_row(t, dy, x, AT(p, s, k + i) + column, some, center, &sum[i], &dot[i]);
        const vec sums = TOTAL(sum), dots = TOTAL(dot);
        for (int i = 0; i < VEC; i++) {
            n->sum[column + i] += (double)sums[i];
            n->dot[column + i] += (double)dots[i];
        }
    }
}

INLINE void moments_columns(tri_type t, const struct part *p, const void *x, struct numbers *n) {
    sum_columns(t, p, NULL, x, n);
}

INLINE void sums_columns(tri_type t, const struct part *p, const void *dy, const void *x,
                         struct numbers *n) {
    sum_columns(t, p, dy, x, n);
}

INLINE void normalise_columns(tri_type t, const struct part *p, const void *x, void *y,
                              const struct numbers *n) {
    EACH_PIECE(p) EACH_COLUMN(p) {
        const int64_t some = SOME(p);
        vec center = OF(n->center), scale = OF(n->scale), shift = OF(n->a);
        for (int64_t k = r; k < end; k++) {
            int64_t at = AT(p, s, k) + column;
            PUT(t, y, at, (GET(t, x, at) - center) * scale + shift);
        }
    }
}

INLINE void derive_columns(tri_type t, const struct part *p, const void *dy, const void *x,
                           void *dx, const struct numbers *n) {
    EACH_PIECE(p) EACH_COLUMN(p) {
        const int64_t some = SOME(p);
        vec center = OF(n->center), scale = OF(n->scale), a = OF(n->a), b = OF(n->b);
        for (int64_t k = r; k < end; k++) {
            int64_t at = AT(p, s, k) + column;
            PUT(t, dx, at, scale * (GET(t, dy, at) - a - (GET(t, x, at) - center) * b));
        }
    }
}

/* A run: SUMS elements at once. */
typedef float eight __attribute__((vector_size(4 * SUMS)));
typedef float eight_at __attribute__((vector_size(4 * SUMS), aligned(4), may_alias));
typedef uint16_t eight_u16_at __attribute__((vector_size(2 * SUMS), aligned(2), may_alias));
typedef uint32_t eight_u32 __attribute__((vector_size(4 * SUMS)));

INLINE float load_one(tri_type t, const void *x, int64_t at) {
    return t == TRI_F32    ? ((const float *)x)[at]
           : t == TRI_BF16 ? convert_bf16_to_f32(((const uint16_t *)x)[at])
                           : convert_f16_to_f32(((const uint16_t *)x)[at]);
}

INLINE void load_eight(tri_type t, const void *x, int64_t at, int64_t some, float rest, eight *v) {
    if (some == SUMS && t == TRI_F32)
        *v = *(const eight_at *)((const float *)x + at);
    else if (some == SUMS && t == TRI_BF16)
        *v = (eight)(__builtin_convertvector(*(const eight_u16_at *)((const uint16_t *)x + at),
                                             eight_u32) << 16);
    else
        for (int i = 0; i < SUMS; i++) (*v)[i] = i < some ? load_one(t, x, at + i) : rest;
}

/* dy null: moments of x. */
INLINE void add_eight(tri_type t, const void *dy, const void *x, int64_t at, int64_t some,
                      float center, eight *sum, eight *dot) {
    eight u, v;
    load_eight(t, x, at, some, center, &v);
    v -= center;
    u = v;
    if (dy) load_eight(t, dy, at, some, 0, &u);
    *sum += u;
    *dot += u * v;
}

INLINE void sum_run(tri_type t, const struct part *p, const void *dy, const void *x,
                    struct numbers *n) {
    const float center = n->center[0];
    EACH_PIECE(p) {
        eight sum = {0}, dot = {0};
        int64_t at = AT(p, s, r);
        const int64_t behind = AT(p, s, end);
        for (; at + SUMS <= behind; at += SUMS)
            add_eight(t, dy, x, at, SUMS, center, &sum, &dot);
        if (at < behind) add_eight(t, dy, x, at, behind - at, center, &sum, &dot);
        n->sum[0] += (double)TOTAL(sum);
        n->dot[0] += (double)TOTAL(dot);
    }
}

INLINE void moments_run(tri_type t, const struct part *p, const void *x, struct numbers *n) {
    sum_run(t, p, NULL, x, n);
}

INLINE void sums_run(tri_type t, const struct part *p, const void *dy, const void *x,
                     struct numbers *n) {
    sum_run(t, p, dy, x, n);
}

#define GET_RUN(t, x) \
    (some == VEC ? vec_load(t, x, first + at) : vec_load_some(t, x, first + at, some, 0))
#define PUT_RUN(t, y, v)                                                                    \
    (some == VEC ? vec_store(t, y, first + at, v) : vec_store_some(t, y, first + at, some, v))

INLINE void normalise_run(tri_type t, const struct part *p, const void *x, void *y,
                          const struct numbers *n) {
    float center = n->center[0], scale = n->scale[0], shift = n->a[0];
    for (int64_t s = 0; s < p->samples; s++) {
        const int64_t first = AT(p, s, 0);
        ROW(p->rows, PUT_RUN(t, y, (GET_RUN(t, x) - center) * scale + shift));
    }
}

INLINE void derive_run(tri_type t, const struct part *p, const void *dy, const void *x, void *dx,
                       const struct numbers *n) {
    float center = n->center[0], scale = n->scale[0], a = n->a[0], b = n->b[0];
    for (int64_t s = 0; s < p->samples; s++) {
        const int64_t first = AT(p, s, 0);
        ROW(p->rows,
            PUT_RUN(t, dx, scale * (GET_RUN(t, dy) - a - (GET_RUN(t, x) - center) * b)));
    }
}

/* ---- by type and order ---- */

struct loops {
    void (*moments)(const struct part *p, const void *x, struct numbers *n);
    void (*sums)(const struct part *p, const void *dy, const void *x, struct numbers *n);
    void (*normalise)(const struct part *p, const void *x, void *y, const struct numbers *n);
    void (*derive)(const struct part *p, const void *dy, const void *x, void *dx,
                   const struct numbers *n);
};

#define LOOPS(t, how)                                                                       \
    static void moments_##t##_##how(const struct part *p, const void *x,                    \
                                    struct numbers *n) {                                    \
        moments_##how(t, p, x, n);                                                          \
    }                                                                                       \
    static void sums_##t##_##how(const struct part *p, const void *dy, const void *x,       \
                                 struct numbers *n) {                                       \
        sums_##how(t, p, dy, x, n);                                                         \
    }                                                                                       \
    static void normalise_##t##_##how(const struct part *p, const void *x, void *y,         \
                                      const struct numbers *n) {                            \
        normalise_##how(t, p, x, y, n);                                                     \
    }                                                                                       \
    static void derive_##t##_##how(const struct part *p, const void *dy, const void *x,     \
                                   void *dx, const struct numbers *n) {                     \
        derive_##how(t, p, dy, x, dx, n);                                                   \
    }
#define EACH_TYPE(X, how) X(TRI_F32, how) X(TRI_BF16, how) X(TRI_F16, how)
EACH_TYPE(LOOPS, run)
EACH_TYPE(LOOPS, columns)

#define NAMES(t, how) \
    [t] = {moments_##t##_##how, sums_##t##_##how, normalise_##t##_##how, derive_##t##_##how},
static const struct loops run_loops[] = {EACH_TYPE(NAMES, run)};
static const struct loops column_loops[] = {EACH_TYPE(NAMES, columns)};

static const struct loops *loops_of(const struct sizes *z) {
    return z->block > 1 ? &column_loops[z->type] : &run_loops[z->type];
}

/* ---- kernels ---- */

/* Of differences to the centers: the first elements. */
static void find_moments(const struct loops *l, const struct part *p, tri_type type, const void *x,
                         struct numbers *n) {
    for (int64_t i = 0; i < p->width; i++)
        n->center[i] = (float)convert_load(type, x, (size_t)(p->first + i));
    l->moments(p, x, n);
    for (int64_t i = 0; i < p->width; i++) {
        double d = n->sum[i] / p->count, v = n->dot[i] / p->count - d * d;
        n->mean[i] = (double)n->center[i] + d;
        n->var[i] = v < 0 ? 0 : v;
    }
}

#define AT_ONCE 4096 /* elements that are handed on together: they stay in the first-level cache */

/* y, as a whole or, where there is a tail, piece by piece. */
static void hand_on(const tri_call *c, const struct sizes *z, const struct loops *l,
                    const struct part *p, const struct numbers *n) {
    const struct tail *tail = ((const struct state *)c->state)->tail;
    if (!tail) {
        l->normalise(p, c->in[0], c->out[0], n);
        return;
    }
    int64_t size = (int64_t)tri_type_size(z->type), rows = AT_ONCE / p->width;
    for (int64_t s = 0; s < p->samples; s++)
        for (int64_t r = 0; r < p->rows; r += rows) {
            struct part piece = *p;
            int64_t at = AT(p, s, r);
            piece.first = 0;
            piece.samples = 1;
            piece.rows = rows < p->rows - r ? rows : p->rows - r;
            char *y = c->out[0] ? (char *)c->out[0] + at * size : c->scratch;
            l->normalise(&piece, (const char *)c->in[0] + at * size, y, n);
            tail_run(tail, y, at, piece.rows * p->width);
        }
}

static void forward(const tri_call *c, const struct sizes *z, int64_t group, int64_t unit) {
    struct part p = part_of(z, group, unit);
    const struct loops *l = loops_of(z);
    const float *gamma = (const float *)c->in[1] + p.channel;
    const float *beta = (const float *)c->in[2] + p.channel;
    const float *mean = (const float *)c->in[3] + p.channel;
    const float *var = (const float *)c->in[4] + p.channel;
    bool training = tri_attr_int(c->node, "training");
    double eps = tri_attr_float(c->node, "eps");
    double unbias = training ? p.count / (p.count - 1) : 1;
    struct numbers n = {0};
    for (int64_t i = 0; !training && i < p.width; i++) {
        n.mean[i] = (double)mean[i];
        n.var[i] = (double)var[i];
    }
    if (training) find_moments(l, &p, z->type, c->in[0], &n);
    int64_t row = group * z->channels + p.channel;
    for (int64_t i = 0; i < p.width; i++) {
        n.center[i] = (float)n.mean[i];
        double scale = (double)gamma[i] / sqrt(n.var[i] + eps);
        n.scale[i] = (float)scale;
        n.a[i] = (float)((double)beta[i] + ((double)n.center[i] - n.mean[i]) * scale);
        ((float *)c->out[1])[row + i] = n.center[i];
        ((float *)c->out[2])[row + i] = (float)n.var[i];
        ((float *)c->out[3])[row + i] = (float)(n.var[i] * unbias);
    }
    hand_on(c, z, l, &p, &n);
}

static int64_t parts_of(const struct sizes *z) {
    return cpu_parts(z->units, z->samples * z->places * z->width);
}

static void batch_norm(const tri_call *c) {
    struct sizes z = sizes_of(c->node->in[0], cpu_out(c->node, 1));
    struct cpu_range units = cpu_part(c, parts_of(&z), z.units);
    for (int64_t unit = units.begin; unit < units.end; unit++)
        for (int64_t k = 0; k < z.groups; k++) forward(c, &z, k, unit);
}

/* Adds to dgamma and dbeta of the unit's channels, whose number it returns. */
static int64_t backward(const tri_call *c, const struct sizes *z, int64_t group, int64_t unit,
                        double *dgamma, double *dbeta) {
    struct part p = part_of(z, group, unit);
    const struct loops *l = loops_of(z);
    int64_t row = group * z->channels + p.channel;
    const float *gamma = (const float *)c->in[2] + p.channel;
    const float *mean = (const float *)c->in[3] + row, *var = (const float *)c->in[4] + row;
    bool training = tri_attr_int(c->node, "training");
    double eps = tri_attr_float(c->node, "eps");
    struct numbers n = {0};
    memcpy(n.center, mean, (size_t)p.width * sizeof *mean);
    l->sums(&p, c->in[0], c->in[1], &n);
    for (int64_t i = 0; i < p.width; i++) {
        double rstd = 1 / sqrt((double)var[i] + eps);
        dbeta[i] += n.sum[i];
        dgamma[i] += n.dot[i] * rstd;
        n.scale[i] = (float)((double)gamma[i] * rstd);
        n.a[i] = training ? (float)(n.sum[i] / p.count) : 0;
        n.b[i] = training ? (float)(n.dot[i] * rstd * rstd / p.count) : 0;
    }
    l->derive(&p, c->in[0], c->in[1], c->out[0], &n);
    return p.width;
}

static void batch_norm_dx(const tri_call *c) {
    struct sizes z = sizes_of(c->node->in[1], cpu_in(c->node, 3));
    struct cpu_range units = cpu_part(c, parts_of(&z), z.units);
    for (int64_t unit = units.begin; unit < units.end; unit++) {
        double dgamma[WIDTH] = {0}, dbeta[WIDTH] = {0};
        int64_t width = 0, channel = part_of(&z, 0, unit).channel;
        for (int64_t k = 0; k < z.groups; k++) width = backward(c, &z, k, unit, dgamma, dbeta);
        for (int64_t i = 0; i < width; i++) {
            ((float *)c->out[1])[channel + i] = (float)dgamma[i];
            ((float *)c->out[2])[channel + i] = (float)dbeta[i];
        }
    }
}

static void plan(const tri_node *n, struct kernel *k) {
    struct sizes z = sizes_of(n->in[0], cpu_out(n, 1));
    const struct tail *tail = ((const struct state *)k->state)->tail;
    k->parts = parts_of(&z);
    if (tail && !tail_stores(tail)) k->scratch = AT_ONCE * sizeof(float);
}

static tri_status prepare(const tri_node *n, void **state) {
    return cpu_state(n, sizeof(struct state), state);
}

/* Its pieces are rows that lie side by side. */
static bool leads(const tri_node *n) {
    struct sizes z = sizes_of(n->in[0], cpu_out(n, 1));
    return z.places > 1 && z.width == z.block && z.places * z.width >= 64;
}

static void follow(void *state, const struct tail *tail) {
    ((struct state *)state)->tail = tail;
}

static void plan_dx(const tri_node *n, struct kernel *k) {
    struct sizes z = sizes_of(n->in[1], cpu_in(n, 3));
    k->parts = parts_of(&z);
}

const struct dev_row FOR_ISA(cpu_batch_norm)[] = {
    {.op = "batch_norm", .run = batch_norm, .prepare = prepare, .release = free, .plan = plan,
     .leads = leads, .follow = follow, .lays = cpu_lays_alike},
    {.op = "batch_norm_dx", .run = batch_norm_dx, .plan = plan_dx, .lays = cpu_lays_alike},
    {0},
};
