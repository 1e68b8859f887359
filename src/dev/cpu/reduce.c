/* SPDX-License-Identifier: Apache-2.0
 * Reductions over axes: sum, mean and max. A unit of work is one result if the innermost dimension
 * is reduced, else a run of WIDE adjacent results. If there are few units, each is cut into pieces,
 * and a second round combines them. */
#include "dev/cpu/rows.h"
#include "dev/cpu/walk.h"
#include "ops/op.h"

#define WIDE 2048
#define TOGETHER 8 /* places that are added before their sum is added to the others */
#define FLUSH 64   /* the number of such sums added in f32; these are added in double */
#define MANY 16    /* units that are enough without cutting */

/* The arithmetic of one type. Accumulators are doubles or int64_t. */
struct reducer {
    void (*begin)(void *acc, int64_t n);
    /* Adds at most BLOCK elements to one accumulator. */
    void (*row)(void *acc, const void *x, int64_t n);
    /* Adds n neighbours at each of m <= TOGETHER places to separate accumulators, or to `part`, n
     * floats that start as zeros and that `flush` adds to the accumulators. */
    void (*columns)(void *acc, const void *const *x, int m, int64_t n, float *part);
    void (*flush)(void *acc, float *part, int64_t n); /* nullable */
    void (*merge)(void *acc, const void *from, int64_t n);
    void (*finish)(void *y, int64_t at, const void *acc, int64_t n, double divisor);
};

struct state {
    const struct reducer *reducer;
    bool row;                  /* the innermost dimension is reduced, else kept */
    int64_t inner;             /* its length */
    struct walk kept, reduced; /* the other dimensions; tensor 0 is x */
    double divisor;
    int64_t size;     /* of an element */
    int64_t across;   /* units per kept place */
    int64_t units;
    int64_t blocks;   /* of a row */
    int64_t steps;    /* blocks, or places, of one unit */
    int64_t pieces;   /* of a unit's steps */
    int64_t parts, then;
};

/* ---- floating point ---- */

/* x if it is larger than m, or NaN. */
INLINE double larger(double m, double x) { return x > m || x != x ? x : m; }

INLINE void sum_row(tri_type t, double *acc, const void *x, int64_t n) {
    vec partial[SUM_VECS] = {{0}};
    ROW(n, partial[k] += LOAD(t, x, 0));
    *acc += (double)vec_total(partial);
}
INLINE void max_row(tri_type t, double *acc, const void *x, int64_t n) {
    *acc = larger(*acc, (double)rows_max_or_nan(t, x, n));
}

INLINE void sum_columns(tri_type t, const void *const *x, int m, int64_t n, float *part) {
    if (m == TOGETHER)
        EACH(n, {
            vec a = LOAD(t, x[0], 0) + LOAD(t, x[1], 0), b = LOAD(t, x[2], 0) + LOAD(t, x[3], 0);
            vec c = LOAD(t, x[4], 0) + LOAD(t, x[5], 0), d = LOAD(t, x[6], 0) + LOAD(t, x[7], 0);
            STORE(TRI_F32, part, LOAD(TRI_F32, part, 0) + ((a + b) + (c + d)));
        });
    else
        for (int i = 0; i < m; i++)
            EACH(n, STORE(TRI_F32, part, LOAD(TRI_F32, part, 0) + LOAD(t, x[i], 0)));
}
static void sum_flush(void *to, float *part, int64_t n) {
    double *acc = to;
    INDEPENDENT for (int64_t i = 0; i < n; i++) {
        acc[i] += (double)part[i];
        part[i] = 0;
    }
}

INLINE void max_columns(tri_type t, double *acc, const void *const *x, int m, int64_t n) {
    for (int i = 0; i < m; i++)
        for (int64_t k = 0; k < n; k++) acc[k] = larger(acc[k], (double)rows_get(t, x[i], k));
}

