/* SPDX-License-Identifier: Apache-2.0
 * The loops of batch norm. x has the format [n, c / block, places, block]; samples [k n / G, (k+1)
 * n / G) of a channel share the statistics of group k. Sums are of differences to the group's first
 * element, so that a large mean costs no accuracy: PIECE elements of a slice are added in f32,
 * where element i goes to sum i % SUMS; these are added in double, and so are slices. A slice is a
 * sample, or a group if samples have only one place. So the bits depend neither on the format of x
 * nor on the parts.
 *
 * With many adjacent channels there are few units. Then the slices of a unit are separate parts,
 * and a second round continues with their sums. */
#ifndef DEV_CPU_BATCH_NORM_LOOPS_H
#define DEV_CPU_BATCH_NORM_LOOPS_H

#include "dev/cpu/rows.h"

/* A block of 1 is the plain format; without places all channels are one block. */
struct sizes {
    int64_t samples, channels, places, block, groups;
    tri_type type;
    int64_t width, units; /* channels computed together, of one block; the number of such units */
    int64_t slices;       /* of a unit */
    bool cut;
};

#define WIDTH 2048 /* the maximum; with FEW_SLICES or more, at most a STRIP */
#define STRIP 256  /* channels whose sums fit the first-level cache together */
#define FEW_SLICES 4
#define MANY 16    /* units that are enough without cutting */
#define SUMS 8
#define PIECE 256

/* stats: a tensor [G, c]. */
static struct sizes sizes_of(const tri_tensor *x, const tri_spec *stats) {
    const tri_shape *s = &x->spec.shape;
    struct sizes z = {s->dim[0], s->dim[1], cpu_span(s, 2, s->rank), x->block ? x->block : 1,
                      stats->shape.dim[0], x->spec.type, 0, 0, 0, false};
    if (z.places == 1) z.block = z.channels;
    z.slices = z.places == 1 ? z.groups : z.samples;
    int64_t most = z.slices > FEW_SLICES ? WIDTH : STRIP;
    z.width = z.block < most ? z.block : most;
    z.units = z.channels / z.block * ((z.block + z.width - 1) / z.width);
    z.cut = z.units < MANY && z.slices > 1;
    return z;
}

/* Some channels of one slice: rows of `width` adjacent elements. */
struct part {
    int64_t channel, first; /* the first, and its first element */
    int64_t group, begin, end; /* its slices */
    int64_t rows, row;
    int64_t width;
    double count; /* elements of a channel in the group */
};

static struct part part_of(const struct sizes *z, int64_t unit, int64_t slice) {
    const bool whole = z->places == 1; /* samples are the rows */
    int64_t group = whole ? slice : ((slice + 1) * z->groups - 1) / z->samples;
    int64_t begin = group * z->samples / z->groups, end = (group + 1) * z->samples / z->groups;
    int64_t in_block = (z->block + z->width - 1) / z->width, step = z->channels * z->places;
    int64_t block = unit / in_block, at = unit % in_block * z->width;
    return (struct part){
        .channel = block * z->block + at,
        .first = (whole ? begin : slice) * step + block * z->places * z->block + at,
        .group = group,
        .begin = whole ? group : begin,
        .end = whole ? group + 1 : end,
        .rows = whole ? end - begin : z->places,
        .row = whole ? step : z->block,
        .width = z->block - at < z->width ? z->block - at : z->width,
        .count = (double)((end - begin) * z->places),
    };
}

/* Numbers per channel of a part, in the order of vec_place. The center is the rounded mean. They
 * are zero after the last channel. */
struct numbers {
    double sum[WIDTH], dot[WIDTH];         /* of a slice */
    double all_sum[WIDTH], all_dot[WIDTH]; /* of the group */
    double dgamma[WIDTH], dbeta[WIDTH];    /* of the unit, in the order of channels */
    float center[WIDTH], scale[WIDTH], a[WIDTH], b[WIDTH];
};

/* ---- loops ---- */

