/* SPDX-License-Identifier: Apache-2.0
 * Data of your own, and a trained network in use: learns to separate two interleaved moons, saves
 * the weights, and asks a second, forward-only run about four points. It needs -lm:
 *
 *     cc -o own_data own_data.c $(pkg-config --cflags --libs trireme) -lm */
#include <math.h>
#include <stdio.h>
#include <trireme.h>

#define WEIGHTS "moons.safetensors"

static void network(tri_graph *g, bool with_labels) {
    int64_t n = tri_batch(g);
    tri_tensor *h = tri_input(g, "point", TRI_F32, TRI_SHAPE(n, 2));
    for (int i = 1; i <= 2; i++) {
        tri_push(g, "layer%d", i);
        h = tri_tanh(tri_dense(h, "fc", 16));
        tri_pop(g);
    }
    tri_tensor *logits = tri_dense(h, "head", 2);
    tri_output(tri_softmax(logits, 1), "probability");
    if (!with_labels) return;
    tri_tensor *moon = tri_input(g, "moon", TRI_I64, TRI_SHAPE(n), .below = 2);
    tri_metric(tri_accuracy(logits, moon, 1), "top1");
    tri_loss(tri_cross_entropy(logits, moon));
}

/* Sample `index`: the same for the same arguments, in any order. */
static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)epoch, (void)seed;
    float *point = out[0];
    int64_t *moon = out[1];
    double angle = 3.14159265 * (double)(index / 2 % 500) / 500;
    *moon = index % 2;
    point[0] = (float)(*moon ? 1 - cos(angle) : cos(angle));
    point[1] = (float)(*moon ? 0.5 - sin(angle) : sin(angle));
    return 0;
}

static tri_status train(const tri_options *options) {
    tri_options o = *options;
    o.source = tri_data_new("moons", 1000,
                            (const tri_field[]){{"point", TRI_F32, TRI_SHAPE(2)},
                                                {"moon", TRI_I64, TRI_SCALAR}},
                            2, fill, NULL, false);
    if (!o.source) return TRI_FAILED;
    if (!o.save) o.save = WEIGHTS;
    tri_graph *g = tri_graph_new(o.batch);
    network(g, true);
    return tri_train(g, &o, NULL);
}

static tri_status ask(const char *weights) {
    const float points[4][2] = {{0, 1}, {1, 0.5f}, {0, 0.5f}, {1, -0.5f}};
    float probability[4][2];
    tri_graph *g = tri_graph_new(4);
    network(g, false);
    tri_run *run = tri_open(g, &(tri_options){.batch = 4, .forward = true, .load = weights});
    if (run && !tri_feed(run, "point", points, sizeof points) && !tri_forward(run) &&
        !tri_read(run, "probability", probability, sizeof probability))
        for (int i = 0; i < 4; i++)
            printf("(%g, %g): moon %d\n", (double)points[i][0], (double)points[i][1],
                   probability[i][1] > probability[i][0]);
    return tri_close(run);
}

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    o.epochs = 30;
    o.optimizer = (tri_optimizer){.name = "adam", .lr = 0.01};
    if (tri_options_parse(&o, &argc, argv)) return TRI_USAGE;
    tri_status status = train(&o);
    return status ? status : ask(o.save ? o.save : WEIGHTS);
}
