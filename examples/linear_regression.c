/* SPDX-License-Identifier: Apache-2.0
 * A very small training: a dense layer finds 2, 3 and 5 from samples of z = 2 x^2 + 3 y^3 + 5 with
 * a little noise. Any number of workers gives the same weights, bit for bit:
 *
 *     ./linear_regression
 *     trireme run -n 2 -- ./linear_regression
 *     trireme run -n auto -- ./linear_regression --epochs 5000 # tries, and reports why one is
 *     faster
 */
#include <stdio.h>
#include <trireme.h>

static void network(tri_graph *g) {
    int64_t n = tri_batch(g);
    tri_tensor *features = tri_input(g, "features", TRI_F32, TRI_SHAPE(n, 2));
    tri_tensor *target = tri_input(g, "target", TRI_F32, TRI_SHAPE(n, 1));
    tri_loss(tri_mse(tri_dense(features, "fc", 1), target));
}

/* A pseudo-random number in [-1, 1) that follows from its arguments alone: all workers get the
 * same. */
static double number(uint64_t seed, int64_t index, int which) {
    uint64_t z = seed + (uint64_t)index * 16 + (uint64_t)which;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)epoch;
    double x = number(seed, index, 1), y = number(seed, index, 2);
    double noise = 0.05 * number(seed, index, 3);
    float *features = out[0], *target = out[1];
    features[0] = (float)(x * x);
    features[1] = (float)(y * y * y);
    *target = (float)(2 * x * x + 3 * y * y * y + 5 + noise);
    return 0;
}

static int print_result(tri_run *run, void *user) {
    float weight[2], bias;
    (void)user;
    if (tri_step_number(run) == tri_step_total(run) &&
        !tri_read(run, "fc.weight", weight, sizeof weight) &&
        !tri_read(run, "fc.bias", &bias, sizeof bias))
        printf("z = %.2f x^2 + %.2f y^3 + %.2f, loss %.6f\n", (double)weight[0],
               (double)weight[1], (double)bias, tri_value(run, "loss"));
    return 0;
}

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    o.batch = 16;
    o.lanes = 2;
    o.epochs = 10;
    o.optimizer = (tri_optimizer){.name = "momentum", .lr = 0.05};
    if (tri_options_parse(&o, &argc, argv)) return TRI_USAGE;
    o.source = tri_data_new("linear", 1600,
                            (const tri_field[]){{"features", TRI_F32, TRI_SHAPE(2)},
                                                {"target", TRI_F32, TRI_SHAPE(1)}},
                            2, fill, NULL, false);
    if (!o.source) return TRI_FAILED;
    tri_graph *g = tri_graph_new(o.batch);
    network(g);
    return tri_train(g, &o, TRI_CALLBACKS(tri_loss_monitor(0), {.epoch = print_result}));
}
