/* SPDX-License-Identifier: Apache-2.0
 * Gradient accumulation: a step of 256 samples in the memory of 64. The gradients of four parts of
 * 64 samples are summed before one update of the parameters. A part is a lane; nothing else is
 * needed.
 *
 *     ./gradient_accumulation --threads 1           # one lane after the other, in one's memory
 *     trireme run -n 4 -- ./gradient_accumulation   # four at once, with the same bits
 */
#include <stdio.h>
#include <trireme.h>

#define PART 64
#define PARTS 4

static void network(tri_graph *g) {
    int64_t n = tri_batch(g); /* of the whole step; batch norm's statistics are a part's */
    tri_tensor *x = tri_input(g, "image", TRI_F32, TRI_SHAPE(n, 1, 28, 28));
    tri_tensor *y = tri_input(g, "label", TRI_I64, TRI_SHAPE(n), .below = 10);
    tri_tensor *h = tri_relu(tri_bn(tri_conv(x, "conv1", 16, 3, .pad = 1), "bn1"));
    h = tri_max_pool(h, .size = 2);
    h = tri_relu(tri_bn(tri_conv(h, "conv2", 32, 3, .pad = 1), "bn2"));
    tri_tensor *logits = tri_dense(tri_global_avg_pool(h), "fc", 10);
    tri_metric(tri_accuracy(logits, y, 1), "top1");
    tri_loss(tri_cross_entropy(logits, y)); /* the mean over all 256 */
}

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    o.batch = PART * PARTS;
    o.lanes = PARTS;
    o.optimizer = (tri_optimizer){.name = "momentum", .lr = 0.1};
    if (tri_options_parse(&o, &argc, argv)) return TRI_USAGE;
    tri_graph *g = tri_graph_new(o.batch);
    network(g);
    return tri_train(g, &o, NULL);
}
