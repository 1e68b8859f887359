/* SPDX-License-Identifier: Apache-2.0
 * A network of your own that every command of the program takes:
 *
 *     cc -shared -fPIC -o own_network.so own_network.c $(pkg-config --cflags trireme)
 *     trireme train ./own_network.so:width=16 --steps 100
 */
#include <trireme.h>

/* x + f(x): two convolutions with batch norm between them. */
static tri_tensor *residual(tri_tensor *x, const char *scope) {
    int64_t channels = tri_dim(x, 1);
    tri_push(tri_graph_of(x), "%s", scope);
    tri_tensor *y = tri_conv(x, "conv1", channels, 3, .pad = 1, .no_bias = true);
    y = tri_relu(tri_bn(y, "bn1"));
    y = tri_conv(y, "conv2", channels, 3, .pad = 1, .no_bias = true);
    y = tri_relu(tri_add(x, tri_bn(y, "bn2")));
    tri_pop(tri_graph_of(x));
    return y;
}

void tri_model(tri_graph *g, tri_args *args) {
    int64_t n = tri_batch(g), width = tri_args_int(args, "width", 8);
    tri_tensor *image = tri_input(g, "image", TRI_F32, TRI_SHAPE(n, 1, 28, 28));
    tri_tensor *label = tri_input(g, "label", TRI_I64, TRI_SHAPE(n), .below = 10);

    tri_tensor *h = tri_relu(tri_conv(image, "stem", width, 3, .stride = 2, .pad = 1));
    h = residual(h, "block1");
    h = residual(tri_max_pool(h, .size = 2), "block2");
    tri_tensor *logits = tri_dense(tri_global_avg_pool(h), "head", 10);

    tri_metric(tri_accuracy(logits, label, 1), "top1");
    tri_loss(tri_cross_entropy(logits, label, .smoothing = 0.1));
}
