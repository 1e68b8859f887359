/* SPDX-License-Identifier: Apache-2.0
 * Every macro of the header with options, without any and with some: test_install.sh compiles it as
 * standard C17, without any warning. */
#include <trireme.h>

static tri_tensor *images(tri_graph *g) {
    int64_t n = tri_batch(g);
    tri_tensor *x = tri_input(g, "image", TRI_F32, TRI_SHAPE(n, 4, 8, 8));
    tri_tensor *v = tri_param(g, "v", TRI_SHAPE(4), (tri_init){.a = 1});
    tri_tensor *w = tri_param(g, "w", TRI_SHAPE(4, 4, 3, 3), (tri_init){.kind = TRI_HE_NORMAL});
    x = tri_conv2d(tri_conv2d(x, w, .pad = 1), w, .pad = 1, .bias = v);
    x = tri_conv(tri_conv(x, "a", 4, 1), "b", 4, 1, .no_bias = true);
    x = tri_bn(tri_bn(x, "bn"), "bn2", .momentum = 0.2);
    x = tri_gn(tri_gn(x, "gn", 2), "gn2", 2, .eps = 1e-3);
    x = tri_group_norm(tri_group_norm(x, 2, v, v), 2, v, v, .eps = 1e-3);
    x = tri_batch_norm(x, v, v, tri_state(g, "mean", TRI_F32, TRI_SHAPE(4), (tri_init){0}),
                       tri_state(g, "var", TRI_F32, TRI_SHAPE(4), (tri_init){.a = 1}));
    x = tri_avg_pool(tri_max_pool(x, .size = 2, .stride = 1), .size = 3);
    return tri_flatten(x, 1);
}

static tri_tensor *words(tri_graph *g) {
    int64_t n = tri_batch(g);
    tri_tensor *ids = tri_input(g, "id", TRI_I64, TRI_SHAPE(n, 6), .below = 9);
    tri_tensor *x = tri_add(tri_embed(ids, "e", 9, 8), tri_embed(ids, "f", 9, 8, .init = NULL));
    tri_tensor *one = tri_param(g, "one", TRI_SHAPE(8), (tri_init){.a = 1});
    x = tri_ln(tri_ln(x, "ln"), "ln2", .no_affine = true);
    x = tri_layer_norm(tri_layer_norm(x, one, NULL), one, NULL, .axes = 1);
    x = tri_add(tri_attention(x, x, x), tri_attention(x, x, x, .heads = 2, .causal = true));
    tri_tensor *m = tri_matmul(x, x, .trans_b = true);
    x = tri_concat((tri_tensor *const[]){x, tri_matmul(m, x)}, 2, 2);
    return tri_mean(x, TRI_SHAPE(1));
}

static tri_tensor *losses(tri_tensor *x, tri_tensor *y, tri_tensor *label) {
    tri_tensor *sum =
        tri_add(tri_cross_entropy(x, label), tri_cross_entropy(x, label, .ignore = true));
    sum = tri_add(sum, tri_add(tri_mse(x, y), tri_mse(x, y, .reduction = TRI_MEAN)));
    sum = tri_add(sum, tri_add(tri_l1(x, y), tri_huber(x, y)));
    sum = tri_add(sum, tri_bce(x, y));
    sum = tri_add(sum, tri_add(tri_max(x, TRI_ALL), tri_sum(x, TRI_ALL)));
    return tri_add(sum, tri_sum(tri_mean(x, TRI_SHAPE(0), .keep = true), TRI_ALL));
}

int main(void) {
    tri_graph *g = tri_graph_new(4);
    tri_tensor *x =
        tri_add(tri_dense(images(g), "fc", 3), tri_dense(words(g), "words", 3, .no_bias = true));
    tri_tensor *y = tri_input(g, "y", TRI_F32, TRI_SHAPE(4, 3));
    tri_tensor *label = tri_input(g, "label", TRI_I64, TRI_SHAPE(4), .below = 3);
    tri_loss(losses(tri_clip(x, -1, 1), y, label));
    tri_options o = tri_options_default();
    o.steps = 2;
    o.lanes = 1;
    o.quiet = true;
    o.optimizer = (tri_optimizer){.name = "adam", .beta1 = TRI_ZERO};
    return tri_train(g, &o,
                     TRI_CALLBACKS(tri_loss_monitor(1), tri_saver(.directory = "saved"), {0}));
}
