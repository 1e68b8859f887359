/* SPDX-License-Identifier: Apache-2.0
 * Losses and metrics, composed of operators. A loss never broadcasts: its two sides must have equal
 * shapes. */
#include "ops/op.h"

static tri_tensor *reduce(tri_tensor *each, tri_reduction how) {
    if (how == TRI_NONE) return each;
    return how == TRI_SUM ? tri_sum_(each, TRI_ALL, (tri_reduce_options){0})
                          : tri_mean_(each, TRI_ALL, (tri_reduce_options){0});
}

static bool ready(const tri_tensor *a, const tri_tensor *b) {
    return a && b && !a->node->graph->status;
}

static tri_tensor *mistake(const char *loss, const tri_tensor *a, const tri_tensor *b,
                           const char *fix) {
    char sa[SPEC_TEXT], sb[SPEC_TEXT];
    tri_graph *g = a->node->graph;
    graph_mistake(g, "%s of %s, %s, against %s, %s: %s", loss, tri_name_of(a),
                  base_spec_text(&a->spec, sa), tri_name_of(b), base_spec_text(&b->spec, sb), fix);
    return g->poison;
}

/* Checks the two sides of an elementwise loss. Null if they fit, otherwise the tensor that the
 * builder has to return. */
static tri_tensor *unequal(const char *loss, tri_tensor *a, tri_tensor *b) {
    if (!a || !b) return tri_sub(a, b); /* reports the null pointer */
    if (!ready(a, b)) return a->node->graph->poison;
    if (!type_is_float(a->spec.type) || a->spec.type != b->spec.type)
        return mistake(loss, a, b, "both must be of one floating-point type; tri_cast one of them");
    if (base_shape_equal(&a->spec.shape, &b->spec.shape)) return NULL;
    return mistake(loss, a, b, "the shapes must be equal, for a loss never broadcasts; "
                               "tri_reshape one of them, or tri_expand it if it is meant");
}

tri_tensor *tri_mse_(tri_tensor *prediction, tri_tensor *target, tri_loss_options o) {
    tri_tensor *bad = unequal("tri_mse", prediction, target);
    if (bad) return bad;
    tri_tensor *d = tri_sub(prediction, target);
    return reduce(tri_mul(d, d), o.reduction);
}

tri_tensor *tri_l1_(tri_tensor *prediction, tri_tensor *target, tri_loss_options o) {
    tri_tensor *bad = unequal("tri_l1", prediction, target);
    return bad ? bad : reduce(tri_abs(tri_sub(prediction, target)), o.reduction);
}

/* With c = d clipped to +-delta, c (d - c / 2) is d^2 / 2 inside and delta (|d| - delta / 2)
 * outside. */
tri_tensor *tri_huber_(tri_tensor *prediction, tri_tensor *target, tri_loss_options o) {
    tri_tensor *bad = unequal("tri_huber", prediction, target);
    if (bad) return bad;
    double delta = o.delta == 0 ? 1 : o.delta;
    if (!(delta > 0)) return mistake("tri_huber", prediction, target, "delta must be above 0");
    tri_tensor *d = tri_sub(prediction, target), *c = tri_clip(d, -delta, delta);
    return reduce(tri_mul(c, tri_sub(d, tri_scale(c, 0.5))), o.reduction);
}

/* With s the sigmoid, -z log s(x) - (1 - z) log(1 - s(x)) = softplus(x) - x z. */
tri_tensor *tri_bce_(tri_tensor *logits, tri_tensor *target, tri_loss_options o) {
    tri_tensor *bad = unequal("tri_bce", logits, target);
    if (bad) return bad;
    return reduce(tri_sub(tri_softplus(logits), tri_mul(logits, target)), o.reduction);
}

/* For labels that are probabilities: -sum(target log_softmax), with the target smoothed towards
 * 1 / classes. */
static tri_tensor *soft_cross_entropy(tri_tensor *logits, tri_tensor *labels, tri_loss_options o) {
    int last = tri_ndim(logits) - 1;
    double s = o.smoothing;
    if (o.ignore)
        return mistake("tri_cross_entropy", logits, labels,
                       "ignore needs labels that are numbers of classes (i32, i64)");
    if (!(s >= 0 && s <= 1))
        return mistake("tri_cross_entropy", logits, labels, "smoothing must be between 0 and 1");
    if (last < 0 || !base_shape_equal(&logits->spec.shape, &labels->spec.shape))
        return mistake("tri_cross_entropy", logits, labels,
                       "the logits come first; labels are numbers of classes (i32, i64), or "
                       "probabilities of the type and shape of the logits");
    if (s > 0)
        labels = tri_add_number(tri_scale(labels, 1 - s), s / (double)tri_dim(logits, last));
    tri_tensor *log_p = tri_log_softmax(tri_cast(logits, labels->spec.type), last);
    tri_tensor *sum = tri_sum_(tri_mul(labels, log_p), TRI_SHAPE(last), (tri_reduce_options){0});
    return reduce(tri_neg(sum), o.reduction);
}

tri_tensor *tri_cross_entropy_(tri_tensor *logits, tri_tensor *labels, tri_loss_options o) {
    if (ready(logits, labels) && type_is_float(labels->spec.type))
        return soft_cross_entropy(logits, labels, o);
    tri_tensor *each = APPLY("cross_entropy", INPUTS(logits, labels), AF("smoothing", o.smoothing),
                             AI("ignore", o.ignore),
                             AI("ignore_index", o.ignore ? o.ignore_index : -100));
    if (!o.ignore || o.reduction != TRI_MEAN || !ready(each, labels))
        return reduce(each, o.reduction);
    /* Divides by the number of labels that count in the whole batch. If it is 0, so is the sum. */
    tri_tensor *counts = tri_cast(
        tri_not_equal(labels, op_constant_like((double)o.ignore_index, labels)), TRI_F32);
    tri_tensor *one = op_constant_like(1, each);
    return tri_div(reduce(each, TRI_SUM), tri_maximum(reduce(counts, TRI_SUM), one));
}

tri_tensor *tri_accuracy(tri_tensor *logits, tri_tensor *labels, int64_t k) {
    return reduce(APPLY("in_top_k", INPUTS(logits, labels), AI("k", k)), TRI_MEAN);
}
