/* SPDX-License-Identifier: Apache-2.0
 * Layer and group norm. Both normalise runs of contiguous elements, each with its own mean and
 * rstd. The variance uses differences to the mean, so that a large mean costs no accuracy.
 * Backward, a part sums the derivatives of gamma and beta over its runs; a second round adds these
 * up. */
#include <math.h>

#include "dev/cpu/rows.h"

/* A run has `channels` channels of `inner` elements; every channel has its gamma and beta. Run r
 * has the channels from r % cycle * channels. In layer norm a channel is one element. */
struct shape {
    tri_type type;
    int64_t runs, length, channels, inner, cycle, affines;
    int64_t parts, then; /* of the backward kernel */
};

/* From x, gamma and the mean. */
static struct shape shape_of(const tri_node *n, const tri_spec *x, const tri_spec *gamma,
                             const tri_spec *mean) {
    struct shape s = {.type = x->type, .affines = tri_shape_count(&gamma->shape),
                      .runs = tri_shape_count(&mean->shape)};
    s.length = tri_shape_count(&x->shape) / s.runs;
    s.cycle = node_attr(n, "axes") ? 1 : tri_attr_int(n, "groups");
    s.channels = s.affines / s.cycle;
    s.inner = s.length / s.channels;
    s.parts = cpu_parts(s.runs, s.length);
    s.then = cpu_parts(s.affines, s.parts * 2);
    return s;
}

static struct shape shape_forward(const tri_node *n) {
    return shape_of(n, cpu_in(n, 0), cpu_in(n, 1), cpu_out(n, 1));
}
static struct shape shape_backward(const tri_node *n) {
    return shape_of(n, cpu_in(n, 1), cpu_in(n, 2), cpu_in(n, 3));
}

/* ---- forward ---- */

/* Adds differences to the first element, which keeps the digits of a large mean. */
INLINE float mean_of(tri_type t, const void *x, int64_t n) {
    float first = rows_get(t, x, 0);
    double sum;
    ROW_SUM(n, sum, LOAD(t, rows_in(t, x, block), first) - first);
    return (float)((double)first + sum / (double)n);
}

INLINE float rstd_of(tri_type t, const void *x, int64_t n, float mean, double eps) {
    double sum;
    ROW_SUM(n, sum, vec_square(LOAD(t, rows_in(t, x, block), mean) - mean));
    return (float)(1 / sqrt(sum / (double)n + eps));
}

INLINE void normalise(tri_type t, const struct shape *s, const void *x, void *y,
                      const float *gamma, const float *beta, float mean, float rstd) {
    if (s->inner == 1)
        EACH(s->length, STORE(t, y, vec_fma((LOAD(t, x, 0) - mean) * rstd, LOAD(TRI_F32, gamma, 0),
                                            LOAD(TRI_F32, beta, 0))));
    else
        for (int64_t c = 0; c < s->channels; c++) {
            const void *from = rows_in(t, x, c * s->inner);
            void *to = rows_out(t, y, c * s->inner);
            vec shift = vec_set(beta[c]), scale = vec_set(gamma[c]);
            EACH(s->inner, STORE(t, to, vec_fma((LOAD(t, from, 0) - mean) * rstd, scale, shift)));
        }
}

INLINE void forward_typed(tri_type t, const tri_call *c, const struct shape *s) {
    double eps = tri_attr_float(c->node, "eps");
    struct cpu_range range = cpu_part(c, s->parts, s->runs);
    for (int64_t r = range.begin; r < range.end; r++) {
        int64_t first = r % s->cycle * s->channels;
        const void *x = rows_in(t, c->in[0], r * s->length);
        float mean = mean_of(t, x, s->length), rstd = rstd_of(t, x, s->length, mean, eps);
        normalise(t, s, x, rows_out(t, c->out[0], r * s->length), (const float *)c->in[1] + first,
                  (const float *)c->in[2] + first, mean, rstd);
        ((float *)c->out[1])[r] = mean;
        ((float *)c->out[2])[r] = rstd;
    }
}

static void forward(const tri_call *c) {
    struct shape s = shape_forward(c->node);
    BY_TYPE(s.type, forward_typed, c, &s);
}

/* ---- backward ---- */

/* With g = dy gamma: dx = rstd (g - p - (x - mean) q). */
struct run {
    const void *dy, *x;
    void *dx;
    float mean, rstd, p, q;
};

