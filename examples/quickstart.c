/* SPDX-License-Identifier: Apache-2.0
 * The complete program of trireme.h: a network of two dense layers and a loop over steps. */
#include <stdio.h>
#include <trireme.h>

static void network(tri_graph *g) {
    int64_t n = tri_batch(g);
    tri_tensor *x = tri_input(g, "image", TRI_F32, TRI_SHAPE(n, 1, 28, 28));
    tri_tensor *y = tri_input(g, "label", TRI_I64, TRI_SHAPE(n), .below = 10);
    tri_tensor *h = tri_relu(tri_dense(tri_flatten(x, 1), "fc1", 128));
    tri_tensor *logits = tri_dense(h, "fc2", 10);
    tri_metric(tri_accuracy(logits, y, 1), "top1");
    tri_loss(tri_cross_entropy(logits, y));
}

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    o.data = "idx:/usr/share/datasets/fashion-mnist";
    if (tri_options_parse(&o, &argc, argv)) return 2;
    if (argc > 1) return fprintf(stderr, "unknown: %s\n", argv[1]), 2;
    tri_graph *g = tri_graph_new(o.batch);
    network(g);
    tri_run *run = tri_open(g, &o);
    while (tri_step(run))
        if (tri_step_number(run) % 100 == 0)
            printf("loss %g, top1 %g\n", tri_value(run, "loss"), tri_value(run, "top1"));
    char line[512];
    if (!tri_result_line(run, line, sizeof line)) puts(line);
    return tri_close(run);
}
