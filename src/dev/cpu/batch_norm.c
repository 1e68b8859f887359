/* SPDX-License-Identifier: Apache-2.0
 * Batch norm: x is [n, c, inner]; the samples [k n / G, (k+1) n / G) of one channel share group k's
 * statistics. Sums are taken in double, of differences to the group's first element, so that a
 * large mean costs no accuracy. */
#include <math.h>

#include "dev/cpu/lanes.h"

struct sizes {
    int64_t samples, channels, inner, groups;
};

/* stats: a tensor [G, c]. */
static struct sizes sizes_of(const tri_spec *x, const tri_spec *stats) {
    const tri_shape *s = &x->shape;
    return (struct sizes){s->dim[0], s->dim[1], cpu_span(s, 2, s->rank), stats->shape.dim[0]};
}

#define WIDTH 128

/* Some channels in one group: a run of elements in each of its samples. With inner dimensions it is
 * one channel and the run is its elements; else the run is `width` channels of one element each. */
struct part {
    int64_t first, step, runs;
    size_t length;
    int width;
    double count; /* elements of a channel */
};

static struct part part_of(const struct sizes *z, int64_t group, int64_t channel) {
    int64_t begin = group * z->samples / z->groups, end = (group + 1) * z->samples / z->groups;
    int64_t step = z->channels * z->inner, left = z->channels - channel;
    int width = z->inner > 1 ? 1 : left < WIDTH ? (int)left : WIDTH;
    return (struct part){begin * step + channel * z->inner, step, end - begin,
                         (size_t)(z->inner * width), width,
                         (double)((end - begin) * z->inner)};
}

/* Numbers of the channels of a part. The center is the mean, rounded. */
struct numbers {
    double mean[WIDTH], var[WIDTH], sum[WIDTH], dot[WIDTH];
    float center[WIDTH], scale[WIDTH], a[WIDTH], b[WIDTH];
};

/* The loops over a part:
 * moments    mean and var of x
 * normalise  y = (x - center) scale + a
 * sums       sum of dy, dot of dy (x - center)
 * derive     dx = scale (dy - a - (x - center) b) */
struct loops {
    void (*moments)(const struct part *p, const float *x, struct numbers *n);
    void (*normalise)(const struct part *p, const float *x, float *y, const struct numbers *n);
    void (*sums)(const struct part *p, const float *dy, const float *x, struct numbers *n);
    void (*derive)(const struct part *p, const float *dy, const float *x, float *dx,
                   const struct numbers *n);
};

/* What `count` differences to `shift`, and their squares, add up to. */
INLINE void finish_moments(double shift, double sum, double squares, double count, double *mean,
                           double *var) {
    double d = sum / count, v = squares / count - d * d;
    *mean = shift + d;
    *var = v < 0 ? 0 : v;
}

/* ---- one channel ---- */

CLONES static void moments_run(const struct part *p, const float *x, struct numbers *n) {
    double shift = (double)x[p->first], m[2] = {0};
    for (int64_t r = 0; r < p->runs; r++)
        lanes_moments(x + p->first + r * p->step, p->length, shift, m);
    finish_moments(shift, m[0], m[1], p->count, n->mean, n->var);
}

CLONES static void normalise_run(const struct part *p, const float *x, float *y,
                                 const struct numbers *n) {
    float center = n->center[0], scale = n->scale[0], shift = n->a[0];
    for (int64_t r = 0; r < p->runs; r++) {
        const float *from = x + p->first + r * p->step;
        float *to = y + p->first + r * p->step;
        INDEPENDENT for (size_t i = 0; i < p->length; i++)
            to[i] = (from[i] - center) * scale + shift;
    }
}

CLONES static void sums_run(const struct part *p, const float *dy, const float *x,
                            struct numbers *n) {
    double sum[2] = {0};
    for (int64_t r = 0; r < p->runs; r++) {
        int64_t at = p->first + r * p->step;
        lanes_dot(dy + at, x + at, p->length, (double)n->center[0], sum);
    }
    n->sum[0] = sum[0];
    n->dot[0] = sum[1];
}

CLONES static void derive_run(const struct part *p, const float *dy, const float *x, float *dx,
                              const struct numbers *n) {
    float center = n->center[0], scale = n->scale[0], a = n->a[0], b = n->b[0];
    for (int64_t r = 0; r < p->runs; r++) {
        int64_t at = p->first + r * p->step;
        const float *d = dy + at, *v = x + at;
        float *to = dx + at;
        INDEPENDENT for (size_t i = 0; i < p->length; i++)
            to[i] = scale * (d[i] - a - (v[i] - center) * b);
    }
}

static const struct loops run_loops = {moments_run, normalise_run, sums_run, derive_run};

/* ---- several channels of one element a sample: down the columns of a matrix ---- */

CLONES static void moments_columns(const struct part *p, const float *x, struct numbers *n) {
    const float *top = x + p->first;
    memset(n->sum, 0, sizeof n->sum);
    memset(n->dot, 0, sizeof n->dot);
    for (int64_t r = 0; r < p->runs; r++)
        for (int i = 0; i < p->width; i++) {
            double d = (double)top[r * p->step + i] - (double)top[i];
            n->sum[i] += d;
            n->dot[i] += d * d;
        }
    for (int i = 0; i < p->width; i++)
        finish_moments((double)top[i], n->sum[i], n->dot[i], p->count, &n->mean[i], &n->var[i]);
}