static void begin_sum(void *to, int64_t n) { memset(to, 0, (size_t)n * sizeof(double)); }
static void begin_max(void *to, int64_t n) {
    double *acc = to;
    for (int64_t i = 0; i < n; i++) acc[i] = -__builtin_inf();
}
static void merge_sum(void *to, const void *from, int64_t n) {
    double *acc = to;
    for (int64_t i = 0; i < n; i++) acc[i] += ((const double *)from)[i];
}
static void merge_max(void *to, const void *from, int64_t n) {
    double *acc = to;
    for (int64_t i = 0; i < n; i++) acc[i] = larger(acc[i], ((const double *)from)[i]);
}

#define FLOATS(s, t)                                                                        \
    static void row_sum_##s(void *acc, const void *x, int64_t n) { sum_row(t, acc, x, n); } \
    static void row_max_##s(void *acc, const void *x, int64_t n) { max_row(t, acc, x, n); } \
    static void columns_sum_##s(void *acc, const void *const *x, int m, int64_t n,          \
                                float *part) {                                              \
        (void)acc;                                                                          \
        sum_columns(t, x, m, n, part);                                                      \
    }                                                                                       \
    static void columns_max_##s(void *acc, const void *const *x, int m, int64_t n,          \
                                float *part) {                                              \
        (void)part;                                                                         \
        max_columns(t, acc, x, m, n);                                                       \
    }                                                                                       \
    static void finish_##s(void *y, int64_t at, const void *acc, int64_t n,                 \
                           double divisor) {                                                \
        for (int64_t i = 0; i < n; i++)                                                     \
            rows_put(t, y, at + i, (float)(((const double *)acc)[i] / divisor));            \
    }
FLOATS(f32, TRI_F32)
FLOATS(bf16, TRI_BF16)
FLOATS(f16, TRI_F16)

/* ---- integers; sums wrap ---- */

#define INTEGERS(name, s, T, first, step)                                                   \
    static void begin_##name##_##s(void *to, int64_t n) {                                   \
        int64_t *acc = to;                                                                  \
        for (int64_t i = 0; i < n; i++) acc[i] = first;                                     \
    }                                                                                       \
    static void merge_##name##_##s(void *to, const void *from, int64_t n) {                 \
        for (int64_t i = 0; i < n; i++) {                                                   \
            int64_t *acc = (int64_t *)to + i, x = ((const int64_t *)from)[i];               \
            *acc = step;                                                                    \
        }                                                                                   \
    }                                                                                       \
    static void row_##name##_##s(void *to, const void *from, int64_t n) {                   \
        int64_t m = *(int64_t *)to, *acc = &m;                                              \
        for (int64_t i = 0; i < n; i++) {                                                   \
            int64_t x = ((const T *)from)[i];                                               \
            *acc = step;                                                                    \
        }                                                                                   \
        *(int64_t *)to = m;                                                                 \
    }                                                                                       \
    static void columns_##name##_##s(void *to, const void *const *from, int m, int64_t n,   \
                                     float *part) {                                         \
        (void)part;                                                                         \
        for (int k = 0; k < m; k++)                                                         \
            for (int64_t i = 0; i < n; i++) {                                               \
                int64_t *acc = (int64_t *)to + i, x = ((const T *const *)from)[k][i];       \
                *acc = step;                                                                \
            }                                                                               \
    }                                                                                       \
    static void finish_##name##_##s(void *y, int64_t at, const void *acc, int64_t n,        \
                                    double divisor) {                                       \
        for (int64_t i = 0; i < n; i++) {                                                   \
            int64_t v = ((const int64_t *)acc)[i];                                          \
            ((T *)y)[at + i] = (T)(divisor > 1 ? (int64_t)((double)v / divisor) : v);       \
        }                                                                                   \
    }
#define ADD (int64_t)((uint64_t)*acc + (uint64_t)x)
#define LARGER x > *acc ? x : *acc
INTEGERS(sum, i32, int32_t, 0, ADD)
INTEGERS(sum, i64, int64_t, 0, ADD)
INTEGERS(sum, u8, uint8_t, 0, ADD)
INTEGERS(max, i32, int32_t, INT64_MIN, LARGER)
INTEGERS(max, i64, int64_t, INT64_MIN, LARGER)
INTEGERS(max, u8, uint8_t, INT64_MIN, LARGER)

