/* SPDX-License-Identifier: Apache-2.0
 * Pooling and its derivatives, plane by plane: for every place of the window the output places that
 * see it inside the input are a range, over which the loops run. */
#include "dev/cpu/cpu.h"
#include "ops/window.h"

/* Output places q of one row for which column q * stride - pad + k lies inside the input. */
struct range {
    int64_t begin, end;
};

struct state {
    struct window w;
    struct range *seen; /* by the place k of the window, [kw] */
    float *divisor;     /* of the average, [oh, ow] */
    double *row;        /* sums of one output row */
    /* Of the maximum: one output row, rounded up, and where its windows begin; those phases
     * of an input row with its padding that windows see, each `phase` long. */
    int64_t rounded, phases, phase;
    float *best, *padded;
    int32_t *index, *column;
};

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

static struct range seen(const struct window *w, int64_t k) {
    int64_t first = w->pw - k, last = w->w - 1 + w->pw - k;
    return (struct range){first > 0 ? (first + w->sw - 1) / w->sw : 0,
                          last < 0 ? 0 : min(last / w->sw + 1, w->ow)};
}

/* Calls the loop with a constant stride where it is 1 or 2, so that it is vectorised. */
#define BY_STRIDE(stride, loop, ...)                                                        \
    do {                                                                                    \
        if ((stride) == 1)                                                                  \
            loop(__VA_ARGS__, 1);                                                           \
        else if ((stride) == 2)                                                             \
            loop(__VA_ARGS__, 2);                                                           \
        else                                                                                \
            loop(__VA_ARGS__, stride);                                                      \
    } while (0)

/* ---- maximum ---- */

#define WIDTH 16 /* rows are rounded up to it, so that no vector loop has a remainder */

/* Against best the places x, whose indices are first + index. */
INLINE void larger(float *best, int32_t *best_index, const float *x, const int32_t *index,
                   int32_t first, int64_t n) {
    INDEPENDENT for (int64_t i = 0; i < n; i++) {
        float v = x[i], b = best[i];
        bool take = (v > b) | ((v != v) & (b == b));
        best[i] = take ? v : b;
        best_index[i] = take ? first + index[i] : best_index[i];
    }
}

/* Every stride-th element of an input row, from `phase` of the padded row on. */
INLINE void take_phase(float *to, const float *x, const struct window *w, int64_t phase,
                       int64_t stride) {
    int64_t skip = phase < w->pw ? (w->pw - phase + stride - 1) / stride : 0;
    int64_t first = phase + skip * stride - w->pw, n = (w->w - first + stride - 1) / stride;
    to += skip;
    INDEPENDENT for (int64_t i = 0; i < n; i++) to[i] = x[first + i * stride];
}

/* One output row. Every window begins as empty, at its first place; -infinity pads the input. The
 * padded input row is kept as one row for each phase of the stride, so that what a place k of the
 * windows sees is contiguous. */
CLONES static void max_row(const struct state *s, const float *plane, int64_t r) {
    const struct window *w = &s->w;
    struct window_span v = window_span(r, w->kh, w->sh, w->ph, w->h);
    for (int64_t q = 0; q < s->rounded; q++) {
        int32_t column = s->column[q] < 0 ? 0 : s->column[q];
        s->index[q] = (int32_t)(v.begin * w->w) + column;
        s->best[q] = -__builtin_inff();
    }
    for (int64_t y = v.begin; y < v.end; y++) {
        const float *x = plane + y * w->w;
        for (int64_t p = 0; p < s->phases; p++)
            BY_STRIDE(w->sw, take_phase, s->padded + p * s->phase, x, w, p);
        for (int64_t k = 0; k < w->kw; k++)
            larger(s->best, s->index, s->padded + k % w->sw * s->phase + k / w->sw, s->column,
                   (int32_t)(y * w->w + k), s->rounded);
    }
}

static void max_pool(const tri_call *c) {
    const struct state *s = c->state;
    const struct window *w = &s->w;
    float *y = c->out[0];
    int32_t *index = c->out[1];
    for (int64_t p = 0; p < w->n * w->c; p++)
        for (int64_t r = 0; r < w->oh; r++, y += w->ow, index += w->ow) {
            max_row(s, (const float *)c->in[0] + p * w->h * w->w, r);
            memcpy(y, s->best, (size_t)w->ow * sizeof *y);
            memcpy(index, s->index, (size_t)w->ow * sizeof *index);
        }
}

static void max_pool_dx(const tri_call *c) {
    const struct window *w = &((const struct state *)c->state)->w;
    int64_t in = w->h * w->w, out = w->oh * w->ow;
    memset(c->out[0], 0, (size_t)(w->n * w->c * w->h * w->w) * sizeof(float));
    for (int64_t p = 0; p < w->n * w->c; p++) {
        const float *dy = (const float *)c->in[0] + p * out;
        const int32_t *index = (const int32_t *)c->in[1] + p * out;
        float *dx = (float *)c->out[0] + p * in;
        for (int64_t i = 0; i < out; i++) {
            if (index[i] < 0 || index[i] >= in) {
                tri_call_fail(c, "index %d at element %lld is not below %lld", (int)index[i],
                              (long long)(p * out + i), (long long)in);
                return;
            }
            dx[index[i]] += dy[i];
        }
    }
}

