/* SPDX-License-Identifier: Apache-2.0
 * A small regression for the tests of training; include it after cmocka.h. */
#ifndef LINE_H
#define LINE_H

#include <trireme.h>

static inline int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)epoch, (void)seed;
    if (user && index == *(int64_t *)user) return 1;
    ((float *)out[0])[0] = (float)(index % 7) - 3;
    ((float *)out[0])[1] = (float)(index % 5);
    *(float *)out[1] = (float)(index % 11);
    return 0;
}

static const tri_field fields[] = {{"x", TRI_F32, {1, {2}}}, {"y", TRI_F32, {1, {1}}}};

static inline tri_data *numbers(int64_t n) {
    return tri_data_new("numbers", n, fields, 2, fill, NULL, false);
}

/* The prediction [n, 1] of y by a dense layer "fc". */
static inline tri_tensor *line(tri_graph *g, tri_tensor **y) {
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(tri_batch(g), 2));
    *y = tri_input(g, "y", TRI_F32, TRI_SHAPE(tri_batch(g), 1));
    return tri_dense(x, "fc", 1);
}

static inline tri_graph *line_with_loss(int64_t batch) {
    tri_graph *g = tri_graph_new(batch);
    tri_tensor *y, *p = line(g, &y);
    tri_loss(tri_mse(p, y));
    return g;
}

static inline tri_run *open_line(tri_options o, int64_t batch) {
    o.source = numbers(70);
    tri_run *run = tri_open(line_with_loss(batch), &o);
    if (!run) print_message("%s\n", tri_message());
    return run;
}

static inline float weight(const tri_run *run, int i) {
    float w[2];
    assert_int_equal(tri_read(run, "fc.weight", w, sizeof w), TRI_OK);
    return w[i];
}

#endif