/* The loops over a part, for a type known at compile time. A run is one channel with contiguous
 * elements; columns are several channels.
 *     sums       sum of u, dot of u v: u = x - center, v = u; or, for dy, u = dy, v = x - center
 *     normalise  y = (x - center) scale + a
 *     derive     dx = scale (dy - a - (x - center) b) */

#define TOTAL(v) \
    ((((v)[0] + (v)[4]) + ((v)[2] + (v)[6])) + (((v)[1] + (v)[5]) + ((v)[3] + (v)[7])))

#define AT(p, r) ((p)->first + (r) * (p)->row)
/* Rows r to end. */
#define EACH_PIECE(p)                                                                       \
    for (int64_t r = 0, end; end = r + PIECE < (p)->rows ? r + PIECE : (p)->rows,           \
                             r < (p)->rows; r = end)

/* Columns of a few rows k to stop, then of the next few: rows are read in memory order. `body` sees
 * `column`, `both` (two vectors at once), and `some`, the elements of a single vector. */
#define FEW(p) ((p)->width > 2 * VEC ? SUMS : PIECE)
#define EACH_COLUMN(t, p, body)                                                              \
    for (int64_t k = r, stop; stop = k + FEW(p) < end ? k + FEW(p) : end, k < end; k = stop) \
        for (int64_t column = 0; column < (p)->width;)                                       \
            if ((t) == TRI_BF16 && (p)->width - column >= 2 * VEC) {                         \
                const int64_t some = VEC;                                                    \
                const int both = 2;                                                          \
                body;                                                                        \
                column += 2 * VEC;                                                           \
            } else {                                                                         \
                const int64_t some = (p)->width - column < VEC ? (p)->width - column : VEC;  \
                const int both = 1;                                                          \
                body;                                                                        \
                column += VEC;                                                               \
            }

#define OF(array, i) (*(const vec_at *)((array) + column + (i) * VEC))

INLINE void get(tri_type t, int both, const void *x, int64_t at, int64_t some, vec v[2]) {
    if (both == 2)
        vec_load_two(t, x, at, v);
    else
        v[0] = some == VEC ? vec_load(t, x, at) : vec_load_some(t, x, at, some, 0);
}

INLINE void put(tri_type t, int both, void *y, int64_t at, int64_t some, const vec v[2]) {
    if (both == 2)
        vec_store_two(t, y, at, v);
    else if (some == VEC)
        vec_store(t, y, at, v[0]);
    else
        vec_store_some(t, y, at, some, v[0]);
}

/* Hardware does not prefetch this order; so elements are prefetched this many rows ahead. */
#define AHEAD 32
INLINE void fetch(tri_type t, const void *x, int64_t at) {
    __builtin_prefetch((const char *)x + at * (t == TRI_F32 ? 4 : 2));
}

/* SUMS partial sums and as many dots. */
struct partials {
    float sum[SUMS][STRIP], dot[SUMS][STRIP];
};

/* Rows k to stop of one or two vectors of columns: sums `first` to first + n. dy null: moments of
 * x. */
INLINE void add_rows(tri_type t, int both, const struct part *p, const void *dy, const void *x,
                     const float *center, int64_t column, int64_t some, int64_t k, int64_t stop,
                     int first, int n, struct partials *to) {
    vec sum[SUMS][2], dot[SUMS][2], c[2];
    for (int j = 0; j < both; j++) c[j] = OF(center, j);
    UNROLL for (int i = 0; i < n; i++) for (int j = 0; j < both; j++) {
        sum[i][j] = OF(to->sum[first + i], j);
        dot[i][j] = OF(to->dot[first + i], j);
    }
    for (; k < stop; k += SUMS)
        UNROLL for (int i = 0; i < n; i++) {
            vec u[2], v[2];
            if (k + first + i >= stop) break;
            if (both == 2) fetch(t, x, AT(p, k + first + i + AHEAD) + column);
            if (both == 2 && dy) fetch(t, dy, AT(p, k + first + i + AHEAD) + column);
            get(t, both, x, AT(p, k + first + i) + column, some, v);
            if (dy) get(t, both, dy, AT(p, k + first + i) + column, some, u);
            for (int j = 0; j < both; j++) {
                v[j] -= c[j];
                if (!dy) u[j] = v[j];
                sum[i][j] += u[j];
                dot[i][j] += u[j] * v[j];
            }
        }
    UNROLL for (int i = 0; i < n; i++) for (int j = 0; j < both; j++) {
        *(vec_at *)(to->sum[first + i] + column + j * VEC) = sum[i][j];
        *(vec_at *)(to->dot[first + i] + column + j * VEC) = dot[i][j];
    }
}

