/* SPDX-License-Identifier: Apache-2.0
 * Shared by image classifiers: inputs, loss and metrics. */
#include "models/models.h"

struct classifier classifier_begin(tri_graph *g, tri_args *a, int64_t classes, int64_t channels,
                                   int64_t size) {
    int64_t n = tri_batch(g);
    struct classifier c = {.args = a, .classes = model_int(a, "classes", classes, 2, 1000000)};
    channels = model_int(a, "channels", channels, 1, 65536);
    size = model_int(a, "size", size, 1, 65536);
    c.image = tri_input(g, "image", TRI_F32, TRI_SHAPE(n, channels, size, size));
    c.label = tri_input(g, "label", TRI_I64, TRI_SHAPE(n), .below = c.classes);
    return c;
}

static tri_tensor *accuracy(const struct classifier *c, tri_tensor *logits, int64_t k,
                            bool ignore) {
    if (!ignore) return tri_accuracy(logits, c->label, k);
    struct places places = places_labelled(c->label);
    return places_accuracy(&places, logits, c->label, k);
}

void classifier_end(const struct classifier *c, tri_tensor *logits) {
    double smoothing = tri_args_float(c->args, "smoothing", 0);
    /* samples labelled -100 do not count */
    bool ignore = model_int(c->args, "ignore", 0, 0, 1);
    tri_output(logits, "logits");
    tri_metric(accuracy(c, logits, 1, ignore), "top1");
    if (c->classes > 5) tri_metric(accuracy(c, logits, 5, ignore), "top5");
    tri_loss(tri_cross_entropy(logits, c->label, .smoothing = smoothing, .ignore = ignore,
                               .ignore_index = -100));
}
