/* SPDX-License-Identifier: Apache-2.0
 * A mixture of experts: a gate sends each sample to one of four small networks. Its balance loss
 * keeps the gate from sending all samples to the same one, as in the Switch Transformer: the number
 * of experts times the sum over them of (share of the samples) x (mean probability). Both factors
 * are means over a batch. With .per_lane they are means over each lane, and the loss is the mean of
 * the lanes' losses; `./mixture_of_experts whole --lanes 1` has that of the whole batch. With
 * several lanes `whole` is refused. */
#include <stdio.h>
#include <string.h>
#include <trireme.h>

#define EXPERTS 4
#define INPUTS 2

/* The probability of each expert, and the loss that balances them. */
static tri_tensor *gate(tri_tensor *x, bool per_lane, tri_tensor **balance) {
    tri_tensor *h = tri_tanh(tri_dense(x, "gate1", 16));
    tri_tensor *p = tri_softmax(tri_dense(h, "gate2", EXPERTS), 1);
    tri_tensor *sent = tri_one_hot(tri_argmax(p, 1), EXPERTS);
    /* [lanes, EXPERTS]; or, of the whole batch, [1, EXPERTS] */
    tri_tensor *share = tri_mean(sent, TRI_SHAPE(0), .per_lane = per_lane, .keep = true);
    tri_tensor *mean = tri_mean(p, TRI_SHAPE(0), .per_lane = per_lane, .keep = true);
    tri_tensor *each = tri_scale(tri_sum(tri_mul(share, mean), TRI_SHAPE(1)), EXPERTS);
    *balance = tri_mean(each, TRI_ALL);
    tri_metric(tri_max(tri_mean(share, TRI_SHAPE(0)), TRI_ALL), "largest");
    return tri_mul(p, sent); /* 0 but for the chosen expert */
}

static void network(tri_graph *g, bool per_lane) {
    int64_t n = tri_batch(g);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(n, INPUTS));
    tri_tensor *y = tri_input(g, "y", TRI_F32, TRI_SHAPE(n, 1));
    tri_tensor *balance, *weight = gate(x, per_lane, &balance), *sum = NULL;
    for (int i = 0; i < EXPERTS; i++) {
        tri_push(g, "expert%d", i);
        tri_tensor *h = tri_dense(tri_relu(tri_dense(x, "fc1", 8)), "fc2", 1);
        tri_pop(g);
        h = tri_mul(h, tri_slice(weight, 1, i, i + 1));
        sum = sum ? tri_add(sum, h) : h;
    }
    tri_tensor *wrong = tri_mse(sum, y);
    tri_metric(wrong, "wrong");
    tri_metric(balance, "balance");
    tri_loss(tri_add(wrong, tri_scale(balance, 0.1)));
}

/* A number in [-1, 1) that looks random and is always the same for the same i. */
static float draw(uint64_t i) {
    i = (i + 1) * 0x9e3779b97f4a7c15u;
    i = (i ^ i >> 30) * 0xbf58476d1ce4e5b9u;
    i = (i ^ i >> 27) * 0x94d049bb133111ebu;
    return (float)((double)(i >> 11) / 4503599627370496.0 - 1);
}

/* Another plane in each quadrant. */
static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    static const float slope[4][2] = {{1, 2}, {-2, 1}, {3, -1}, {-1, -3}};
    float *x = out[0], *y = out[1];
    (void)user, (void)epoch, (void)seed;
    for (int i = 0; i < INPUTS; i++) x[i] = draw((uint64_t)(index * INPUTS + i));
    const float *a = slope[(x[0] > 0) + 2 * (x[1] > 0)];
    *y = a[0] * x[0] + a[1] * x[1];
    return 0;
}

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    o.epochs = 60;
    o.lanes = 4;
    o.optimizer = (tri_optimizer){.name = "adam", .lr = 0.01};
    if (tri_options_parse(&o, &argc, argv)) return TRI_USAGE;
    bool whole = argc == 2 && !strcmp(argv[1], "whole");
    if (argc > 1 && !whole) return fprintf(stderr, "unknown: %s\n", argv[1]), TRI_USAGE;
    o.source = tri_data_new("quadrants", 2048,
                            (const tri_field[]){{"x", TRI_F32, TRI_SHAPE(INPUTS)},
                                                {"y", TRI_F32, TRI_SHAPE(1)}},
                            2, fill, NULL, false);
    if (!o.source) return TRI_FAILED;
    tri_graph *g = tri_graph_new(o.batch);
    network(g, !whole);
    return tri_train(g, &o, NULL);
}