INLINE void sum_strip(tri_type t, const struct part *p, const void *dy, const void *x,
                      const float *center, double *sum, double *dot) {
    struct partials to;
    const int64_t room = (p->width + VEC - 1) / VEC * VEC;
    EACH_PIECE(p) {
        for (int i = 0; i < SUMS; i++) {
            memset(to.sum[i], 0, (size_t)room * sizeof(float));
            memset(to.dot[i], 0, (size_t)room * sizeof(float));
        }
        /* With two vectors only half of the sums at once: registers are few. */
        EACH_COLUMN(t, p, for (int first = 0; first < SUMS; first += SUMS / both)
                              add_rows(t, both, p, dy, x, center, column, some, k, stop, first,
                                       SUMS / both, &to));
        for (int64_t i = 0; i < p->width; i++) {
            float s[SUMS], d[SUMS];
            for (int j = 0; j < SUMS; j++) {
                s[j] = to.sum[j][i];
                d[j] = to.dot[j][i];
            }
            sum[i] += (double)TOTAL(s);
            dot[i] += (double)TOTAL(d);
        }
    }
}

INLINE void sum_columns(tri_type t, const struct part *p, const void *dy, const void *x,
                        struct numbers *n) {
    for (int64_t at = 0; at < p->width; at += STRIP) {
        struct part strip = *p;
        strip.first += at;
        strip.width = p->width - at < STRIP ? p->width - at : STRIP;
        sum_strip(t, &strip, dy, x, n->center + at, n->sum + at, n->dot + at);
    }
}

INLINE void normalise_rows(tri_type t, int both, const struct part *p, const void *x, void *y,
                           const struct numbers *n, int64_t column, int64_t some, int64_t k,
                           int64_t stop) {
    vec center[2], scale[2], shift[2];
    for (int j = 0; j < both; j++) {
        center[j] = OF(n->center, j);
        scale[j] = OF(n->scale, j);
        shift[j] = OF(n->a, j);
    }
    for (; k < stop; k++) {
        const int64_t at = AT(p, k) + column;
        vec v[2];
        if (both == 2) fetch(t, x, at + AHEAD * p->row);
        get(t, both, x, at, some, v);
        for (int j = 0; j < both; j++) v[j] = (v[j] - center[j]) * scale[j] + shift[j];
        put(t, both, y, at, some, v);
    }
}

INLINE void normalise_columns(tri_type t, const struct part *p, const void *x, void *y,
                              const struct numbers *n) {
    EACH_PIECE(p)
        EACH_COLUMN(t, p, normalise_rows(t, both, p, x, y, n, column, some, k, stop));
}

INLINE void derive_rows(tri_type t, int both, const struct part *p, const void *dy, const void *x,
                        void *dx, const struct numbers *n, int64_t column, int64_t some, int64_t k,
                        int64_t stop) {
    vec center[2], scale[2], a[2], b[2];
    for (int j = 0; j < both; j++) {
        center[j] = OF(n->center, j);
        scale[j] = OF(n->scale, j);
        a[j] = OF(n->a, j);
        b[j] = OF(n->b, j);
    }
    for (; k < stop; k++) {
        const int64_t at = AT(p, k) + column;
        vec u[2], v[2];
        if (both == 2) fetch(t, dy, at + AHEAD * p->row);
        if (both == 2) fetch(t, x, at + AHEAD * p->row);
        get(t, both, dy, at, some, u);
        get(t, both, x, at, some, v);
        for (int j = 0; j < both; j++) v[j] = scale[j] * (u[j] - a[j] - (v[j] - center[j]) * b[j]);
        put(t, both, dx, at, some, v);
    }
}