/* Derivatives by gamma and beta, summed over the runs of a part: over AT_ONCE_SUMMED runs first,
 * then in `total`, so that many runs lose few digits. Each array holds those of gamma, then those
 * of beta. */
struct affine_sums {
    float *part, *total;
    int64_t affines, runs;
};

#define AT_ONCE_SUMMED 64
#define TOGETHER 4 /* runs processed together, so that the sums are loaded once */

static struct affine_sums sums_begin(const tri_call *c, const struct shape *s) {
    size_t bytes = (size_t)s->affines * 2 * sizeof(float);
    struct affine_sums a = {c->scratch, (float *)c->shared + c->part * s->affines * 2, s->affines,
                            0};
    memset(a.part, 0, bytes);
    memset(a.total, 0, bytes);
    return a;
}

static void sums_flush(struct affine_sums *a) {
    float *part = a->part, *total = a->total;
    EACH(a->affines * 2, {
        STORE(TRI_F32, total, LOAD(TRI_F32, total, 0) + LOAD(TRI_F32, part, 0));
        STORE(TRI_F32, part, vec_set(0));
    });
    a->runs = 0;
}

/* From the sums of g and of g (x - mean). */
static void set_means(struct run *r, double sum, double dot, int64_t length) {
    r->p = (float)(sum / (double)length);
    r->q = (float)(dot * (double)r->rstd * (double)r->rstd / (double)length);
}

/* For n runs of at most BLOCK elements with the same gamma. */
INLINE void sum_each(tri_type t, struct run *run, int n, int64_t begin, int64_t length,
                     const float *gamma, float *dgamma, float *dbeta, double sum[TOGETHER],
                     double dot[TOGETHER]) {
    vec s[TOGETHER][SUM_VECS] = {{{0}}}, d[TOGETHER][SUM_VECS] = {{{0}}};
    ROW(length, {
        vec w = LOAD(TRI_F32, gamma, 0), by_gamma = LOAD(TRI_F32, dgamma, 0);
        vec by_beta = LOAD(TRI_F32, dbeta, 0);
        for (int i = 0; i < n; i++) {
            vec dy = LOAD(t, rows_in(t, run[i].dy, begin), 0), g = dy * w;
            vec v = LOAD(t, rows_in(t, run[i].x, begin), run[i].mean) - run[i].mean;
            s[i][k] += g;
            d[i][k] = vec_fma(g, v, d[i][k]);
            by_beta += dy;
            by_gamma = vec_fma(dy, v * run[i].rstd, by_gamma);
        }
        STORE(TRI_F32, dgamma, by_gamma);
        STORE(TRI_F32, dbeta, by_beta);
    });
    for (int i = 0; i < n; i++) {
        sum[i] += (double)vec_total(s[i]);
        dot[i] += (double)vec_total(d[i]);
    }
}

INLINE vec derivative(const struct run *r, vec g, vec x) {
    return r->rstd * vec_fma(x - r->mean, vec_set(-r->q), g - r->p);
}

INLINE void backward_each(tri_type t, const struct shape *s, struct run *run, int n,
                          const float *gamma, struct affine_sums *a, int64_t first) {
    double sum[TOGETHER] = {0}, dot[TOGETHER] = {0};
    float *dgamma = a->part + first, *dbeta = dgamma + a->affines;
    for (int64_t b = 0; b < s->length; b += BLOCK)
        sum_each(t, run, n, b, s->length - b < BLOCK ? s->length - b : BLOCK, gamma + b,
                 dgamma + b, dbeta + b, sum, dot);
    for (int i = 0; i < n; i++) {
        set_means(&run[i], sum[i], dot[i], s->length);
        EACH(s->length, STORE(t, run[i].dx,
                              derivative(&run[i], LOAD(t, run[i].dy, 0) * LOAD(TRI_F32, gamma, 0),
                                         LOAD(t, run[i].x, 0))));
    }
}

