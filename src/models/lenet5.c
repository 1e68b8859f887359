/* SPDX-License-Identifier: Apache-2.0
 * LeNet-5 as taught today, with relu and maximum pooling. The first layer pads 28x28 to 32x32. */
#include "models/models.h"

void lenet5_build(tri_graph *g, tri_args *args) {
    struct classifier c = classifier_begin(g, args, 10, 1, 28);
    tri_tensor *h = tri_relu(tri_conv(c.image, "conv1", 6, 5, .pad = 2));
    h = tri_max_pool(h, .size = 2);
    h = tri_relu(tri_conv(h, "conv2", 16, 5));
    h = tri_max_pool(h, .size = 2);
    h = tri_relu(tri_dense(tri_flatten(h, 1), "fc1", 120));
    h = tri_relu(tri_dense(h, "fc2", 84));
    classifier_end(&c, tri_dense(h, "fc3", c.classes));
}
