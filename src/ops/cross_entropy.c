/* SPDX-License-Identifier: Apache-2.0
 * cross_entropy: the loss [...], f32, of logits [..., classes] and labels [...]. Outputs 1 and 2,
 * for the gradient, are the largest logit and sum(exp(logit - largest)) per label. With smoothing s
 * the target is 1 - s for the label, plus s / classes for every class. With ignore=1, labels equal
 * to ignore_index give 0. Any other label that is not a class fails the step. */
#include "ops/cross_entropy.h"

static bool check_part(const tri_node *n, int64_t classes) {
    int64_t first = tri_attr_int(n, "first"), all = tri_attr_int(n, "all");
    return (first >= 0 && first + classes <= (all ? all : classes)) ||
           tri_op_error(n, "first is %lld: the %lld classes are not among %lld", (long long)first,
                        (long long)classes, (long long)all);
}

bool cross_entropy_check(const tri_node *n, int logits) {
    const tri_shape *x = in_shape(n, logits);
    double s = tri_attr_float(n, "smoothing");
    tri_shape places = *x;
    places.rank--;
    if (!op_need_float(n, logits) || !op_need_index(n, logits + 1)) return false;
    if (x->rank < 1 || !base_shape_equal(&places, in_shape(n, logits + 1)))
        return tri_op_error(n, "the labels (input %d) must have the shape of the logits (input %d) "
                               "without their last dimension, the classes", logits + 1, logits);
    if (!(s >= 0 && s <= 1))
        return tri_op_error(n, "smoothing is %g; it must lie between 0 and 1", s);
    return !node_attr(n, "first") || check_part(n, x->dim[x->rank - 1]);
}

double cross_entropy_flops(const tri_node *n) {
    double most = 0;
    for (int i = 0; i < n->n_in; i++) {
        double count = (double)tri_shape_count(in_shape(n, i));
        if (count > most) most = count;
    }
    return 8 * most;
}

static int infer(const tri_node *n, tri_spec *out) {
    if (!cross_entropy_check(n, 0)) return 0;
    out[0] = out[1] = out[2] = (tri_spec){TRI_F32, *in_shape(n, 1)};
    return 3;
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    if (!op_only_first(n, dy)) return;
    dx[0] = APPLY_LIKE(n, "cross_entropy_dx",
                       INPUTS(dy[0], n->in[0], n->in[1], &n->out[1], &n->out[2]));
}

/* log sum - (1 - s) z[label] - s mean(z) with z = x - largest; 0, 0 and 1 for ignored labels. */
static bool split_form(const tri_node *n, tri_tensor **out) {
    tri_tensor *x = n->in[0], *labels = n->in[1];
    int last = x->spec.shape.rank - 1;
    double s = tri_attr_float(n, "smoothing");
    tri_tensor *max = tri_cast(tri_max_(x, TRI_SHAPE(last), (tri_reduce_options){0}), TRI_F32);
    tri_node *sums = APPLY_LIKE(n, "cross_entropy_sums", INPUTS(x, labels, max))->node;
    tri_tensor *loss = tri_sub(tri_log(&sums->out[0]),
                               tri_scale(tri_sub(&sums->out[1], max), 1 - s));
    if (sums->n_out > 2) {
        tri_tensor *mean = tri_scale(&sums->out[2], 1 / (double)x->spec.shape.dim[last]);
        loss = tri_sub(loss, tri_scale(tri_sub(mean, max), s));
    }
    tri_tensor *made[] = {loss, max, &sums->out[0]};
    tri_tensor *ignored = tri_equal(
        labels, op_constant_like((double)tri_attr_int(n, "ignore_index"), labels));
    for (int i = 0; i < 3; i++)
        out[i] = tri_attr_int(n, "ignore")
                     ? tri_where(ignored, op_constant_like(i == 2, made[i]), made[i]) : made[i];
    return true;
}

static int leaves_out(const tri_node *n, double value) {
    bool ignored = tri_attr_int(n, "ignore") && (double)tri_attr_int(n, "ignore_index") == value;
    return ignored ? 1 : -1;
}

const tri_op op_cross_entropy = {
    .name = "cross_entropy",
    .inputs = 2,
    .attributes = CROSS_ENTROPY,
    .infer = infer,
    .gradient = gradient,
    .factors = "...K,...->...,...,...",
    .names = "k:vocab",
    .split_form = split_form,
    .flops = cross_entropy_flops,
    .precision = TRI_PRECISION_ANY,
    .leaves_out = leaves_out,
    .examples = EXAMPLES("f32[4,5]@-3:3, i64[4]@0:5", "f32[2,3,7]@-3:3, i32[2,3]@0:7",
                         "f32[4,5]@-3:3, i64[4]@0:5 {smoothing=0.1}",
                         "f32[8,3]@-3:3, i64[8]@0:3 {ignore=1, ignore_index=1}",
                         "f32[8,3]@-3:3, i32[8]@0:3 {smoothing=0.3, ignore=1, ignore_index=2}",
                         "f32[3], i64[]@0:3", "f32[3,37]@-90:90, i64[3]@0:37",
                         "bf16[4,5], i64[4]@0:5"),
};