#define SUM(s) {begin_sum, row_sum_##s, columns_sum_##s, sum_flush, merge_sum, finish_##s}
#define MAX(s) {begin_max, row_max_##s, columns_max_##s, NULL, merge_max, finish_##s}
#define INTEGER(name)                                                                       \
    {begin_##name, row_##name, columns_##name, NULL, merge_##name, finish_##name}

static const struct reducer reducers[2][TRI_BOOL + 1] = {
    {[TRI_F32] = SUM(f32), [TRI_BF16] = SUM(bf16), [TRI_F16] = SUM(f16),
     [TRI_I32] = INTEGER(sum_i32), [TRI_I64] = INTEGER(sum_i64), [TRI_U8] = INTEGER(sum_u8),
     [TRI_BOOL] = INTEGER(sum_u8)},
    {[TRI_F32] = MAX(f32), [TRI_BF16] = MAX(bf16), [TRI_F16] = MAX(f16),
     [TRI_I32] = INTEGER(max_i32), [TRI_I64] = INTEGER(max_i64), [TRI_U8] = INTEGER(max_u8),
     [TRI_BOOL] = INTEGER(max_u8)},
};

/* ---- a piece of a unit ---- */

struct unit_at {
    const char *x;
    int64_t y, width; /* the first of its results, and their number */
};

/* The unit with this number, at this place of the kept dimensions. */
static struct unit_at unit_at(const struct state *s, const tri_call *c, const struct place *at,
                              int64_t unit) {
    int64_t place = unit / s->across, column = unit % s->across * WIDE;
    const char *x = (const char *)c->in[0] + (at->offset[0] + column) * s->size;
    if (s->row) return (struct unit_at){x, place, 1};
    int64_t width = s->inner - column < WIDE ? s->inner - column : WIDE;
    return (struct unit_at){x, place * s->inner + column, width};
}

static void along_rows(const struct state *s, const char *x, int64_t begin, int64_t end,
                       void *acc) {
    if (s->steps == 1) {
        s->reducer->row(acc, x, s->inner);
        return;
    }
    struct place at = {0};
    walk_seek(&s->reduced, begin / s->blocks, &at);
    for (int64_t step = begin; step < end; step++) {
        int64_t block = step % s->blocks * BLOCK, left = s->inner - block;
        s->reducer->row(acc, x + (at.offset[0] + block) * s->size, left < BLOCK ? left : BLOCK);
        if (step % s->blocks == s->blocks - 1) walk_next(&s->reduced, s->reduced.rank, &at);
    }
}

static void down_columns(const struct state *s, const struct unit_at *u, int64_t begin,
                         int64_t end, void *acc, float *part) {
    struct place at = {0};
    const void *x[TOGETHER];
    walk_seek(&s->reduced, begin, &at);
    memset(part, 0, (size_t)u->width * sizeof *part);
    for (int64_t step = begin, groups = 0; step < end;) {
        int m = 0;
        for (; m < TOGETHER && step < end; step++) {
            x[m++] = u->x + at.offset[0] * s->size;
            walk_next(&s->reduced, s->reduced.rank, &at);
        }
        s->reducer->columns(acc, x, m, u->width, part);
        if (s->reducer->flush && (++groups % FLUSH == 0 || step == end))
            s->reducer->flush(acc, part, u->width);
    }
}

static void reduce(const struct state *s, const struct unit_at *u, int64_t piece, void *acc,
                   float *part) {
    int64_t begin = s->steps * piece / s->pieces, end = s->steps * (piece + 1) / s->pieces;
    s->reducer->begin(acc, u->width);
    if (s->row)
        along_rows(s, u->x, begin, end, acc);
    else
        down_columns(s, u, begin, end, acc, part);
}

/* ---- kernel ---- */

static int64_t results_of(const struct state *s) {
    return s->row ? 1 : s->inner < WIDE ? s->inner : WIDE;
}

/* One piece of one unit, for the second round. */
static void run_piece(const struct state *s, const tri_call *c, float *part) {
    struct place at = {0};
    int64_t unit = c->part / s->pieces;
    walk_seek(&s->kept, unit / s->across, &at);
    struct unit_at u = unit_at(s, c, &at, unit);
    reduce(s, &u, c->part % s->pieces, (double *)c->shared + c->part * results_of(s), part);
}

static void merge(const struct state *s, const tri_call *c, const struct unit_at *u, int64_t unit,
                  void *acc) {
    s->reducer->begin(acc, u->width);
    for (int64_t k = unit * s->pieces; k < (unit + 1) * s->pieces; k++)
        s->reducer->merge(acc, (const double *)c->shared + k * results_of(s), u->width);
}

/* Scratch: a unit's accumulators, then the floats. */
static void run(const tri_call *c) {
    const struct state *s = c->state;
    bool cut = s->pieces > 1;
    double *acc = c->scratch;
    float *part = (float *)(acc + results_of(s));
    if (cut && c->part < s->parts) {
        run_piece(s, c, part);
        return;
    }
    int64_t of = cut ? s->then : s->parts, me = c->part - (cut ? s->parts : 0);
    int64_t unit = s->units * me / of, end = s->units * (me + 1) / of;
    struct place at = {0};
    walk_seek(&s->kept, unit / s->across, &at);
    for (; unit < end; unit++) {
        struct unit_at u = unit_at(s, c, &at, unit);
        if (cut)
            merge(s, c, &u, unit, acc);
        else
            reduce(s, &u, 0, acc, part);
        s->reducer->finish(c->out[0], u.y, acc, u.width, s->divisor);
        if (unit % s->across == s->across - 1) walk_next(&s->kept, s->kept.rank, &at);
    }
}

/* Splits the dimensions of x into kept and reduced ones; the innermost is separate. */
static void split_dimensions(const tri_node *n, struct state *s) {
    struct walk w = walk_over(&cpu_in(n, 0)->shape, 2);
    walk_dense(&w, 0);
    walk_reduced(&w, 1, op_axes_mask(n, w.rank));
    walk_simplify(&w);
    s->inner = 1;
    s->row = true;
    if (w.rank) {
        s->row = w.stride[1][w.rank - 1] == 0;
        s->inner = w.dim[w.rank - 1];
        walk_remove(&w, w.rank - 1);
    }
    s->kept = s->reduced = w;
    for (int d = w.rank - 1; d >= 0; d--) walk_remove(w.stride[1][d] ? &s->reduced : &s->kept, d);
}

static void cut(struct state *s) {
    int64_t width = s->row ? 1 : results_of(s), step = s->row ? s->inner / s->blocks : width;
    int64_t all = cpu_parts(s->units * s->steps, step);
    s->pieces = s->units < MANY ? all / s->units : 1;
    if (s->pieces < 1) s->pieces = 1;
    if (s->pieces > s->steps) s->pieces = s->steps;
    s->parts = s->pieces > 1 ? s->units * s->pieces : cpu_parts(s->units, s->steps * step);
    s->then = cpu_parts(s->units, s->pieces * width);
}

static tri_status prepare(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    struct state *s = *state;
    tri_type type = cpu_in(n, 0)->type;
    s->reducer = &reducers[node_is(n, "max")][type];
    s->size = (int64_t)tri_type_size(type);
    s->divisor = node_is(n, "mean") ? (double)n->entry->op->count(n) : 1;
    split_dimensions(n, s);
    s->across = s->row ? 1 : (s->inner + WIDE - 1) / WIDE;
    s->units = walk_count(&s->kept) * s->across;
    s->blocks = s->row ? (s->inner + BLOCK - 1) / BLOCK : 1;
    s->steps = walk_count(&s->reduced) * s->blocks;
    cut(s);
    return TRI_OK;
}

static void plan(const tri_node *n, struct kernel *k) {
    const struct state *s = k->state;
    size_t room = (size_t)results_of(s);
    (void)n;
    k->parts = s->parts;
    k->scratch = room * (sizeof(double) + sizeof(float));
    if (s->pieces == 1) return;
    k->then = s->then;
    k->shared = room * sizeof(double) * (size_t)s->parts;
}

const struct dev_row FOR_ISA(cpu_reduce)[] = {
    {.op = "sum", .run = run, .prepare = prepare, .release = free, .plan = plan},
    {.op = "mean", .run = run, .prepare = prepare, .release = free, .plan = plan},
    {.op = "max", .run = run, .prepare = prepare, .release = free, .plan = plan},
    {0},
};
