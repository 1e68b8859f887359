/* SPDX-License-Identifier: Apache-2.0
 * Residual networks. Names, shapes and initial values are those of torchvision (v1.5: in a
 * bottleneck the 3x3 convolution has the stride), so that weights can be exchanged. form=small is
 * for images of 32x32: its stem is a 3x3 convolution of stride 1 without pooling. */
#include "models/models.h"

static tri_tensor *conv_bn(tri_tensor *x, const char *conv, const char *norm, int64_t out,
                           int64_t size, int64_t stride) {
    tri_init he = {TRI_HE_NORMAL_OUT, 0, 0};
    x = tri_conv(x, conv, out, size, .stride = stride, .pad = size / 2, .no_bias = true,
                 .init = &he);
    return tri_bn(x, norm);
}

/* x [n, c, h, w] to [n, out, h / stride, w / stride], out = width or, with a bottleneck, 4 width */
static tri_tensor *block(tri_tensor *x, bool bottleneck, int64_t width, int64_t stride) {
    int64_t out = bottleneck ? 4 * width : width;
    tri_tensor *h = x;
    if (bottleneck) {
        h = tri_relu(conv_bn(h, "conv1", "bn1", width, 1, 1));
        h = tri_relu(conv_bn(h, "conv2", "bn2", width, 3, stride));
        h = conv_bn(h, "conv3", "bn3", out, 1, 1);
    } else {
        h = tri_relu(conv_bn(h, "conv1", "bn1", width, 3, stride));
        h = conv_bn(h, "conv2", "bn2", out, 3, 1);
    }
    if (stride != 1 || tri_dim(x, 1) != out)
        x = conv_bn(x, "downsample.0", "downsample.1", out, 1, stride);
    return tri_relu(tri_add(h, x));
}

static void build(tri_graph *g, tri_args *args, bool bottleneck, const int blocks[4]) {
    bool small = model_choice(args, "form", "imagenet small") == 1;
    int64_t width = model_int(args, "width", 64, 1, 4096);
    struct classifier c = classifier_begin(g, args, 1000, 3, small ? 32 : 224);
    tri_tensor *h = tri_relu(conv_bn(c.image, "conv1", "bn1", width, small ? 3 : 7, small ? 1 : 2));
    if (!small) h = tri_max_pool(h, .size = 3, .stride = 2, .pad = 1);
    for (int layer = 0; layer < 4; layer++)
        for (int i = 0; i < blocks[layer]; i++) {
            tri_push(g, "layer%d.%d", layer + 1, i);
            h = block(h, bottleneck, width << layer, layer && !i ? 2 : 1);
            tri_pop(g);
        }
    classifier_end(&c, tri_dense(tri_global_avg_pool(h), "fc", c.classes));
}

void resnet18_build(tri_graph *g, tri_args *args) {
    build(g, args, false, (const int[]){2, 2, 2, 2});
}
void resnet34_build(tri_graph *g, tri_args *args) {
    build(g, args, false, (const int[]){3, 4, 6, 3});
}
void resnet50_build(tri_graph *g, tri_args *args) {
    build(g, args, true, (const int[]){3, 4, 6, 3});
}
void resnet101_build(tri_graph *g, tri_args *args) {
    build(g, args, true, (const int[]){3, 4, 23, 3});
}
void resnet152_build(tri_graph *g, tri_args *args) {
    build(g, args, true, (const int[]){3, 8, 36, 3});
}
