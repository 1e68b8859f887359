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

/* The elements of one channel in one group: a run in each of its samples. */
struct part {
    int64_t first, step, runs;
    size_t length;
    double count;
};

static struct part part_of(const struct sizes *z, int64_t group, int64_t channel) {
    int64_t begin = group * z->samples / z->groups, end = (group + 1) * z->samples / z->groups;
    int64_t step = z->channels * z->inner;
    return (struct part){begin * step + channel * z->inner, step, end - begin, (size_t)z->inner,
                         (double)((end - begin) * z->inner)};
}

/* ---- forward ---- */

CLONES static void moments(const struct part *p, const float *x, double *mean, double *var) {
    double shift = (double)x[p->first], m[2] = {0};
    for (int64_t r = 0; r < p->runs; r++)
        lanes_moments(x + p->first + r * p->step, p->length, shift, m);
    double d = m[0] / p->count;
    *mean = shift + d;
    *var = m[1] / p->count - d * d;
    if (*var < 0) *var = 0;
}

CLONES static void normalise(const struct part *p, const float *x, float *y, float mean,
                             float scale, float beta) {
    for (int64_t r = 0; r < p->runs; r++) {
        const float *from = x + p->first + r * p->step;
        float *to = y + p->first + r * p->step;
        INDEPENDENT for (size_t i = 0; i < p->length; i++) to[i] = (from[i] - mean) * scale + beta;
    }
}

static void batch_norm(const tri_call *c) {
    const float *x = c->in[0], *gamma = c->in[1], *beta = c->in[2];
    struct sizes z = sizes_of(cpu_in(c->node, 0), cpu_out(c->node, 1));
    bool training = tri_attr_int(c->node, "training");
    double eps = tri_attr_float(c->node, "eps");
    for (int64_t k = 0; k < z.groups; k++)
        for (int64_t ch = 0; ch < z.channels; ch++) {
            struct part p = part_of(&z, k, ch);
            double mean = (double)((const float *)c->in[3])[ch];
            double var = (double)((const float *)c->in[4])[ch], unbiased = var;
            if (training) {
                moments(&p, x, &mean, &var);
                unbiased = var * p.count / (p.count - 1);
            }
            double scale = (double)gamma[ch] / sqrt(var + eps);
            normalise(&p, x, c->out[0], (float)mean, (float)scale, beta[ch]);
            ((float *)c->out[1])[k * z.channels + ch] = (float)mean;
            ((float *)c->out[2])[k * z.channels + ch] = (float)var;
            ((float *)c->out[3])[k * z.channels + ch] = (float)unbiased;
        }
}

/* ---- backward ---- */

/* sum[0]: of dy; sum[1]: of dy (x - mean). */
CLONES static void sums(const struct part *p, const float *dy, const float *x, double mean,
                        double sum[2]) {
    for (int64_t r = 0; r < p->runs; r++) {
        int64_t at = p->first + r * p->step;
        lanes_dot(dy + at, x + at, p->length, mean, sum);
    }
}

/* dx = scale (dy - a - (x - mean) b) */
CLONES static void derive(const struct part *p, const float *dy, const float *x, float *dx,
                          float mean, float scale, float a, float b) {
    for (int64_t r = 0; r < p->runs; r++) {
        int64_t at = p->first + r * p->step;
        const float *d = dy + at, *v = x + at;
        float *to = dx + at;
        INDEPENDENT for (size_t i = 0; i < p->length; i++)
            to[i] = scale * (d[i] - a - (v[i] - mean) * b);
    }
}

static void batch_norm_dx(const tri_call *c) {
    const float *dy = c->in[0], *x = c->in[1], *gamma = c->in[2], *means = c->in[3],
                *vars = c->in[4];
    struct sizes z = sizes_of(cpu_in(c->node, 1), cpu_in(c->node, 3));
    bool training = tri_attr_int(c->node, "training");
    double eps = tri_attr_float(c->node, "eps");
    for (int64_t ch = 0; ch < z.channels; ch++) {
        double dgamma = 0, dbeta = 0;
        for (int64_t k = 0; k < z.groups; k++) {
            struct part p = part_of(&z, k, ch);
            float mean = means[k * z.channels + ch];
            double rstd = 1 / sqrt((double)vars[k * z.channels + ch] + eps), sum[2] = {0};
            sums(&p, dy, x, (double)mean, sum);
            dbeta += sum[0];
            dgamma += sum[1] * rstd;
            double a = training ? sum[0] / p.count : 0;
            double b = training ? sum[1] * rstd * rstd / p.count : 0;
            derive(&p, dy, x, c->out[0], mean, (float)((double)gamma[ch] * rstd), (float)a,
                   (float)b);
        }
        ((float *)c->out[1])[ch] = (float)dgamma;
        ((float *)c->out[2])[ch] = (float)dbeta;
    }
}

const struct dev_row cpu_batch_norm[] = {
    {"batch_norm", batch_norm, NULL, NULL, NULL},
    {"batch_norm_dx", batch_norm_dx, NULL, NULL, NULL},
    {0},
};
