/* SPDX-License-Identifier: Apache-2.0 A user's model as a shared object, for test_models.c. */
#include <trireme.h>

__attribute__((visibility("default"))) void tri_model(tri_graph *g, tri_args *args) {
    int64_t width = tri_args_int(args, "width", 3);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(tri_batch(g), 2));
    tri_tensor *y = tri_dense(x, tri_args_text(args, "name", "own"), width);
    tri_loss(tri_mean(tri_scale(y, tri_args_float(args, "scale", 1)), TRI_ALL));
}
