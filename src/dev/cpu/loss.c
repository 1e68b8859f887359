/* SPDX-License-Identifier: Apache-2.0
 * Cross-entropy of logits [places, classes] with labels [places], and its derivative. The target is
 * 1 - s for the label plus s / classes for every class. A row of logits is loaded from memory once
 * and stays in the second-level cache; the derivative loads it once more. */
#include "dev/cpu/softmax.h"

/* The logits are input `logits` of the node, the labels the next one. The logits may be classes
 * `first` on of `all`. */
struct view {
    int64_t places, classes, first, all, ignored;
    tri_type type;
    int logits;
    bool ignores;
    double smoothing;
};

static struct view view_of(const tri_node *n) {
    int logits = node_is(n, "cross_entropy_dx");
    const tri_spec *x = cpu_in(n, logits);
    int64_t classes = x->shape.dim[x->shape.rank - 1];
    struct view v = {.places = tri_shape_count(&x->shape) / classes, .classes = classes,
                     .all = classes, .ignored = tri_attr_int(n, "ignore_index"), .type = x->type,
                     .logits = logits, .ignores = tri_attr_int(n, "ignore"),
                     .smoothing = tri_attr_float(n, "smoothing")};
    if (!node_attr(n, "all")) return v;
    v.first = tri_attr_int(n, "first");
    if (tri_attr_int(n, "all")) v.all = tri_attr_int(n, "all");
    return v;
}

static int64_t parts_of(const struct view *v) { return cpu_parts(v->places, v->classes); }

/* -1 for an ignored place, and after failing the step. */
static int64_t label_of(const tri_call *c, const struct view *v, int64_t place) {
    int64_t label = cpu_index(c, v->logits + 1, place);
    if (v->ignores && label == v->ignored) return -1;
    if (label >= 0 && label < v->all) return label;
    call_fail_at(c, v->logits + 1, place, "label %lld is not below %lld", (long long)label,
                 (long long)v->all);
    return -1;
}

/* With z = x - max: log(sum(exp z)) - (1 - s) z[label] - s mean(z). */
INLINE void forward(tri_type t, const tri_call *c, const struct view *v) {
    float *loss = c->out[0], *largest = c->out[1], *sums = c->out[2];
    struct cpu_range r = cpu_part(c, parts_of(v), v->places);
    double s = v->smoothing;
    for (int64_t p = r.begin; p < r.end; p++) {
        const void *x = rows_in(t, c->in[0], p * v->classes);
        int64_t label = label_of(c, v, p);
        loss[p] = largest[p] = 0;
        sums[p] = 1;
        if (label < 0) continue;
        float max = rows_max(t, x, v->classes);
        float sum = (float)softmax_sum(t, x, NULL, v->classes, max);
        double z = (double)vmath_log(sum) -
                   (1 - s) * ((double)rows_get(t, x, label) - (double)max);
        if (s > 0) z -= s * (rows_sum(t, x, v->classes) / (double)v->classes - (double)max);
        loss[p] = (float)z;
        largest[p] = max;
        sums[p] = sum;
    }
}

/* What the classes of a part add to the sums of `forward`; out[2] only with smoothing. */
INLINE void add_up(tri_type t, const tri_call *c, const struct view *v) {
    float *sums = c->out[0], *own = c->out[1], *totals = v->smoothing > 0 ? c->out[2] : NULL;
    struct cpu_range r = cpu_part(c, parts_of(v), v->places);
    for (int64_t p = r.begin; p < r.end; p++) {
        const void *x = rows_in(t, c->in[0], p * v->classes);
        int64_t label = label_of(c, v, p);
        bool here = label >= v->first && label < v->first + v->classes;
        float max = ((const float *)c->in[2])[p];
        own[p] = here ? rows_get(t, x, label - v->first) : 0;
        sums[p] = label < 0 ? 0 : (float)softmax_sum(t, x, NULL, v->classes, max);
        if (totals) totals[p] = label < 0 ? 0 : (float)rows_sum(t, x, v->classes);
    }
}

/* dy (exp(x - max) / sum - target) */
INLINE void backward(tri_type t, const tri_call *c, const struct view *v) {
    struct cpu_range r = cpu_part(c, parts_of(v), v->places);
    double each = v->smoothing / (double)v->all, own = 1 - v->smoothing + each;
    for (int64_t p = r.begin; p < r.end; p++) {
        const void *x = rows_in(t, c->in[1], p * v->classes);
        void *dx = rows_out(t, c->out[0], p * v->classes);
        double dy = (double)((const float *)c->in[0])[p];
        float max = ((const float *)c->in[3])[p], sum = ((const float *)c->in[4])[p];
        int64_t label = label_of(c, v, p);
        if (label < 0) {
            EACH(v->classes, STORE(t, dx, vec_set(0)));
            continue;
        }
        float scale = (float)(dy / (double)sum), target = (float)(dy * each);
        bool here = label >= v->first && label < v->first + v->classes;
        int64_t i = here ? label - v->first : 0; /* read before dx may overwrite it */
        double at_label = (double)vmath_exp(rows_get(t, x, i) - max) / (double)sum;
        EACH(v->classes,
             STORE(t, dx, vec_exp_negative(LOAD(t, x, 0) - max) * scale - target));
        if (here) rows_put(t, dx, i, (float)(dy * (at_label - own)));
    }
}

static void cross_entropy(const tri_call *c) {
    struct view v = view_of(c->node);
    BY_TYPE(v.type, forward, c, &v);
}

static void cross_entropy_sums(const tri_call *c) {
    struct view v = view_of(c->node);
    BY_TYPE(v.type, add_up, c, &v);
}

static void pick(const tri_call *c) {
    struct cpu_axis_view x = cpu_last_view(c->node);
    tri_type t = cpu_in(c->node, 0)->type;
    int64_t size = (int64_t)tri_type_size(t), first = tri_attr_int(c->node, "first");
    for (int64_t p = 0; p < x.outer; p++) {
        int64_t label = cpu_index(c, 1, p);
        char *y = (char *)c->out[0] + p * size;
        if (label >= first && label < first + x.length)
            memcpy(y, (const char *)c->in[0] + (p * x.length + label - first) * size, (size_t)size);
        else
            memset(y, 0, (size_t)size);
    }
}

static void cross_entropy_dx(const tri_call *c) {
    struct view v = view_of(c->node);
    BY_TYPE(v.type, backward, c, &v);
}

static void plan(const tri_node *n, struct kernel *k) {
    struct view v = view_of(n);
    k->parts = parts_of(&v);
}

/* dx may replace the logits: an element is read before it is written. */
static bool shares(const void *state, int out, int in) {
    (void)state;
    return out == 0 && in == 1;
}

static void plan_dx(const tri_node *n, struct kernel *k) {
    plan(n, k);
    k->shares = shares;
}

const struct dev_row FOR_ISA(cpu_loss)[] = {
    {.op = "cross_entropy", .run = cross_entropy, .plan = plan},
    {.op = "cross_entropy_sums", .run = cross_entropy_sums, .plan = plan},
    {.op = "pick", .run = pick},
    {.op = "cross_entropy_dx", .run = cross_entropy_dx, .plan = plan_dx},
    {0},
};
