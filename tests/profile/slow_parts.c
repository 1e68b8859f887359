/* SPDX-License-Identifier: Apache-2.0
 * Trains a small network whose source sleeps READ microseconds per sample, and whose callback
 * sleeps CALL microseconds per step, for provoke.py. Options are those of `trireme train`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <trireme.h>

#define WIDTH 256

static long reading, calling;

static long number(const char *name) {
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

static void sleep_for(long microseconds) {
    struct timespec left = {microseconds / 1000000, microseconds % 1000000 * 1000};
    while (nanosleep(&left, &left)) {}
}

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)epoch, (void)seed;
    float *x = out[0];
    sleep_for(reading);
    for (int i = 0; i < WIDTH; i++) x[i] = (float)((index + i) % 7) / 7;
    return 0;
}

static int after_step(tri_run *run, void *user) {
    (void)run, (void)user;
    sleep_for(calling);
    return 0;
}

static tri_graph *network(int64_t batch) {
    tri_graph *g = tri_graph_new(batch);
    tri_tensor *h = tri_input(g, "x", TRI_F32, TRI_SHAPE(tri_batch(g), WIDTH));
    for (int i = 0; i < 3; i++) {
        tri_push(g, "layer%d", i);
        h = tri_relu(tri_dense(h, "fc", 512));
        tri_pop(g);
    }
    tri_loss(tri_mean(tri_mul(h, h), TRI_ALL));
    return g;
}

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    if (tri_options_parse(&o, &argc, argv)) {
        fprintf(stderr, "%s\n", tri_message());
        return TRI_USAGE;
    }
    reading = number("READ");
    calling = number("CALL");
    o.source = tri_data_new("naps", 100000, (const tri_field[]){{"x", TRI_F32, TRI_SHAPE(WIDTH)}},
                            1, fill, NULL, false);
    if (!o.source) return TRI_FAILED;
    tri_data_concurrent(o.source);
    const tri_callback after = {.step = calling ? after_step : NULL};
    return (int)tri_train(network(o.batch), &o, TRI_CALLBACKS(after));
}
