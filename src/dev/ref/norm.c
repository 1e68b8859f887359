/* SPDX-License-Identifier: Apache-2.0
 * The three normalisations as one: every element belongs to a statistic (mean and variance over its
 * elements) and to an element of gamma and beta. They differ in which. */
#include <math.h>

#include "dev/ref/sums.h"

struct norm {
    const tri_call *c;
    int x;                            /* the index of input x */
    int64_t elements, stats, affines; /* their numbers */
    int64_t samples, channels, inner; /* of batch and group norm */
    int64_t (*stat)(const struct norm *m, int64_t i);
    int64_t (*affine)(const struct norm *m, int64_t i);
    double *count, *mean, *rstd, *a, *b; /* one per statistic */
    double *dgamma, *dbeta;              /* one per element of gamma */
};

static int64_t channel(const struct norm *m, int64_t i) { return i / m->inner % m->channels; }

/* Group k of G covers the samples [k n / G, (k + 1) n / G). */
static int64_t batch_stat(const struct norm *m, int64_t i) {
    int64_t groups = m->stats / m->channels, sample = i / m->inner / m->channels;
    return ((sample + 1) * groups - 1) / m->samples * m->channels + channel(m, i);
}

static int64_t group_stat(const struct norm *m, int64_t i) {
    int64_t groups = m->stats / m->samples, sample = i / m->inner / m->channels;
    return sample * groups + channel(m, i) / (m->channels / groups);
}

static int64_t layer_stat(const struct norm *m, int64_t i) { return i / m->affines; }
static int64_t layer_affine(const struct norm *m, int64_t i) { return i % m->affines; }

/* gamma is the input after x; the statistics are the outputs from 1 or, `backward`, inputs. */
static bool norm_open(struct norm *m, const tri_call *c, bool backward) {
    *m = (struct norm){.c = c, .x = backward ? 1 : 0, .inner = 1, .affine = channel};
    const tri_shape *x = &ref_in(c, m->x)->shape;
    m->elements = tri_shape_count(x);
    m->affines = tri_shape_count(&ref_in(c, m->x + 1)->shape);
    m->stats = tri_shape_count(backward ? &ref_in(c, 3)->shape : &ref_out(c, 1)->shape);
    if (node_attr(c->node, "axes")) {
        m->stat = layer_stat;
        m->affine = layer_affine;
    } else {
        m->stat = node_attr(c->node, "training") ? batch_stat : group_stat;
        m->samples = x->dim[0];
        m->channels = x->dim[1];
        m->inner = m->elements / m->samples / m->channels;
    }
    double *all = sums_new(c, 5 * m->stats + 2 * m->affines);
    if (!all) return false;
    double **part[] = {&m->count, &m->mean, &m->rstd, &m->a, &m->b};
    for (int k = 0; k < 5; k++) *part[k] = all + k * m->stats;
    m->dgamma = all + 5 * m->stats;
    m->dbeta = m->dgamma + m->affines;
    for (int64_t i = 0; i < m->elements; i++) m->count[m->stat(m, i)]++;
    return true;
}

static void norm_close(struct norm *m) { free(m->count); }

/* The mean, and the biased variance in m->a. */
static void moments(struct norm *m) {
    for (int64_t i = 0; i < m->elements; i++)
        m->mean[m->stat(m, i)] += ref_load(m->c, m->x, i);
    for (int64_t s = 0; s < m->stats; s++) m->mean[s] /= m->count[s];
    for (int64_t i = 0; i < m->elements; i++) {
        double d = ref_load(m->c, m->x, i) - m->mean[m->stat(m, i)];
        m->a[m->stat(m, i)] += d * d;
    }
    for (int64_t s = 0; s < m->stats; s++) m->a[s] /= m->count[s];
}

/* y from the mean and the variance in m->a; sets rstd. */
static void normalise(struct norm *m) {
    double eps = tri_attr_float(m->c->node, "eps");
    for (int64_t s = 0; s < m->stats; s++) m->rstd[s] = 1 / sqrt(m->a[s] + eps);
    for (int64_t i = 0; i < m->elements; i++) {
        int64_t s = m->stat(m, i), k = m->affine(m, i);
        double h = (ref_load(m->c, 0, i) - m->mean[s]) * m->rstd[s];
        ref_store(m->c, 0, i, h * ref_load(m->c, 1, k) + ref_load(m->c, 2, k));
    }
}

static void batch_norm(const tri_call *c) {
    struct norm m;
    bool training = tri_attr_int(c->node, "training");
    if (!norm_open(&m, c, false)) return;
    if (training) moments(&m);
    for (int64_t s = 0; !training && s < m.stats; s++) {
        m.mean[s] = ref_load(c, 3, s % m.channels);
        m.a[s] = ref_load(c, 4, s % m.channels);
    }
    normalise(&m);
    sums_store(c, 1, m.mean);
    sums_store(c, 2, m.a);
    for (int64_t s = 0; s < m.stats; s++)
        ref_store(c, 3, s, training ? m.a[s] * m.count[s] / (m.count[s] - 1) : m.a[s]);
    norm_close(&m);
}

static void other_norm(const tri_call *c) {
    struct norm m;
    if (!norm_open(&m, c, false)) return;
    moments(&m);
    normalise(&m);
    sums_store(c, 1, m.mean);
    sums_store(c, 2, m.rstd);
    norm_close(&m);
}

/* With h = (x - mean) rstd and g = dy gamma: a = sum(g), b = sum(g h), dgamma = sum(dy h), dbeta =
 * sum(dy), and dx = rstd (g - (a + h b) / count), or without statistics of x, rstd g. */
static void backward(struct norm *m, bool through_statistics) {
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < m->elements; i++) {
            int64_t s = m->stat(m, i), k = m->affine(m, i);
            double dy = ref_load(m->c, 0, i), g = dy * ref_load(m->c, 2, k);
            double h = (ref_load(m->c, 1, i) - m->mean[s]) * m->rstd[s];
            if (pass == 0) {
                m->a[s] += g;
                m->b[s] += g * h;
                m->dgamma[k] += dy * h;
                m->dbeta[k] += dy;
            } else {
                double through = through_statistics ? (m->a[s] + h * m->b[s]) / m->count[s] : 0;
                ref_store(m->c, 0, i, m->rstd[s] * (g - through));
            }
        }
    sums_store(m->c, 1, m->dgamma);
    sums_store(m->c, 2, m->dbeta);
}

static void norm_dx(const tri_call *c) {
    struct norm m;
    const tri_attr *training = node_attr(c->node, "training"), *eps = node_attr(c->node, "eps");
    if (!norm_open(&m, c, true)) return;
    for (int64_t s = 0; s < m.stats; s++) {
        double v = ref_load(c, 4, s);
        m.mean[s] = ref_load(c, 3, s);
        m.rstd[s] = eps ? 1 / sqrt(v + eps->f) : v; /* batch norm passes the variance */
    }
    backward(&m, !training || training->i);
    norm_close(&m);
}

const struct dev_row ref_norm[] = {
    {.op = "batch_norm", .run = batch_norm},    {.op = "batch_norm_dx", .run = norm_dx},
    {.op = "layer_norm", .run = other_norm},    {.op = "layer_norm_dx", .run = norm_dx},
    {.op = "group_norm", .run = other_norm},    {.op = "group_norm_dx", .run = norm_dx},
    {0},
};