CLONES static void normalise_columns(const struct part *p, const float *x, float *y,
                                     const struct numbers *n) {
    for (int64_t r = 0; r < p->runs; r++) {
        const float *from = x + p->first + r * p->step;
        float *to = y + p->first + r * p->step;
        INDEPENDENT for (int i = 0; i < p->width; i++)
            to[i] = (from[i] - n->center[i]) * n->scale[i] + n->a[i];
    }
}

CLONES static void sums_columns(const struct part *p, const float *dy, const float *x,
                                struct numbers *n) {
    memset(n->sum, 0, sizeof n->sum);
    memset(n->dot, 0, sizeof n->dot);
    for (int64_t r = 0; r < p->runs; r++) {
        const float *d = dy + p->first + r * p->step, *v = x + p->first + r * p->step;
        for (int i = 0; i < p->width; i++) {
            n->sum[i] += (double)d[i];
            n->dot[i] += (double)d[i] * ((double)v[i] - (double)n->center[i]);
        }
    }
}

CLONES static void derive_columns(const struct part *p, const float *dy, const float *x, float *dx,
                                  const struct numbers *n) {
    for (int64_t r = 0; r < p->runs; r++) {
        int64_t at = p->first + r * p->step;
        const float *d = dy + at, *v = x + at;
        float *to = dx + at;
        INDEPENDENT for (int i = 0; i < p->width; i++)
            to[i] = n->scale[i] * (d[i] - n->a[i] - (v[i] - n->center[i]) * n->b[i]);
    }
}

static const struct loops column_loops = {moments_columns, normalise_columns, sums_columns,
                                          derive_columns};

/* ---- kernels ---- */

static const struct loops *loops_of(const struct sizes *z) {
    return z->inner > 1 ? &run_loops : &column_loops;
}

static void forward(const tri_call *c, const struct sizes *z, int64_t group, int64_t channel,
                    const struct part *p) {
    const float *gamma = (const float *)c->in[1] + channel;
    const float *beta = (const float *)c->in[2] + channel;
    const float *mean = (const float *)c->in[3] + channel, *var = (const float *)c->in[4] + channel;
    bool training = tri_attr_int(c->node, "training");
    double eps = tri_attr_float(c->node, "eps");
    double unbias = training ? p->count / (p->count - 1) : 1;
    struct numbers n;
    for (int i = 0; !training && i < p->width; i++) {
        n.mean[i] = (double)mean[i];
        n.var[i] = (double)var[i];
    }
    if (training) loops_of(z)->moments(p, c->in[0], &n);
    int64_t row = group * z->channels + channel;
    for (int i = 0; i < p->width; i++) {
        n.center[i] = (float)n.mean[i];
        double scale = (double)gamma[i] / sqrt(n.var[i] + eps);
        n.scale[i] = (float)scale;
        n.a[i] = (float)((double)beta[i] + ((double)n.center[i] - n.mean[i]) * scale);
        ((float *)c->out[1])[row + i] = n.center[i];
        ((float *)c->out[2])[row + i] = (float)n.var[i];
        ((float *)c->out[3])[row + i] = (float)(n.var[i] * unbias);
    }
    loops_of(z)->normalise(p, c->in[0], c->out[0], &n);
}

static void batch_norm(const tri_call *c) {
    struct sizes z = sizes_of(cpu_in(c->node, 0), cpu_out(c->node, 1));
    for (int64_t k = 0; k < z.groups; k++)
        for (int64_t channel = 0; channel < z.channels;) {
            struct part p = part_of(&z, k, channel);
            forward(c, &z, k, channel, &p);
            channel += p.width;
        }
}

/* Adds to dgamma and dbeta of the part's channels. */
static void backward(const tri_call *c, const struct sizes *z, int64_t group, int64_t channel,
                     const struct part *p, double *dgamma, double *dbeta) {
    int64_t row = group * z->channels + channel;
    const float *gamma = (const float *)c->in[2] + channel, *mean = (const float *)c->in[3] + row,
                *var = (const float *)c->in[4] + row;
    bool training = tri_attr_int(c->node, "training");
    double eps = tri_attr_float(c->node, "eps");
    struct numbers n;
    memcpy(n.center, mean, (size_t)p->width * sizeof *mean);
    loops_of(z)->sums(p, c->in[0], c->in[1], &n);
    for (int i = 0; i < p->width; i++) {
        double rstd = 1 / sqrt((double)var[i] + eps);
        dbeta[i] += n.sum[i];
        dgamma[i] += n.dot[i] * rstd;
        n.scale[i] = (float)((double)gamma[i] * rstd);
        n.a[i] = training ? (float)(n.sum[i] / p->count) : 0;
        n.b[i] = training ? (float)(n.dot[i] * rstd * rstd / p->count) : 0;
    }
    loops_of(z)->derive(p, c->in[0], c->in[1], c->out[0], &n);
}

static void batch_norm_dx(const tri_call *c) {
    struct sizes z = sizes_of(cpu_in(c->node, 1), cpu_in(c->node, 3));
    for (int64_t channel = 0; channel < z.channels;) {
        double dgamma[WIDTH] = {0}, dbeta[WIDTH] = {0};
        int width = part_of(&z, 0, channel).width;
        for (int64_t k = 0; k < z.groups; k++) {
            struct part p = part_of(&z, k, channel);
            backward(c, &z, k, channel, &p, dgamma, dbeta);
        }
        for (int i = 0; i < width; i++) {
            ((float *)c->out[1])[channel + i] = (float)dgamma[i];
            ((float *)c->out[2])[channel + i] = (float)dbeta[i];
        }
        channel += width;
    }
}

const struct dev_row cpu_batch_norm[] = {
    {.op = "batch_norm", .run = batch_norm},
    {.op = "batch_norm_dx", .run = batch_norm_dx},
    {0},
};
