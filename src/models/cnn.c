/* SPDX-License-Identifier: Apache-2.0
 * A small convolutional network: three convolutions with batch norm and relu, each with twice the
 * channels of the one before, pooling between them, then two dense layers. */
#include "models/models.h"

static tri_tensor *stage(tri_tensor *x, const char *conv, const char *norm, int64_t channels) {
    x = tri_conv(x, conv, channels, 3, .pad = 1, .no_bias = true);
    return tri_relu(tri_bn(x, norm));
}

void cnn_build(tri_graph *g, tri_args *args) {
    struct classifier c = classifier_begin(g, args, 10, 1, 28);
    int64_t width = model_int(args, "width", 16, 1, 65536);
    tri_tensor *h = stage(c.image, "conv1", "bn1", width);
    h = stage(tri_max_pool(h, .size = 2), "conv2", "bn2", 2 * width);
    h = stage(tri_max_pool(h, .size = 2), "conv3", "bn3", 4 * width);
    h = tri_relu(tri_dense(tri_flatten(h, 1), "fc1", 4 * width));
    classifier_end(&c, tri_dense(h, "fc2", c.classes));
}
