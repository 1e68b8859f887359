/* SPDX-License-Identifier: Apache-2.0
 * A multi-layer perceptron over flattened images: fc1, fc2, ... with PyTorch's shapes. */
#include <stdio.h>

#include "models/models.h"

void mlp_build(tri_graph *g, tri_args *args) {
    struct classifier c = classifier_begin(g, args, 10, 1, 28);
    int layers = (int)model_int(args, "layers", 2, 0, 1000);
    int64_t hidden = model_int(args, "hidden", 512, 1, 1000000);
    tri_tensor *h = tri_flatten(c.image, 1);
    for (int i = 1; i <= layers; i++) {
        char name[16];
        snprintf(name, sizeof name, "fc%d", i);
        h = tri_relu(tri_dense(h, name, hidden));
    }
    char name[16];
    snprintf(name, sizeof name, "fc%d", layers + 1);
    classifier_end(&c, tri_dense(h, name, c.classes));
}
