/* SPDX-License-Identifier: Apache-2.0
 * Softmax, cross-entropy and in_top_k. */
#include "base/math.h"
#include "dev/ref/ref.h"

/* `length` elements of an input, `stride` apart. */
struct line {
    int input;
    int64_t first, length, stride;
};

static double line_load(const tri_call *c, const struct line *l, int64_t i) {
    return ref_load(c, l->input, l->first + i * l->stride);
}

/* The maximum, the sum of exp(x - max), and the logarithm of the sum of exp. */
static double line_max(const tri_call *c, const struct line *l) {
    double max = line_load(c, l, 0);
    for (int64_t i = 1; i < l->length; i++) {
        double x = line_load(c, l, i);
        if (x > max) max = x;
    }
    return max;
}

static double line_sum_exp(const tri_call *c, const struct line *l, double max) {
    double sum = 0;
    for (int64_t i = 0; i < l->length; i++) sum += math_exp(line_load(c, l, i) - max);
    return sum;
}

static double line_log_sum_exp(const tri_call *c, const struct line *l) {
    double max = line_max(c, l);
    return max + math_log(line_sum_exp(c, l, max));
}

/* ---- softmax ---- */

static void softmax_any(const tri_call *c, bool log) {
    const tri_shape *x = &ref_in(c, 0)->shape;
    int64_t axis = tri_attr_int(c->node, "axis"), inner = 1;
    if (axis < 0) axis += x->rank;
    for (int i = (int)axis + 1; i < x->rank; i++) inner *= x->dim[i];
    int64_t length = x->dim[axis], lines = tri_shape_count(x) / length;
    for (int64_t k = 0; k < lines; k++) {
        struct line l = {0, k / inner * inner * length + k % inner, length, inner};
        double z = line_log_sum_exp(c, &l);
        for (int64_t i = 0; i < length; i++) {
            double y = line_load(c, &l, i) - z;
            ref_store(c, 0, l.first + i * l.stride, log ? y : math_exp(y));
        }
    }
}

static void softmax(const tri_call *c) { softmax_any(c, false); }
static void log_softmax(const tri_call *c) { softmax_any(c, true); }

/* ---- cross-entropy ---- */

/* Place k of the logits, whose labels are the next input. */
static struct line place_line(const tri_call *c, int logits, int64_t k) {
    const tri_shape *x = &ref_in(c, logits)->shape;
    int64_t classes = x->dim[x->rank - 1];
    return (struct line){logits, k * classes, classes, 1};
}

/* The number of classes, of which the line may have a part. */
static int64_t all_classes(const tri_call *c, const struct line *l) {
    int64_t all = node_attr(c->node, "all") ? tri_attr_int(c->node, "all") : 0;
    return all ? all : l->length;
}

/* The label; -1 for an ignored place, or after failing the step. */
static int64_t label_of(const tri_call *c, const struct line *l, int64_t k) {
    int64_t label = ref_load_i64(c, l->input + 1, k), all = all_classes(c, l);
    if (tri_attr_int(c->node, "ignore") && label == tri_attr_int(c->node, "ignore_index"))
        return -1;
    if (label >= 0 && label < all) return label;
    call_fail_at(c, l->input + 1, k, "label %lld is not below %lld", (long long)label,
                 (long long)all);
    return -1;
}

/* The target's weights add up to 1, so the loss is log sum exp(x) - sum(target x). */
static void cross_entropy(const tri_call *c) {
    double smoothing = tri_attr_float(c->node, "smoothing");
    int64_t places = tri_shape_count(&ref_out(c, 0)->shape);
    for (int64_t k = 0; k < places; k++) {
        struct line l = place_line(c, 0, k);
        int64_t label = label_of(c, &l, k);
        double loss = 0, max = 0, sum = 1;
        if (label >= 0) {
            max = line_max(c, &l);
            sum = line_sum_exp(c, &l, max);
            loss = max + math_log(sum) - (1 - smoothing) * line_load(c, &l, label);
            for (int64_t i = 0; smoothing > 0 && i < l.length; i++)
                loss -= smoothing / (double)l.length * line_load(c, &l, i);
        }
        ref_store(c, 0, k, loss);
        ref_store(c, 1, k, max);
        ref_store(c, 2, k, sum);
    }
}

