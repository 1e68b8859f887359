/* SPDX-License-Identifier: Apache-2.0
 * Reductions: sum, mean and max over axes; sum_squares and all_finite over whole tensors. */
#include "dev/cpu/isa.h"
#include "dev/cpu/lanes.h"
#include "dev/cpu/tile.h"
#include "dev/cpu/walk.h"
#include "ops/op.h"

/* The arithmetic for one type. A row reduces n elements into one accumulator; a column adds to each
 * of n accumulators an element of its own. Accumulators take 8 bytes. */
struct reducer {
    void (*begin)(void *acc, size_t n);
    void (*row)(void *acc, const void *x, size_t n);
    void (*column)(void *acc, const void *x, size_t n);
    void (*finish)(void *y, const void *acc, size_t n, double divisor);
};

#define CHUNK 512 /* accumulators of a column pass */

struct state {
    const struct reducer *reducer;
    bool row;           /* the innermost dimension is reduced, else kept */
    int64_t inner;      /* its length */
    struct walk kept, reduced; /* the others; tensor 0 is x */
    double divisor;
    size_t size;
};

/* ---- arithmetic ---- */

#define REDUCER(name, T, A, first, row_step, step)                                          \
    static void begin_##name(void *acc, size_t n) {                                         \
        A *a = acc;                                                                         \
        for (size_t i = 0; i < n; i++) a[i] = (first);                                      \
    }                                                                                       \
    static void row_##name(void *acc, const void *from, size_t n) {                  \
        A *a = acc, m = *a;                                                                 \
        const T *x = from;                                                                  \
        row_step;                                                                           \
        *a = m;                                                                             \
    }                                                                                       \
    static void column_##name(void *acc, const void *from, size_t n) {               \
        A *a = acc;                                                                         \
        const T *x = from;                                                                  \
        INDEPENDENT for (size_t i = 0; i < n; i++) {                                        \
            A m = a[i];                                                                     \
            step;                                                                           \
            a[i] = m;                                                                       \
        }                                                                                   \
    }                                                                                       \
    static void finish_##name(void *to, const void *acc, size_t n, double divisor) {        \
        T *y = to;                                                                          \
        const A *a = acc;                                                                   \
        for (size_t i = 0; i < n; i++)                                                      \
            y[i] = (T)(divisor > 1 ? (A)((double)a[i] / divisor) : a[i]);                   \
    }

#define EACH(step) \
    for (size_t i = 0; i < n; i++) step

#define ADD m = m + x[i]
#define ADD_I64 m = (int64_t)((uint64_t)m + (uint64_t)x[i]) /* wraps */
#define LARGER m = x[i] > m ? x[i] : m
#define LARGER_OR_NAN m = x[i] > m || x[i] != x[i] ? x[i] : m
#define MAX_ROW                                                                             \
    do {                                                                                    \
        float r = lanes_max(x, n);                                                          \
        if (r > m || r != r) m = r;                                                         \
    } while (0)

REDUCER(sum_f32, float, double, 0, m += lanes_sum(x, n), ADD)
REDUCER(sum_i32, int32_t, int64_t, 0, EACH(ADD_I64), ADD_I64)
REDUCER(sum_i64, int64_t, int64_t, 0, EACH(ADD_I64), ADD_I64)
REDUCER(sum_u8, uint8_t, int64_t, 0, EACH(ADD_I64), ADD_I64)
REDUCER(max_f32, float, float, -__builtin_inff(), MAX_ROW, LARGER_OR_NAN)
REDUCER(max_i32, int32_t, int32_t, INT32_MIN, EACH(LARGER), LARGER)
REDUCER(max_i64, int64_t, int64_t, INT64_MIN, EACH(LARGER), LARGER)
REDUCER(max_u8, uint8_t, uint8_t, 0, EACH(LARGER), LARGER)

#define R(name) {begin_##name, row_##name, column_##name, finish_##name}

/* In the order of enum tile_type. */
static const struct reducer sums[] = {R(sum_f32), R(sum_i32), R(sum_i64), R(sum_u8)};
static const struct reducer maxima[] = {R(max_f32), R(max_i32), R(max_i64), R(max_u8)};

/* ---- over axes ---- */

/* Splits the dimensions of x into kept and reduced ones, the innermost apart. */
static tri_status prepare(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    struct state *s = *state;
    enum tile_type type = tile_type(cpu_in(n, 0)->type);
    s->reducer = node_is(n, "max") ? &maxima[type] : &sums[type];
    s->size = tile_size(type);
    s->divisor = 1;
    if (node_is(n, "mean")) s->divisor = (double)n->entry->op->count(n);
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
    return TRI_OK;
}

/* One accumulator for each of `width` neighbours, over all reduced places. */
static void reduce(const struct state *s, const char *x, int64_t width, void *acc) {
    struct place at = {0};
    s->reducer->begin(acc, s->row ? 1 : (size_t)width);
    for (int64_t left = walk_count(&s->reduced); left; left--) {
        (s->row ? s->reducer->row : s->reducer->column)(
            acc, x + at.offset[0] * (int64_t)s->size, (size_t)width);
        walk_next(&s->reduced, s->reduced.rank, &at);
    }
}

static void run(const tri_call *c) {
    const struct state *s = c->state;
    uint64_t acc[CHUNK];
    struct place at = {0};
    char *y = c->out[0];
    for (int64_t left = walk_count(&s->kept); left; left--) {
        const char *x = (const char *)c->in[0] + at.offset[0] * (int64_t)s->size;
        int64_t step = s->row ? s->inner : CHUNK;
        for (int64_t begin = 0; begin < s->inner; begin += step) {
            int64_t width = s->inner - begin < step ? s->inner - begin : step;
            int64_t results = s->row ? 1 : width;
            reduce(s, x + begin * (int64_t)s->size, width, acc);
            s->reducer->finish(y, acc, (size_t)results, s->divisor);
            y += results * (int64_t)s->size;
        }
        walk_next(&s->kept, s->kept.rank, &at);
    }
}

/* ---- over whole tensors ---- */

static double squares(const float *x, size_t n) { return lanes_sum_squares(x, n); }

static void sum_squares(const tri_call *c) {
    double sum = 0;
    for (int i = 0; i < c->node->n_in; i++)
        sum += squares(c->in[i], (size_t)cpu_in_count(c->node, i));
    *(float *)c->out[0] = (float)sum;
}

/* An exponent of all ones is an infinity or NaN. */
static bool finite_bits(const uint32_t *bits, size_t n) {
    const uint32_t exponent = 0x7f800000u;
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) bad |= (uint32_t)((bits[i] & exponent) == exponent);
    return !bad;
}

static void all_finite(const tri_call *c) {
    bool ok = true;
    for (int i = 0; i < c->node->n_in && ok; i++)
        ok = finite_bits(c->in[i], (size_t)cpu_in_count(c->node, i));
    *(uint8_t *)c->out[0] = ok;
}

const struct dev_row FOR_ISA(cpu_reduce)[] = {
    {.op = "sum", .run = run, .prepare = prepare, .release = free},
    {.op = "mean", .run = run, .prepare = prepare, .release = free},
    {.op = "max", .run = run, .prepare = prepare, .release = free},
    {.op = "sum_squares", .run = sum_squares},
    {.op = "all_finite", .run = all_finite},
    {0},
};
