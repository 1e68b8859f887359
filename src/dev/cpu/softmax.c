/* SPDX-License-Identifier: Apache-2.0
 * softmax and log_softmax along one axis, of [outer, length, inner]. */
#include "dev/cpu/softmax.h"

/* ---- the axis is the innermost: rows ---- */

/* The exponentials wait for their sum: in the result if that is f32, else in scratch. */
INLINE void softmax_row(tri_type t, const void *x, void *y, int64_t n, float *scratch) {
    float *e = t == TRI_F32 ? y : scratch;
    double sum = softmax_sum(t, x, e, n, rows_max(t, x, n));
    float scale = (float)(1 / sum);
    EACH(n, STORE(t, y, LOAD(TRI_F32, e, 0) * scale));
}

INLINE void log_softmax_row(tri_type t, const void *x, void *y, int64_t n) {
    float max = rows_max(t, x, n);
    float log = vmath_log((float)softmax_sum(t, x, NULL, n, max));
    EACH(n, STORE(t, y, LOAD(t, x, 0) - max - log));
}

/* ---- any other axis: adjacent columns ---- */

#define RUN 64 /* consecutive places that are added */

/* SUM_WIDTH columns of n places, `step` elements apart. */
INLINE void columns(tri_type t, const void *x, void *y, int64_t n, int64_t step, int64_t width,
                    bool log) {
    vec max[SUM_VECS], part[SUM_VECS] = {{0}}, sum[SUM_VECS] = {{0}};
    for (int k = 0; k < SUM_VECS; k++) max[k] = vec_set(-__builtin_inff());
    for (int64_t i = 0; i < n; i++)
        ROW(width, max[k] = vec_max(LOAD(t, rows_in(t, x, i * step), 0), max[k]));
    for (int64_t i = 0; i < n; i++) {
        ROW(width, part[k] += vec_exp_negative(LOAD(t, rows_in(t, x, i * step), 0) - max[k]));
        if (i % RUN != RUN - 1 && i != n - 1) continue;
        for (int k = 0; k < SUM_VECS; k++) {
            sum[k] += part[k];
            part[k] = vec_set(0);
        }
    }
    for (int k = 0; k < SUM_VECS; k++) sum[k] = log ? vec_log(sum[k]) : 1.0f / sum[k];
    for (int64_t i = 0; i < n; i++)
        ROW(width, {
            vec z = LOAD(t, rows_in(t, x, i * step), 0) - max[k];
            STORE(t, rows_out(t, y, i * step), log ? z - sum[k] : vec_exp_negative(z) * sum[k]);
        });
}

/* ---- kernels ---- */

static struct cpu_axis_view view_of(const tri_node *n) {
    return cpu_axis_view(&cpu_in(n, 0)->shape, cpu_axis(n));
}

/* The number of independent pieces: rows, or SUM_WIDTH columns. */
static int64_t pieces(const struct cpu_axis_view *v) {
    return v->inner == 1 ? v->outer : v->outer * ((v->inner + SUM_WIDTH - 1) / SUM_WIDTH);
}

static int64_t parts_of(const struct cpu_axis_view *v) {
    return cpu_parts(pieces(v), v->length * (v->inner == 1 ? 1 : SUM_WIDTH));
}

INLINE void piece(tri_type t, const tri_call *c, const struct cpu_axis_view *v, int64_t i,
                  bool log) {
    int64_t wide = (v->inner + SUM_WIDTH - 1) / SUM_WIDTH, column = i % wide * SUM_WIDTH;
    int64_t left = v->inner - column, width = left < SUM_WIDTH ? left : SUM_WIDTH;
    int64_t first = v->inner == 1 ? i * v->length : i / wide * v->length * v->inner + column;
    const void *x = rows_in(t, c->in[0], first);
    void *y = rows_out(t, c->out[0], first);
    if (v->inner > 1)
        columns(t, x, y, v->length, v->inner, width, log);
    else if (log)
        log_softmax_row(t, x, y, v->length);
    else
        softmax_row(t, x, y, v->length, c->scratch);
}

INLINE void pieces_of_type(tri_type t, const tri_call *c, bool log) {
    struct cpu_axis_view v = view_of(c->node);
    struct cpu_range r = cpu_part(c, parts_of(&v), pieces(&v));
    for (int64_t i = r.begin; i < r.end; i++) piece(t, c, &v, i, log);
}

static void softmax(const tri_call *c) {
    BY_TYPE(cpu_in(c->node, 0)->type, pieces_of_type, c, false);
}
static void log_softmax(const tri_call *c) {
    BY_TYPE(cpu_in(c->node, 0)->type, pieces_of_type, c, true);
}

static bool shares(const void *state, int out, int in) {
    (void)state, (void)out, (void)in;
    return true;
}

static void plan(const tri_node *n, struct kernel *k) {
    struct cpu_axis_view v = view_of(n);
    k->parts = parts_of(&v);
    k->shares = shares;
    if (node_is(n, "softmax") && cpu_in(n, 0)->type != TRI_F32 && v.inner == 1)
        k->scratch = (size_t)v.length * sizeof(float);
}

const struct dev_row FOR_ISA(cpu_softmax)[] = {
    {.op = "softmax", .run = softmax, .plan = plan},
    {.op = "log_softmax", .run = log_softmax, .plan = plan},
    {0},
};