static void cross_entropy_sums(const tri_call *c) {
    int64_t places = tri_shape_count(&ref_out(c, 0)->shape), first = tri_attr_int(c->node, "first");
    for (int64_t k = 0; k < places; k++) {
        struct line l = place_line(c, 0, k);
        int64_t label = label_of(c, &l, k);
        bool here = label >= first && label < first + l.length;
        double total = 0;
        for (int64_t i = 0; label >= 0 && i < l.length; i++) total += line_load(c, &l, i);
        ref_store(c, 0, k, label < 0 ? 0 : line_sum_exp(c, &l, ref_load(c, 2, k)));
        ref_store(c, 1, k, here ? line_load(c, &l, label - first) : 0);
        if (c->node->n_out > 2) ref_store(c, 2, k, total);
    }
}

static void cross_entropy_dx(const tri_call *c) {
    double smoothing = tri_attr_float(c->node, "smoothing");
    int64_t places = tri_shape_count(&ref_in(c, 0)->shape), first = tri_attr_int(c->node, "first");
    for (int64_t k = 0; k < places; k++) {
        struct line l = place_line(c, 1, k);
        int64_t label = label_of(c, &l, k);
        double max = ref_load(c, 3, k), sum = ref_load(c, 4, k);
        double dy = label < 0 ? 0 : ref_load(c, 0, k);
        for (int64_t i = 0; i < l.length; i++) {
            bool own = first + i == label;
            double target = (own ? 1 - smoothing : 0) + smoothing / (double)all_classes(c, &l);
            double d = label < 0 ? 0 : dy * (math_exp(line_load(c, &l, i) - max) / sum - target);
            ref_store(c, 0, l.first + i, d);
        }
    }
}

/* ---- labels ---- */

static void pick(const tri_call *c) {
    int64_t places = tri_shape_count(&ref_out(c, 0)->shape), first = tri_attr_int(c->node, "first");
    for (int64_t k = 0; k < places; k++) {
        struct line l = place_line(c, 0, k);
        int64_t label = ref_load_i64(c, 1, k);
        bool here = label >= first && label < first + l.length;
        ref_store(c, 0, k, here ? line_load(c, &l, label - first) : 0);
    }
}

static void ranks_before(const tri_call *c) {
    int64_t places = tri_shape_count(&ref_out(c, 0)->shape), first = tri_attr_int(c->node, "first");
    for (int64_t p = 0; p < places; p++) {
        struct line l = place_line(c, 0, p);
        int64_t label = ref_load_i64(c, 1, p), before = 0;
        double own = ref_load(c, 2, p);
        for (int64_t i = 0; i < l.length; i++) {
            double x = line_load(c, &l, i);
            before += first + i < label ? !(x < own) : first + i > label ? !(x <= own) : 0;
        }
        ref_store(c, 0, p, (double)before);
    }
}

/* Counts what ranks before the label: everything that is not smaller, of equal elements the earlier
 * ones, and NaN. */
static void in_top_k(const tri_call *c) {
    int64_t places = tri_shape_count(&ref_out(c, 0)->shape), k = tri_attr_int(c->node, "k");
    for (int64_t p = 0; p < places; p++) {
        struct line l = place_line(c, 0, p);
        int64_t label = (int64_t)ref_load(c, 1, p), before = 0;
        bool is_class = label >= 0 && label < l.length;
        double own = is_class ? line_load(c, &l, label) : 0;
        for (int64_t i = 0; i < l.length; i++) {
            double x = line_load(c, &l, i);
            before += i < label ? !(x < own) : i > label ? !(x <= own) : 0;
        }
        ref_store(c, 0, p, is_class && own == own && before < k);
    }
}

const struct dev_row ref_loss[] = {
    {.op = "softmax", .run = softmax},
    {.op = "log_softmax", .run = log_softmax},
    {.op = "cross_entropy", .run = cross_entropy},
    {.op = "cross_entropy_dx", .run = cross_entropy_dx},
    {.op = "cross_entropy_sums", .run = cross_entropy_sums},
    {.op = "pick", .run = pick},
    {.op = "ranks_before", .run = ranks_before},
    {.op = "in_top_k", .run = in_top_k},
    {0},
};
