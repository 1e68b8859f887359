/* SPDX-License-Identifier: Apache-2.0
 * A loop of your own that makes each batch and sets the learning rate: a network learns sin(x) from
 * new points in every step. Batch and rate follow from tri_step_number alone, so that any number of
 * workers, deaths of workers and --ckpt DIR --resume give the same weights. It needs -lm:
 *
 *     cc -o fed_loop fed_loop.c $(pkg-config --cflags --libs trireme) -lm */
#include <math.h>
#include <stdio.h>
#include <trireme.h>

#define BATCH 64
#define PI 3.14159265358979

static void network(tri_graph *g) {
    int64_t n = tri_batch(g);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(n, 1));
    tri_tensor *y = tri_input(g, "y", TRI_F32, TRI_SHAPE(n, 1));
    tri_tensor *h = tri_tanh(tri_dense(x, "fc1", 32));
    tri_loss(tri_mse(tri_dense(h, "fc2", 1), y));
}

/* A number in [0, 1) that looks random and is always the same for the same i. */
static double draw(uint64_t i) {
    i = (i + 1) * 0x9e3779b97f4a7c15u;
    i = (i ^ i >> 30) * 0xbf58476d1ce4e5b9u;
    i = (i ^ i >> 27) * 0x94d049bb133111ebu;
    return (double)(i >> 11) / 9007199254740992.0;
}

/* The batch that follows `done` steps. */
static void make_batch(int64_t done, float x[BATCH], float y[BATCH]) {
    for (int64_t i = 0; i < BATCH; i++) {
        double at = PI * (2 * draw((uint64_t)(done * BATCH + i)) - 1);
        x[i] = (float)at;
        y[i] = (float)sin(at);
    }
}

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    o.steps = 2000;
    o.optimizer.name = "adam";
    if (tri_options_parse(&o, &argc, argv)) return TRI_USAGE;
    if (argc > 1) return fprintf(stderr, "unknown: %s\n", argv[1]), TRI_USAGE;
    if (o.data || o.batch || o.optimizer.lr > 0 || o.optimizer.schedule) {
        fprintf(stderr, "fed_loop sets --data, --batch, --lr and --schedule itself: omit them\n");
        return TRI_USAGE;
    }
    o.batch = BATCH;
    o.data = "feed";
    tri_graph *g = tri_graph_new(BATCH);
    network(g);
    tri_run *run = tri_open(g, &o);
    float x[BATCH], y[BATCH];
    do {
        int64_t done = tri_step_number(run);
        if (done && done % 500 == 0)
            printf("step %lld: loss %g\n", (long long)done, tri_value(run, "loss"));
        make_batch(done, x, y);
        tri_feed(run, "x", x, sizeof x);
        tri_feed(run, "y", y, sizeof y);
        tri_set_scalar(run, "lr", 0.02 / (1 + (double)done / 200));
    } while (tri_step(run));
    char line[512];
    if (!tri_result_line(run, line, sizeof line)) puts(line);
    return tri_close(run);
}
