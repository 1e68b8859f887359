/* SPDX-License-Identifier: Apache-2.0
 * Layer and group norm. Both normalise runs of contiguous elements, each with its own mean and
 * rstd. Sums are taken in double, of differences to the run's first element. */
#include <math.h>

#include "dev/cpu/isa.h"
#include "dev/cpu/lanes.h"

/* A run is `channels` channels of `inner` elements each; every channel has its gamma and beta. Run
 * r has those from r % cycle * channels on. In layer norm a channel is one element. */
struct state {
    int64_t runs, channels, inner, cycle;
    size_t length;
    double *dgamma, *dbeta; /* sums, for the derivative */
    int64_t affines;
};

/* Of one run: its elements, and its channels' gamma and beta or their derivatives. */
struct forward {
    const float *x, *gamma, *beta;
    float *y;
};
struct backward {
    const float *dy, *x, *gamma;
    float *dx;
    double *dgamma, *dbeta;
};

/* ---- forward ---- */

static void moments(const float *x, size_t n, double *mean, double *var) {
    double m[2] = {0};
    lanes_moments(x, n, (double)x[0], m);
    double d = m[0] / (double)n;
    *mean = (double)x[0] + d;
    *var = m[1] / (double)n - d * d;
    if (*var < 0) *var = 0;
}

static void normalise_each(const struct state *s, struct forward f, float mean, float rstd) {
    const float *x = f.x, *gamma = f.gamma, *beta = f.beta;
    float *y = f.y;
    INDEPENDENT for (size_t i = 0; i < s->length; i++)
        y[i] = (x[i] - mean) * rstd * gamma[i] + beta[i];
}

static void normalise_channels(const struct state *s, struct forward f, float mean,
                                      float rstd) {
    for (int64_t ch = 0; ch < s->channels; ch++) {
        const float *x = f.x + ch * s->inner;
        float *y = f.y + ch * s->inner, scale = rstd * f.gamma[ch], beta = f.beta[ch];
        INDEPENDENT for (int64_t i = 0; i < s->inner; i++) y[i] = (x[i] - mean) * scale + beta;
    }
}

static void forward(const tri_call *c) {
    const struct state *s = c->state;
    double eps = tri_attr_float(c->node, "eps");
    for (int64_t r = 0; r < s->runs; r++) {
        int64_t at = r * (int64_t)s->length, channel = r % s->cycle * s->channels;
        struct forward f = {(const float *)c->in[0] + at, (const float *)c->in[1] + channel,
                            (const float *)c->in[2] + channel, (float *)c->out[0] + at};
        double mean, var;
        moments(f.x, s->length, &mean, &var);
        float rstd = (float)(1 / sqrt(var + eps));
        (s->inner == 1 ? normalise_each : normalise_channels)(s, f, (float)mean, rstd);
        ((float *)c->out[1])[r] = (float)mean;
        ((float *)c->out[2])[r] = rstd;
    }
}

/* ---- backward ---- */

/* With g = dy gamma: sum[0] of g, sum[1] of g (x - mean); adds to dgamma and dbeta. */
static void sums_each(const struct state *s, struct backward b, double mean, double rstd,
                             double sum[2]) {
    lanes8 p[2] = {{0}}, q[2] = {{0}};
    double d, g;
#define EIGHT(k)                                                                            \
    do {                                                                                    \
        lanes8 dy = LOAD8(b.dy + i), gx = dy * LOAD8(b.gamma + i), v = LOAD8(b.x + i) - mean; \
        p[k] += gx;                                                                         \
        q[k] += gx * v;                                                                     \
        *(lanes8u *)(b.dbeta + i) += dy;                                                    \
        *(lanes8u *)(b.dgamma + i) += dy * v * rstd;                                        \
    } while (0)
#define ONE                                                                                 \
    (d = (double)b.dy[i], g = d * (double)b.gamma[i], sum[0] += g,                          \
     sum[1] += g * ((double)b.x[i] - mean), b.dbeta[i] += d,                                \
     b.dgamma[i] += d * ((double)b.x[i] - mean) * rstd)
    LANES(s->length, EIGHT,
          (p[0] += p[1], q[0] += q[1], sum[0] = TOTAL8(p[0]), sum[1] = TOTAL8(q[0])), ONE);
#undef EIGHT
#undef ONE
}

