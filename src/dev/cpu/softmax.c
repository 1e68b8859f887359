/* SPDX-License-Identifier: Apache-2.0
 * softmax and log_softmax along one axis, of [outer, length, inner]. */
#include "dev/cpu/isa.h"
#include "dev/cpu/softmax.h"

static void subtract(float *to, const float *from, int64_t n, float a, float b) {
    INDEPENDENT for (int64_t i = 0; i < n; i++) to[i] = from[i] - a - b;
}

/* ---- the axis is the innermost: rows ---- */

static void rows(const tri_call *c, const struct cpu_axis_view *v, bool log) {
    for (int64_t o = 0; o < v->outer; o++) {
        const float *x = (const float *)c->in[0] + o * v->length;
        float *y = (float *)c->out[0] + o * v->length;
        double sum;
        float max = softmax_row(x, log ? c->state : y, v->length, &sum);
        if (log)
            subtract(y, x, v->length, max, vmath_log((float)sum));
        else
            softmax_scale(y, y, v->length, (float)(1 / sum));
    }
}

/* ---- else: neighbours beside each other ---- */

#define CHUNK 256

/* n columns of `length` places, `inner` apart; sums run down the columns in double. */
static void columns(const float *x, float *y, int64_t length, int64_t inner, int64_t n,
                           bool log) {
    float max[CHUNK], scale[CHUNK];
    double sum[CHUNK];
    for (int64_t i = 0; i < n; i++) {
        max[i] = x[i];
        sum[i] = 0;
    }
    for (int64_t k = 1; k < length; k++)
        for (int64_t i = 0; i < n; i++) {
            float v = x[k * inner + i];
            max[i] = ((v > max[i]) | (v != v)) ? v : max[i];
        }
    for (int64_t k = 0; k < length; k++)
        for (int64_t i = 0; i < n; i++) sum[i] += (double)vmath_exp(x[k * inner + i] - max[i]);
    for (int64_t i = 0; i < n; i++) scale[i] = log ? vmath_log((float)sum[i]) : (float)(1 / sum[i]);
    for (int64_t k = 0; k < length; k++) {
        const float *from = x + k * inner;
        float *to = y + k * inner;
        if (log)
            INDEPENDENT for (int64_t i = 0; i < n; i++) to[i] = from[i] - max[i] - scale[i];
        else
            INDEPENDENT for (int64_t i = 0; i < n; i++)
                to[i] = vmath_exp(from[i] - max[i]) * scale[i];
    }
}

static void softmax_any(const tri_call *c, bool log) {
    struct cpu_axis_view v = cpu_axis_view(&cpu_in(c->node, 0)->shape, cpu_axis(c->node));
    if (v.inner == 1) {
        rows(c, &v, log);
        return;
    }
    for (int64_t o = 0; o < v.outer; o++)
        for (int64_t i = 0; i < v.inner; i += CHUNK) {
            int64_t at = o * v.length * v.inner + i;
            columns((const float *)c->in[0] + at, (float *)c->out[0] + at, v.length, v.inner,
                    v.inner - i < CHUNK ? v.inner - i : CHUNK, log);
        }
}

static void softmax(const tri_call *c) { softmax_any(c, false); }
static void log_softmax(const tri_call *c) { softmax_any(c, true); }

/* Room for the exponentials of one row, which are not the result. */
static tri_status prepare_log(const tri_node *n, void **state) {
    const tri_shape *x = &cpu_in(n, 0)->shape;
    return cpu_state(n, (size_t)cpu_axis_view(x, cpu_axis(n)).length * sizeof(float), state);
}

const struct dev_row FOR_ISA(cpu_softmax)[] = {
    {.op = "softmax", .run = softmax},
    {.op = "log_softmax", .run = log_softmax, .prepare = prepare_log, .release = free},
    {0},
};
