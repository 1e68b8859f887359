/* SPDX-License-Identifier: Apache-2.0
 * Pooling and its derivatives, plane by plane: for every place of the window the output places that
 * see it inside the input are a range, over which the loops run. */
#include "dev/cpu/cpu.h"
#include "ops/window.h"

struct state {
    struct window w;
    float *divisor; /* of the average, [oh, ow] */
    double *row;    /* sums of one output row */
};

/* Output places q of one axis for which q * stride - pad + k lies in [0, length). */
struct range {
    int64_t begin, end;
};

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

static struct range seen(int64_t k, int64_t stride, int64_t pad, int64_t length, int64_t out) {
    int64_t first = pad - k, last = length - 1 + pad - k;
    struct range r = {first > 0 ? (first + stride - 1) / stride : 0,
                      last < 0 ? 0 : min(last / stride + 1, out)};
    return r;
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

/* best and index of places [0, n) against x, x + stride, ..., whose first has the given index. */
INLINE void larger(float *best, int32_t *index, const float *x, int32_t at, int64_t n,
                   int64_t stride) {
    INDEPENDENT for (int64_t i = 0; i < n; i++) {
        float v = x[i * stride], b = best[i];
        bool take = (v > b) | ((v != v) & (b == b));
        best[i] = take ? v : b;
        index[i] = take ? at + (int32_t)(i * stride) : index[i];
    }
}

/* One output row; every window's first place is what it starts with. */
CLONES static void max_row(const struct window *w, const float *plane, int64_t r, float *best,
                           int32_t *index) {
    struct window_span v = window_span(r, w->kh, w->sh, w->ph, w->h);
    for (int64_t q = 0; q < w->ow; q++) {
        int64_t column = q * w->sw - w->pw;
        index[q] = (int32_t)(v.begin * w->w + (column < 0 ? 0 : column));
        best[q] = plane[index[q]];
    }
    for (int64_t y = v.begin; y < v.end; y++)
        for (int64_t k = 0; k < w->kw; k++) {
            struct range q = seen(k, w->sw, w->pw, w->w, w->ow);
            int64_t at = y * w->w + q.begin * w->sw - w->pw + k;
            BY_STRIDE(w->sw, larger, best + q.begin, index + q.begin, plane + at, (int32_t)at,
                      q.end - q.begin);
        }
}

static void max_pool(const tri_call *c) {
    const struct window *w = &((const struct state *)c->state)->w;
    for (int64_t p = 0; p < w->n * w->c; p++)
        for (int64_t r = 0; r < w->oh; r++) {
            int64_t y = (p * w->oh + r) * w->ow;
            max_row(w, (const float *)c->in[0] + p * w->h * w->w, r, (float *)c->out[0] + y,
                    (int32_t *)c->out[1] + y);
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
            struct range q = seen(k, w->sw, w->pw, w->w, w->ow);
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
            struct range q = seen(k, w->sw, w->pw, w->w, w->ow);
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

static tri_status prepare_max(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    CHECK(window_of(n, &((struct state *)*state)->w));
    return TRI_OK;
}

static void release(void *state) {
    struct state *s = state;
    free(s->divisor);
    free(s->row);
    free(s);
}

static tri_status prepare_avg(const tri_node *n, void **state) {
    tri_status status = prepare_max(n, state);
    if (status) return status;
    struct state *s = *state;
    int64_t oh = s->w.oh, ow = s->w.ow;
    s->divisor = malloc((size_t)(oh * ow) * sizeof *s->divisor);
    s->row = malloc((size_t)ow * sizeof *s->row);
    if (!s->divisor || !s->row) {
        release(s);
        return base_no_memory(n->name);
    }
    for (int64_t i = 0; i < oh * ow; i++)
        s->divisor[i] = (float)window_divisor(&s->w, i / ow, i % ow);
    return TRI_OK;
}

const struct dev_row cpu_pool[] = {
    {"max_pool", max_pool, NULL, prepare_max, free},
    {"max_pool_dx", max_pool_dx, NULL, prepare_max, free},
    {"avg_pool", avg_pool, NULL, prepare_avg, release},
    {"avg_pool_dx", avg_pool_dx, NULL, prepare_avg, release},
    {0},
};