INLINE void derive_columns(tri_type t, const struct part *p, const void *dy, const void *x,
                           void *dx, const struct numbers *n) {
    EACH_PIECE(p)
        EACH_COLUMN(t, p, derive_rows(t, both, p, dy, x, dx, n, column, some, k, stop));
}

/* A run: SUMS elements at once. */
typedef float eight __attribute__((vector_size(4 * SUMS)));
typedef float eight_at __attribute__((vector_size(4 * SUMS), aligned(4), may_alias));
typedef uint16_t eight_u16_at __attribute__((vector_size(2 * SUMS), aligned(2), may_alias));
typedef uint32_t eight_u32 __attribute__((vector_size(4 * SUMS)));

INLINE void load_eight(tri_type t, const void *x, int64_t at, int64_t some, float rest, eight *v) {
    if (some == SUMS && t == TRI_F32)
        *v = *(const eight_at *)((const float *)x + at);
    else if (some == SUMS && t == TRI_BF16)
        *v = (eight)(__builtin_convertvector(*(const eight_u16_at *)((const uint16_t *)x + at),
                                             eight_u32) << 16);
    else
        for (int i = 0; i < SUMS; i++) (*v)[i] = i < some ? rows_get(t, x, at + i) : rest;
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
        int64_t at = AT(p, r);
        const int64_t stop = AT(p, end);
        for (; at + SUMS <= stop; at += SUMS)
            add_eight(t, dy, x, at, SUMS, center, &sum, &dot);
        if (at < stop) add_eight(t, dy, x, at, stop - at, center, &sum, &dot);
        n->sum[0] += (double)TOTAL(sum);
        n->dot[0] += (double)TOTAL(dot);
    }
}

#define GET_RUN(t, x) \
    (some == VEC ? vec_load(t, x, first + at) : vec_load_some(t, x, first + at, some, 0))
#define PUT_RUN(t, y, v)                                                                    \
    (some == VEC ? vec_store(t, y, first + at, v) : vec_store_some(t, y, first + at, some, v))

INLINE void normalise_run(tri_type t, const struct part *p, const void *x, void *y,
                          const struct numbers *n) {
    const float center = n->center[0], scale = n->scale[0], shift = n->a[0];
    const int64_t first = p->first;
    EACH(p->rows, PUT_RUN(t, y, (GET_RUN(t, x) - center) * scale + shift));
}

INLINE void derive_run(tri_type t, const struct part *p, const void *dy, const void *x, void *dx,
                       const struct numbers *n) {
    const float center = n->center[0], scale = n->scale[0], a = n->a[0], b = n->b[0];
    const int64_t first = p->first;
    EACH(p->rows, PUT_RUN(t, dx, scale * (GET_RUN(t, dy) - a - (GET_RUN(t, x) - center) * b)));
}

/* ---- blocks of CHANNELS ---- */

/* The elements of a slice are contiguous. They are processed two vectors at a time; every ROUND
 * elements the same sums follow, and every PERIOD elements the same channels. */
#define CHANNELS 16
#define ROUND (SUMS * CHANNELS)
#define PERIOD (2 * VEC > CHANNELS ? 2 * VEC : CHANNELS)
#define HELD (VEC_REGISTERS / 4) /* vectors of sums in registers, and as many of dots */

/* Numbers of channels in block_place's order, for vector v of a period. */
INLINE vec channels_of(tri_type t, const float *from, int v) {
#if VEC == 16
    (void)v;
    if (t == TRI_BF16) return _mm512_broadcast_f32x8(_mm256_loadu_ps(from + v % 2 * 8));
    return *(const vec_at *)from;
#else
    (void)t;
    return *(const vec_at *)(from + v * VEC % CHANNELS);
#endif
}

/* As vec_place; but if two vectors have two rows, each has half of the channels, twice. */
static int64_t block_place(tri_type t, int64_t i) {
    const int64_t k = vec_place(t, i, PERIOD);
    return PERIOD > CHANNELS ? k / VEC * (VEC / 2) + k % VEC : k;
}