static void sums_channels(const struct state *s, struct backward b, double mean,
                                 double rstd, double sum[2]) {
    for (int64_t ch = 0; ch < s->channels; ch++) {
        double own[2] = {0};
        lanes_dot(b.dy + ch * s->inner, b.x + ch * s->inner, (size_t)s->inner, mean, own);
        sum[0] += own[0] * (double)b.gamma[ch];
        sum[1] += own[1] * (double)b.gamma[ch];
        b.dbeta[ch] += own[0];
        b.dgamma[ch] += own[1] * rstd;
    }
}

/* dx = rstd (dy gamma - p - (x - mean) q) */
static void derive_each(const struct state *s, struct backward b, float mean, float rstd,
                               float p, float q) {
    const float *dy = b.dy, *x = b.x, *gamma = b.gamma;
    float *dx = b.dx;
    INDEPENDENT for (size_t i = 0; i < s->length; i++)
        dx[i] = rstd * (dy[i] * gamma[i] - p - (x[i] - mean) * q);
}

static void derive_channels(const struct state *s, struct backward b, float mean,
                                   float rstd, float p, float q) {
    for (int64_t ch = 0; ch < s->channels; ch++) {
        const float *dy = b.dy + ch * s->inner, *x = b.x + ch * s->inner;
        float *dx = b.dx + ch * s->inner, gamma = b.gamma[ch];
        INDEPENDENT for (int64_t i = 0; i < s->inner; i++)
            dx[i] = rstd * (dy[i] * gamma - p - (x[i] - mean) * q);
    }
}

static void backward(const tri_call *c) {
    const struct state *s = c->state;
    bool each = s->inner == 1;
    memset(s->dgamma, 0, (size_t)s->affines * 2 * sizeof *s->dgamma);
    for (int64_t r = 0; r < s->runs; r++) {
        int64_t at = r * (int64_t)s->length, channel = r % s->cycle * s->channels;
        struct backward b = {(const float *)c->in[0] + at, (const float *)c->in[1] + at,
                             (const float *)c->in[2] + channel, (float *)c->out[0] + at,
                             s->dgamma + channel, s->dbeta + channel};
        float mean = ((const float *)c->in[3])[r], rstd = ((const float *)c->in[4])[r];
        double sum[2] = {0}, n = (double)s->length;
        (each ? sums_each : sums_channels)(s, b, (double)mean, (double)rstd, sum);
        (each ? derive_each : derive_channels)(
            s, b, mean, rstd, (float)(sum[0] / n),
            (float)(sum[1] * (double)rstd * (double)rstd / n));
    }
    for (int64_t i = 0; i < s->affines; i++) {
        ((float *)c->out[1])[i] = (float)s->dgamma[i];
        ((float *)c->out[2])[i] = (float)s->dbeta[i];
    }
}

/* ---- preparation ---- */

static void release(void *state) {
    free(((struct state *)state)->dgamma);
    free(state);
}

/* x, gamma and the mean. */
static tri_status prepare_for(const tri_node *n, const tri_spec *x, const tri_spec *gamma,
                              const tri_spec *mean, void **state) {
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    struct state *s = *state;
    s->affines = tri_shape_count(&gamma->shape);
    s->runs = tri_shape_count(&mean->shape);
    s->length = (size_t)(tri_shape_count(&x->shape) / s->runs);
    s->cycle = node_attr(n, "axes") ? 1 : tri_attr_int(n, "groups");
    s->channels = s->affines / s->cycle;
    s->inner = (int64_t)s->length / s->channels;
    s->dgamma = malloc((size_t)s->affines * 2 * sizeof *s->dgamma);
    s->dbeta = s->dgamma + s->affines;
    if (s->dgamma) return TRI_OK;
    free(s);
    return base_no_memory(n->name);
}

static tri_status prepare(const tri_node *n, void **state) {
    return prepare_for(n, cpu_in(n, 0), cpu_in(n, 1), cpu_out(n, 1), state);
}

static tri_status prepare_dx(const tri_node *n, void **state) {
    return prepare_for(n, cpu_in(n, 1), cpu_in(n, 2), cpu_in(n, 3), state);
}

const struct dev_row FOR_ISA(cpu_norm)[] = {
    {.op = "layer_norm", .run = forward, .prepare = prepare, .release = release},
    {.op = "layer_norm_dx", .run = backward, .prepare = prepare_dx, .release = release},
    {.op = "group_norm", .run = forward, .prepare = prepare, .release = release},
    {.op = "group_norm_dx", .run = backward, .prepare = prepare_dx, .release = release},
    {0},
};
