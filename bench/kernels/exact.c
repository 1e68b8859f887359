/* SPDX-License-Identifier: Apache-2.0
 * Results in double, of some elements only: of a grid of rows and columns of a product, of places
 * all over a convolution's output. */
#include <math.h>
#include <stdlib.h>

#include "kernels.h"

#define LINES 256       /* rows, and columns, of a product */
#define PLACES 16384    /* of a convolution, */
#define LEAST_PLACES 64 /* or fewer, but no fewer than these, */
#define WORK 5e7        /* for as many multiply-adds */

static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- products ---- */

/* k elements, `step` apart, in double. */
static void gather(const float *from, int64_t step, int64_t k, double *to) {
    for (int64_t i = 0; i < k; i++) to[i] = from[i * step];
}

static double dot(const double *a, const double *b, int64_t k) {
    double sum[4] = {0};
    for (int64_t i = 0; i < k; i++) sum[i & 3] += a[i] * b[i];
    return sum[0] + sum[1] + (sum[2] + sum[3]);
}

static void exact_product(const struct task *t, float *const in[2], struct exact *e) {
    const int64_t m = t->product.m, n = t->product.n, k = t->product.k;
    const int64_t a_step = t->product.trans_a ? m : 1, b_step = t->product.trans_b ? 1 : n;
    const int64_t all = t->product.batch * m;
    const int64_t rows = at_most(all, LINES), columns = at_most(n, LINES);
    double *a = take((size_t)k * sizeof *a), *b = take((size_t)(columns * k) * sizeof *b);
    int64_t matrix = -1;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t row = r * all / rows, i = row % m;
        const float *left = in[0] + row / m * m * k, *right = in[1] + row / m * n * k;
        gather(left + i * (t->product.trans_a ? 1 : k), a_step, k, a);
        for (int64_t c = 0; matrix != row / m && c < columns; c++)
            gather(right + c * n / columns * (t->product.trans_b ? k : 1), b_step, k, b + c * k);
        matrix = row / m;
        for (int64_t c = 0; c < columns; c++) {
            e->at[e->n] = row * n + c * n / columns;
            e->value[e->n++] = dot(a, b + c * k, k);
        }
    }
    free(a);
    free(b);
}

/* ---- convolutions ---- */

/* The place along an axis that tap i of output r reads. */
static int64_t read_at(const struct conv *v, int64_t r, int64_t i) {
    return r * v->stride - v->pad + i;
}

static double exact_y(const struct conv *v, const float *x, const float *w, int64_t at) {
    const int64_t q = at % v->oh, r = at / v->oh % v->oh, o = at / (v->oh * v->oh) % v->o;
    const int64_t sample = at / (v->oh * v->oh * v->o), c = v->c / v->groups;
    const float *from = x + (sample * v->c + o / (v->o / v->groups) * c) * v->h * v->h;
    double sum = 0;
    for (int64_t i = 0; i < c * v->size * v->size; i++) {
        const int64_t row = read_at(v, r, i / v->size % v->size);
        const int64_t column = read_at(v, q, i % v->size);
        if (row < 0 || row >= v->h || column < 0 || column >= v->h) continue;
        sum += (double)from[(i / v->size / v->size * v->h + row) * v->h + column] *
               w[o * c * v->size * v->size + i];
    }
    return sum;
}

static double exact_dx(const struct conv *v, const float *dy, const float *w, int64_t at) {
    const int64_t column = at % v->h, row = at / v->h % v->h, c = at / (v->h * v->h) % v->c;
    const int64_t sample = at / (v->h * v->h * v->c), outputs = v->o / v->groups;
    const int64_t inputs = v->c / v->groups, first = c / inputs * outputs;
    double sum = 0;
    for (int64_t i = 0; i < outputs * v->size * v->size; i++) {
        const int64_t o = first + i / v->size / v->size;
        const int64_t down = row + v->pad - i / v->size % v->size;
        const int64_t across = column + v->pad - i % v->size;
        const int64_t r = down / v->stride, q = across / v->stride;
        if (down < 0 || across < 0 || down % v->stride || across % v->stride || r >= v->oh ||
            q >= v->oh)
            continue;
        sum += (double)dy[((sample * v->o + o) * v->oh + r) * v->oh + q] *
               w[(o * inputs + c % inputs) * v->size * v->size + i % (v->size * v->size)];
    }
    return sum;
}

static double exact_dw(const struct conv *v, const float *dy, const float *x, int64_t at) {
    const int64_t j = at % v->size, i = at / v->size % v->size, inputs = v->c / v->groups;
    const int64_t o = at / (v->size * v->size * inputs);
    const int64_t c = o / (v->o / v->groups) * inputs + at / (v->size * v->size) % inputs;
    double sum = 0;
    for (int64_t line = 0; line < v->count * v->oh; line++) {
        const int64_t sample = line / v->oh, r = line % v->oh, row = read_at(v, r, i);
        if (row < 0 || row >= v->h) continue;
        const float *left = dy + ((sample * v->o + o) * v->oh + r) * v->oh;
        const float *right = x + ((sample * v->c + c) * v->h + row) * v->h;
        for (int64_t q = 0; q < v->oh; q++) {
            const int64_t column = read_at(v, q, j);
            if (column >= 0 && column < v->h) sum += (double)left[q] * right[column];
        }
    }
    return sum;
}

static void exact_conv(const struct task *t, float *const in[2], struct exact *e) {
    double (*const element[])(const struct conv *v, const float *a, const float *b, int64_t at) = {
        exact_y, exact_dx, exact_dw};
    const int64_t all = tri_shape_count(&t->out);
    const int64_t affordable = (int64_t)(2 * WORK * (double)all / t->flops);
    int64_t n = at_most(affordable > LEAST_PLACES ? affordable : LEAST_PLACES, PLACES);
    n = at_most(n, all);
    for (; e->n < n; e->n++) {
        e->at[e->n] = e->n * all / n;
        e->value[e->n] = element[t->direction](&t->conv, in[0], in[1], e->at[e->n]);
    }
}

/* ---- both ---- */

void exact_make(const struct task *t, float *const in[2], struct exact *e) {
    const size_t most = LINES * LINES > PLACES ? LINES * LINES : PLACES;
    *e = (struct exact){.at = take(most * sizeof *e->at), .value = take(most * sizeof *e->value)};
    (t->convolves ? exact_conv : exact_product)(t, in, e);
}

void exact_errors(const struct exact *e, const float *out, double *rms, double *worst) {
    double all = 0, error = 0;
    *worst = 0;
    for (int64_t i = 0; i < e->n; i++) {
        const double d = fabs(out[e->at[i]] - e->value[i]);
        all += e->value[i] * e->value[i];
        error += d * d;
        if (d > *worst) *worst = d;
    }
    *rms = sqrt(error / all);
    *worst /= sqrt(all / (double)e->n);
}

void exact_free(struct exact *e) {
    free(e->at);
    free(e->value);
}