/* Hardware prefetches too late, and not across pages. */
#define FAR 2048
INLINE void fetch_two(tri_type t, const void *x, int64_t at) {
    const char *next = (const char *)rows_in(t, x, at) + FAR;
    __builtin_prefetch(next);
    if (t == TRI_F32 && VEC == 16) __builtin_prefetch(next + 64);
}

/* Sums of two vectors; their centers are `c`. */
INLINE void add_two(tri_type t, const void *dy, const void *x, int64_t at, const vec c[2],
                    vec sum[2], vec dot[2]) {
    vec u[2], v[2];
    vec_load_two(t, x, at, v);
    if (dy) vec_load_two(t, dy, at, u);
    for (int j = 0; j < 2; j++) {
        v[j] -= c[j];
        if (!dy) u[j] = v[j];
        sum[j] += u[j];
        dot[j] += u[j] * v[j];
    }
}

/* The next n elements, as two vectors: all, or a single row. */
INLINE const void *two_of(tri_type t, const void *x, int64_t at, int64_t n, float spare[PERIOD]) {
    if (n >= 2 * VEC) return rows_in(t, x, at);
    memcpy(spare, rows_in(t, x, at), CHANNELS * (t == TRI_F32 ? 4 : 2));
    return spare;
}

/* The sums of a piece of n elements, which begin as zeros. */
INLINE void sum_piece(tri_type t, const void *dy, const void *x, int64_t n, const vec *center,
                      float *sum, float *dot) {
    const int64_t whole = n / ROUND * ROUND;
    for (int from = 0; from < ROUND / VEC; from += HELD) {
        vec s[HELD] = {{0}}, d[HELD] = {{0}};
        for (int64_t at = from * VEC; at < whole; at += ROUND)
            UNROLL for (int v = 0; v < HELD; v += 2) {
                fetch_two(t, x, at + v * VEC);
                if (dy) fetch_two(t, dy, at + v * VEC);
                add_two(t, dy, x, at + v * VEC, center + v % (PERIOD / VEC), s + v, d + v);
            }
        memcpy(sum + from * VEC, s, sizeof s);
        memcpy(dot + from * VEC, d, sizeof d);
    }
    for (int64_t at = whole; at < n; at += 2 * VEC) {
        float spare[2][PERIOD] = {{0}}, *to[2] = {sum + at - whole, dot + at - whole};
        const bool row = n - at < 2 * VEC;
        vec sums[2][2];
        memcpy(sums[0], to[0], sizeof sums[0]);
        memcpy(sums[1], to[1], sizeof sums[1]);
        add_two(t, dy ? two_of(t, dy, at, n - at, spare[0]) : NULL,
                two_of(t, x, at, n - at, spare[1]), 0, center + at / VEC % (PERIOD / VEC), sums[0],
                sums[1]);
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < (row && t != TRI_BF16 ? 1 : 2); j++)
                memcpy(to[i] + j * VEC, &sums[i][j],
                       (row && t == TRI_BF16 ? VEC / 2 : VEC) * sizeof(float));
    }
}

/* As TOTAL, for each channel. */
INLINE void add_totals(tri_type t, float *v, double *total) {
    const int half = t == TRI_BF16 && PERIOD > CHANNELS ? CHANNELS / 2 : CHANNELS;
    for (int n = ROUND / 2; n > CHANNELS; n /= 2)
        for (int i = 0; i < n; i++) v[i] += v[i + n];
    for (int i = 0; i < CHANNELS; i++) {
        const float *a = v + i / half * 2 * half + i % half;
        total[i] += (double)(a[0] + a[half]);
    }
}

INLINE void sum_blocks(tri_type t, const struct part *p, const void *dy, const void *x,
                       struct numbers *n) {
    vec center[PERIOD / VEC];
    for (int v = 0; v < PERIOD / VEC; v++) center[v] = channels_of(t, n->center, v);
    EACH_PIECE(p) {
        float sum[ROUND], dot[ROUND];
        sum_piece(t, dy ? rows_in(t, dy, AT(p, r)) : NULL, rows_in(t, x, AT(p, r)),
                  (end - r) * CHANNELS, center, sum, dot);
        add_totals(t, sum, n->sum);
        add_totals(t, dot, n->dot);
    }
}

