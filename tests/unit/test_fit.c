/* SPDX-License-Identifier: Apache-2.0
 * --recompute fit counts what the run takes besides its usual step: the program's own sources,
 * evaluations of them, steps of other shapes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <trireme.h>

#define WIDTH 16384
#define MIB (1 << 20)

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)index, (void)epoch, (void)seed;
    memset(out[0], 0, WIDTH * sizeof(float));
    return 0;
}

static tri_data *zeros(int64_t size) {
    const tri_field field = {.name = "x", .type = TRI_F32, .shape = TRI_SHAPE(WIDTH)};
    return tri_data_new("zeros", size, &field, 1, fill, NULL, false);
}

static tri_graph *network(void) {
    tri_graph *g = tri_graph_new(32);
    tri_tensor *h = tri_input(g, "x", TRI_F32, TRI_SHAPE(32, WIDTH));
    for (int i = 0; i < 3; i++) {
        tri_push(g, "layer.%d", i);
        tri_tensor *w = tri_param(g, "w", TRI_SHAPE(WIDTH), (tri_init){.kind = TRI_NORMAL, .b = 1});
        h = tri_gelu(tri_mul(tri_gelu(tri_mul(h, w)), w));
        tri_pop(g);
    }
    tri_loss(tri_mean(tri_mul(h, h), TRI_ALL));
    return g;
}

/* 0: the run is opened; else the MiB that the message says it needs. */
static double needs(const char *recompute, double limit, const char *tail, bool evaluates) {
    const tri_options o = {.recompute = recompute, .memory_limit = (int64_t)(limit * MIB),
                           .source = zeros(75), .eval_source = evaluates ? zeros(65) : NULL,
                           .subset = "0:70", .tail = tail, .lanes = 2, .threads = 1,
                           .data_threads = -1, .steps = 1, .quiet = true};
    tri_run *run = tri_open(network(), &o);
    if (run) return tri_close(run) == TRI_OK ? 0 : -1;
    const char *at = strstr(tri_message(), "does not fit: ");
    if (!at) fail_msg("%s", tri_message());
    return strtod(at + strlen("does not fit: "), NULL);
}

static void what_it_needs(void **state) {
    (void)state;
    static const char *const tails[] = {"drop", "keep"};
    for (int i = 0; i < 4; i++) {
        const char *tail = tails[i % 2];
        const bool evaluates = i / 2;
        double least = needs("fit", 1, tail, evaluates), full = needs("full", 1, tail, evaluates);
        if (needs("fit", least, tail, evaluates) != 0) fail_msg("%s: %s", tail, tri_message());
        if (needs("fit", least - 1, tail, evaluates) != least) fail_msg("%s: %g", tail, least);
        if (least > full) fail_msg("%s: %g at least, %g in full", tail, least, full);
        if (needs("fit", full, tail, evaluates) != 0) fail_msg("%s: %s", tail, tri_message());
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_it_needs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
