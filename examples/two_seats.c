/* SPDX-License-Identifier: Apache-2.0
 * The usual two-card tutorial: the product of a 16x32 input and a 32x16 weight, split over two
 * seats along the dimension that it sums over. Each seat multiplies half of the input's columns
 * with half of the weight's rows; the two results are added. The program trains, saves checkpoints,
 * and loads the last of them into a network that is not split.
 *
 *     ./two_seats                        # with the mesh
 *     ./two_seats whole                  # without: the same losses, but for rounding
 *     trireme run -n 2 -- ./two_seats    # two workers: the bits of the first
 *     trireme ckpt show ckpt/two_seats
 *
 * A second run needs --resume, or an empty folder ckpt/two_seats. */
#include <stdio.h>
#include <string.h>
#include <trireme.h>

#define BATCH 16
#define IN 32
#define OUT 16

static void network(tri_graph *g, bool mesh, bool train) {
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(tri_batch(g), IN));
    tri_tensor *w = tri_param(g, "weight", TRI_SHAPE(IN, OUT), (tri_init){TRI_NORMAL, 0, 0.02});
    tri_tensor *y = tri_matmul(x, w);
    if (mesh) {
        tri_mesh(g, "2");            /* two seats */
        tri_shard(y, "(1,2),(2,1)"); /* ops.MatMul().shard(((1, 2), (2, 1))) */
    }
    tri_output(y, "y");
    if (!train) return;
    tri_tensor *labels = tri_input(g, "labels", TRI_F32, TRI_SHAPE(tri_batch(g), OUT));
    tri_loss(tri_cross_entropy(y, labels)); /* SoftmaxCrossEntropyWithLogits: dense labels */
}

/* Sample `index`: what a random source of data would give, but the same in every run. */
static float number(int64_t index, int which) {
    uint64_t z = ((uint64_t)index * 64 + (uint64_t)which + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (float)((double)((z ^ (z >> 31)) >> 11) * 0x1p-53);
}

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)epoch, (void)seed;
    float *x = out[0], *labels = out[1];
    int best = 0;
    for (int i = 0; i < IN; i++) x[i] = number(index, i);
    for (int i = 0; i < OUT; i++) labels[i] = 0;
    for (int i = 1; i < OUT; i++)
        if (x[i] > x[best]) best = i;
    labels[best] = 1; /* dense: a number per class */
    return 0;
}

/* Loads the newest checkpoint into a network without a mesh, and runs it on one batch. */
static tri_status load(void) {
    static float x[BATCH][IN], y[BATCH][OUT];
    for (int i = 0; i < BATCH; i++)
        for (int j = 0; j < IN; j++) x[i][j] = number(i, j);
    tri_graph *g = tri_graph_new(BATCH);
    network(g, false, false);
    tri_options o = {.batch = BATCH, .forward = true, .load = "ckpt/two_seats"};
    tri_run *run = tri_open(g, &o);
    if (run && !tri_feed(run, "x", x, sizeof x) && !tri_forward(run) &&
        !tri_read(run, "y", y, sizeof y))
        printf("loaded without a mesh: y[0][0] = %.5f\n", (double)y[0][0]);
    return tri_close(run);
}

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    o.batch = BATCH;
    o.epochs = 10;
    o.optimizer = (tri_optimizer){.name = "momentum", .lr = 0.1, .momentum = 0.1};
    if (tri_options_parse(&o, &argc, argv)) return TRI_USAGE;
    bool whole = argc > 1 && !strcmp(argv[1], "whole");
    if (argc > 1 + whole) return fprintf(stderr, "unknown: %s\n", argv[1 + whole]), TRI_USAGE;
    o.source = tri_data_new("pairs", 256,
                            (const tri_field[]){{"x", TRI_F32, TRI_SHAPE(IN)},
                                                {"labels", TRI_F32, TRI_SHAPE(OUT)}},
                            2, fill, NULL, false);
    if (!o.source) return TRI_FAILED;
    tri_graph *g = tri_graph_new(o.batch);
    network(g, !whole, true);
    tri_status status =
        tri_train(g, &o, TRI_CALLBACKS(tri_loss_monitor(16),
                                       tri_saver(.directory = "ckpt", .prefix = "two_seats",
                                                 .every = 16, .keep = 3)));
    return status ? status : load();
}