/* ---- average ---- */

INLINE void add_from(double *sum, const float *x, int64_t n, int64_t stride) {
    INDEPENDENT for (int64_t i = 0; i < n; i++) sum[i] += (double)x[i * stride];
}

INLINE void add_to(float *dx, const float *d, int64_t n, int64_t stride) {
    INDEPENDENT for (int64_t i = 0; i < n; i++) dx[i * stride] += d[i];
}

CLONES static void avg_row(const struct state *s, const float *plane, int64_t r, float *y) {
    const struct window *w = &s->w;
    struct window_span v = window_span(r, w->kh, w->sh, w->ph, w->h);
    for (int64_t q = 0; q < w->ow; q++) s->row[q] = 0;
    for (int64_t row = v.begin; row < v.end; row++)
        for (int64_t k = 0; k < w->kw; k++) {
            struct range q = s->seen[k];
            const float *x = plane + row * w->w + q.begin * w->sw - w->pw + k;
            BY_STRIDE(w->sw, add_from, s->row + q.begin, x, q.end - q.begin);
        }
    for (int64_t q = 0; q < w->ow; q++)
        y[q] = (float)(s->row[q] / (double)s->divisor[r * w->ow + q]);
}

static void avg_pool(const tri_call *c) {
    const struct state *s = c->state;
    const struct window *w = &s->w;
    for (int64_t p = 0; p < w->n * w->c; p++)
        for (int64_t r = 0; r < w->oh; r++)
            avg_row(s, (const float *)c->in[0] + p * w->h * w->w, r,
                    (float *)c->out[0] + (p * w->oh + r) * w->ow);
}

CLONES static void avg_dx_row(const struct state *s, const float *dy, int64_t r, float *plane) {
    const struct window *w = &s->w;
    struct window_span v = window_span(r, w->kh, w->sh, w->ph, w->h);
    float *d = (float *)s->row;
    for (int64_t q = 0; q < w->ow; q++) d[q] = dy[q] / s->divisor[r * w->ow + q];
    for (int64_t row = v.begin; row < v.end; row++)
        for (int64_t k = 0; k < w->kw; k++) {
            struct range q = s->seen[k];
            float *dx = plane + row * w->w + q.begin * w->sw - w->pw + k;
            BY_STRIDE(w->sw, add_to, dx, d + q.begin, q.end - q.begin);
        }
}

static void avg_pool_dx(const tri_call *c) {
    const struct state *s = c->state;
    const struct window *w = &s->w;
    memset(c->out[0], 0, (size_t)(w->n * w->c * w->h * w->w) * sizeof(float));
    for (int64_t p = 0; p < w->n * w->c; p++)
        for (int64_t r = 0; r < w->oh; r++)
            avg_dx_row(s, (const float *)c->in[0] + (p * w->oh + r) * w->ow, r,
                       (float *)c->out[0] + p * w->h * w->w);
}

/* ---- preparation ---- */

static void release(void *state) {
    struct state *s = state;
    void *owned[] = {s->seen, s->divisor, s->row, s->best, s->index, s->column, s->padded};
    for (size_t i = 0; i < COUNT(owned); i++) free(owned[i]);
    free(s);
}

static tri_status prepare(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    struct state *s = *state;
    CHECK(window_of(n, &s->w));
    const struct window *w = &s->w;
    s->rounded = (w->ow + WIDTH - 1) / WIDTH * WIDTH;
    s->phases = min(w->sw, w->kw);
    s->phase = s->rounded + w->kw / w->sw + (w->pw + w->w) / w->sw + 1;
    s->seen = malloc((size_t)w->kw * sizeof *s->seen);
    s->divisor = malloc((size_t)(w->oh * w->ow) * sizeof *s->divisor);
    s->row = malloc((size_t)w->ow * sizeof *s->row);
    s->best = malloc((size_t)s->rounded * sizeof *s->best);
    s->index = malloc((size_t)s->rounded * sizeof *s->index);
    s->column = malloc((size_t)s->rounded * sizeof *s->column);
    s->padded = malloc((size_t)(s->phase * s->phases) * sizeof *s->padded);
    if (!s->seen || !s->divisor || !s->row || !s->best || !s->index || !s->column ||
        !s->padded) {
        release(s);
        return base_no_memory(n->name);
    }
    for (int64_t k = 0; k < w->kw; k++) s->seen[k] = seen(w, k);
    for (int64_t i = 0; i < w->oh * w->ow; i++)
        s->divisor[i] = (float)window_divisor(w, i / w->ow, i % w->ow);
    for (int64_t q = 0; q < s->rounded; q++) s->column[q] = (int32_t)(q * w->sw - w->pw);
    for (int64_t i = 0; i < s->phase * s->phases; i++) s->padded[i] = -__builtin_inff();
    return TRI_OK;
}

const struct dev_row cpu_pool[] = {
    {.op = "max_pool", .run = max_pool, .prepare = prepare, .release = release},
    {.op = "max_pool_dx", .run = max_pool_dx, .prepare = prepare, .release = release},
    {.op = "avg_pool", .run = avg_pool, .prepare = prepare, .release = release},
    {.op = "avg_pool_dx", .run = avg_pool_dx, .prepare = prepare, .release = release},
    {0},
};
