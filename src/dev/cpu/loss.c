/* SPDX-License-Identifier: Apache-2.0
 * Cross-entropy of logits [places, classes] with labels [places], and its derivative. The target is
 * 1 - s for the label, and s / classes for every class. */
#include "base/vmath.h"
#include "dev/cpu/isa.h"
#include "dev/cpu/lanes.h"
#include "dev/cpu/softmax.h"

/* The logits are input `logits` of the node, the labels the next one. */
struct view {
    int64_t places, classes;
    const float *x;
    int logits;
    float *e; /* room for one row */
};

static struct view view_of(const tri_call *c, int logits) {
    const tri_shape *x = &cpu_in(c->node, logits)->shape;
    int64_t classes = x->dim[x->rank - 1];
    return (struct view){tri_shape_count(x) / classes, classes, c->in[logits], logits, c->state};
}

/* -1 for a place to ignore, and after failing the step. */
static int64_t label_of(const tri_call *c, const struct view *v, int64_t place) {
    int64_t label = cpu_index(c, v->logits + 1, place);
    if (tri_attr_int(c->node, "ignore") && label == tri_attr_int(c->node, "ignore_index"))
        return -1;
    if (label >= 0 && label < v->classes) return label;
    tri_call_fail(c, "label %lld at element %lld is not below %lld", (long long)label,
                  (long long)place, (long long)v->classes);
    return -1;
}

static double sum_of(const float *x, int64_t n) { return lanes_sum(x, (size_t)n); }

/* With z = x - max: log(sum(exp z)) - (1 - s) z[label] - s mean(z). */
static void cross_entropy(const tri_call *c) {
    struct view v = view_of(c, 0);
    double smoothing = tri_attr_float(c->node, "smoothing"), sum;
    float *loss = c->out[0];
    for (int64_t p = 0; p < v.places; p++) {
        const float *x = v.x + p * v.classes;
        int64_t label = label_of(c, &v, p);
        loss[p] = 0;
        if (label < 0) continue;
        double max = (double)softmax_row(x, v.e, v.classes, &sum);
        double z = (double)vmath_log((float)sum) - (1 - smoothing) * ((double)x[label] - max);
        if (smoothing > 0) z -= smoothing * (sum_of(x, v.classes) / (double)v.classes - max);
        loss[p] = (float)z;
    }
}

static void subtract(float *x, int64_t n, float scale, float target) {
    INDEPENDENT for (int64_t i = 0; i < n; i++) x[i] = x[i] * scale - target;
}

/* dy (softmax - target) */
static void cross_entropy_dx(const tri_call *c) {
    struct view v = view_of(c, 1);
    double smoothing = tri_attr_float(c->node, "smoothing"), sum;
    for (int64_t p = 0; p < v.places; p++) {
        float *dx = (float *)c->out[0] + p * v.classes, dy = ((const float *)c->in[0])[p];
        int64_t label = label_of(c, &v, p);
        if (label < 0) {
            memset(dx, 0, (size_t)v.classes * sizeof *dx);
            continue;
        }
        softmax_row(v.x + p * v.classes, dx, v.classes, &sum);
        float at_label = dx[label];
        double each = smoothing / (double)v.classes, own = 1 - smoothing + each;
        subtract(dx, v.classes, (float)((double)dy / sum), (float)((double)dy * each));
        dx[label] = (float)((double)dy * ((double)at_label / sum - own));
    }
}

static tri_status prepare(const tri_node *n, void **state) {
    const tri_shape *x = &cpu_in(n, 0)->shape;
    return cpu_state(n, (size_t)x->dim[x->rank - 1] * sizeof(float), state);
}

const struct dev_row FOR_ISA(cpu_loss)[] = {
    {.op = "cross_entropy", .run = cross_entropy, .prepare = prepare, .release = free},
    {.op = "cross_entropy_dx", .run = cross_entropy_dx},
    {0},
};