struct factors {
    vec center[PERIOD / VEC], scale[PERIOD / VEC], a[PERIOD / VEC], b[PERIOD / VEC];
};

/* Two vectors, v and v + 1 of a period. dy null: normalise. */
INLINE void map_two(tri_type t, const void *dy, const void *x, void *y, int64_t at, int v,
                    const struct factors *f) {
    vec u[2], w[2];
    vec_load_two(t, x, at, w);
    if (dy) vec_load_two(t, dy, at, u);
    for (int j = 0; j < 2; j++) {
        w[j] -= f->center[v + j];
        w[j] = dy ? f->scale[v + j] * (u[j] - f->a[v + j] - w[j] * f->b[v + j])
                  : w[j] * f->scale[v + j] + f->a[v + j];
    }
    vec_store_two(t, y, at, w);
}

INLINE void map_blocks(tri_type t, const struct part *p, const void *dy, const void *x, void *y,
                       const struct numbers *n) {
    const int64_t end = AT(p, p->rows);
    struct factors f;
    int64_t at = p->first;
    for (int v = 0; v < PERIOD / VEC; v++) {
        f.center[v] = channels_of(t, n->center, v);
        f.scale[v] = channels_of(t, n->scale, v);
        f.a[v] = channels_of(t, n->a, v);
        f.b[v] = channels_of(t, n->b, v);
    }
    for (; at + PERIOD <= end; at += PERIOD)
        UNROLL for (int v = 0; v < PERIOD / VEC; v += 2) {
            fetch_two(t, x, at + v * VEC);
            if (dy) fetch_two(t, dy, at + v * VEC);
            if (t != TRI_F32) fetch_two(t, y, at + v * VEC);
            map_two(t, dy, x, y, at + v * VEC, v, &f);
        }
    if (PERIOD > CHANNELS && at < end) {
        float spare[3][PERIOD] = {{0}};
        map_two(t, dy ? two_of(t, dy, at, CHANNELS, spare[0]) : NULL,
                two_of(t, x, at, CHANNELS, spare[1]), spare[2], 0, 0, &f);
        memcpy(rows_out(t, y, at), spare[2], CHANNELS * (t == TRI_F32 ? 4 : 2));
    }
}

INLINE void normalise_blocks(tri_type t, const struct part *p, const void *x, void *y,
                             const struct numbers *n) {
    map_blocks(t, p, NULL, x, y, n);
}

INLINE void derive_blocks(tri_type t, const struct part *p, const void *dy, const void *x,
                          void *dx, const struct numbers *n) {
    map_blocks(t, p, dy, x, dx, n);
}

/* ---- by type and format ---- */

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
        sum_##how(t, p, NULL, x, n);                                                        \
    }                                                                                       \
    static void sums_##t##_##how(const struct part *p, const void *dy, const void *x,       \
                                 struct numbers *n) {                                       \
        sum_##how(t, p, dy, x, n);                                                          \
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
EACH_TYPE(LOOPS, blocks)

#define NAMES(t, how) \
    [t] = {moments_##t##_##how, sums_##t##_##how, normalise_##t##_##how, derive_##t##_##how},
static const struct loops run_loops[] = {EACH_TYPE(NAMES, run)};
static const struct loops column_loops[] = {EACH_TYPE(NAMES, columns)};
static const struct loops block_loops[] = {EACH_TYPE(NAMES, blocks)};

/* Whether the loops of blocks fit. */
static bool in_blocks(const struct sizes *z) { return z->block == CHANNELS && z->places > 1; }

static const struct loops *loops_of(const struct sizes *z) {
    return in_blocks(z)    ? &block_loops[z->type]
           : z->block > 1 ? &column_loops[z->type]
                          : &run_loops[z->type];
}

#endif