INLINE void backward_channels(tri_type t, const struct shape *s, struct run *r,
                              const float *gamma, struct affine_sums *a, int64_t first) {
    double sum = 0, dot = 0, own, own_dot;
    for (int64_t c = 0; c < s->channels; c++) {
        const void *dy = rows_in(t, r->dy, c * s->inner), *x = rows_in(t, r->x, c * s->inner);
        ROW_SUM(s->inner, own, LOAD(t, rows_in(t, dy, block), 0));
        ROW_SUM(s->inner, own_dot, LOAD(t, rows_in(t, dy, block), 0) *
                (LOAD(t, rows_in(t, x, block), 0) - r->mean));
        sum += own * (double)gamma[c];
        dot += own_dot * (double)gamma[c];
        a->part[first + c] += (float)(own_dot * (double)r->rstd);
        a->part[a->affines + first + c] += (float)own;
    }
    set_means(r, sum, dot, s->length);
    for (int64_t c = 0; c < s->channels; c++) {
        const void *dy = rows_in(t, r->dy, c * s->inner), *x = rows_in(t, r->x, c * s->inner);
        void *dx = rows_out(t, r->dx, c * s->inner);
        EACH(s->inner, STORE(t, dx, derivative(r, LOAD(t, dy, 0) * gamma[c], LOAD(t, x, 0))));
    }
}

INLINE void backward_typed(tri_type t, const tri_call *c, const struct shape *s) {
    struct cpu_range range = cpu_part(c, s->parts, s->runs);
    struct affine_sums sums = sums_begin(c, s);
    for (int64_t r = range.begin; r < range.end;) {
        int64_t first = r % s->cycle * s->channels;
        int n = s->inner == 1 && s->cycle == 1 && range.end - r >= TOGETHER ? TOGETHER : 1;
        const float *gamma = (const float *)c->in[2] + first;
        struct run run[TOGETHER];
        for (int i = 0; i < n; i++)
            run[i] = (struct run){rows_in(t, c->in[0], (r + i) * s->length),
                                  rows_in(t, c->in[1], (r + i) * s->length),
                                  rows_out(t, c->out[0], (r + i) * s->length),
                                  ((const float *)c->in[3])[r + i],
                                  ((const float *)c->in[4])[r + i], 0, 0};
        if (s->inner > 1)
            backward_channels(t, s, run, gamma, &sums, first);
        else if (n == TOGETHER)
            backward_each(t, s, run, TOGETHER, gamma, &sums, first);
        else
            backward_each(t, s, run, 1, gamma, &sums, first);
        r += n;
        sums.runs += n;
        if (sums.runs >= AT_ONCE_SUMMED || r == range.end) sums_flush(&sums);
    }
}

/* The second round: adds the sums of the parts, for some of gamma and beta. */
static void add_up(const tri_call *c, const struct shape *s) {
    int64_t begin = s->affines * (c->part - s->parts) / s->then;
    int64_t end = s->affines * (c->part - s->parts + 1) / s->then;
    for (int which = 0; which < 2; which++) {
        const float *from = (const float *)c->shared + which * s->affines + begin;
        float *to = (float *)c->out[1 + which] + begin;
        EACH(end - begin, {
            vec sum = LOAD(TRI_F32, from, 0);
            for (int64_t p = 1; p < s->parts; p++)
                sum += LOAD(TRI_F32, from + p * s->affines * 2, 0);
            STORE(TRI_F32, to, sum);
        });
    }
}

static void backward(const tri_call *c) {
    struct shape s = shape_backward(c->node);
    if (c->part >= s.parts)
        add_up(c, &s);
    else
        BY_TYPE(s.type, backward_typed, c, &s);
}

/* ---- plan ---- */

/* A run's result is written after the run was read, element by element. */
static bool shares(const void *state, int out, int in) {
    (void)state;
    return out == 0 && in == 0;
}

static void plan(const tri_node *n, struct kernel *k) {
    k->parts = shape_forward(n).parts;
    k->shares = shares;
}

static void plan_dx(const tri_node *n, struct kernel *k) {
    struct shape s = shape_backward(n);
    k->parts = s.parts;
    k->then = s.then;
    k->shares = shares;
    k->scratch = (size_t)s.affines * 2 * sizeof(float);
    k->shared = (size_t)(s.affines * 2 * s.parts) * sizeof(float);
}

const struct dev_row FOR_ISA(cpu_norm)[] = {
    {.op = "layer_norm", .run = forward, .plan = plan},
    {.op = "layer_norm_dx", .run = backward, .plan = plan_dx},
    {.op = "group_norm", .run = forward, .plan = plan},
    {.op = "group_norm_dx", .run = backward, .plan = plan_dx},
    {0},
};
