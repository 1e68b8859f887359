/* SPDX-License-Identifier: Apache-2.0
 * Sums of bf16 whose last group of 32 lacks terms (docs/arithmetic.md): both of its chains and the
 * sum before it are rounded to -0, and the terms that it lacks make the sum +0. A whole group
 * leaves -0. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/convert.h"
#include "dev/cpu/isa.h"
#include "dev/dev.h"
#include "ops/op.h"

#define GROUP 32
#define MOST (3 * GROUP)
#define OTHERS 16 /* rows, columns, output channels */

/* Term k of both factors. The first two groups add up to -0, and further terms are too small. */
static float term(int64_t k, bool left) {
    if (k >= 2 * GROUP) return left ? -0x1p-100f : 0x1p-100f;
    if (!left) return 0x1p-63f;
    return k == 0 ? -0x1.8p-63f : k == GROUP ? 0x1p-63f : 0;
}

/* A factor in which k is a dimension with `inner` elements in each place of it. */
static void write_factor(tri_run *run, const char *name, int64_t k, int64_t inner, bool left) {
    uint16_t x[MOST * OTHERS];
    for (int64_t i = 0; i < k * OTHERS; i++)
        x[i] = convert_f32_to_bf16(term(i / inner % k, left));
    if (tri_write(run, name, x, (size_t)(k * OTHERS) * sizeof *x)) fail_msg("%s", tri_message());
}

static tri_tensor *factor(tri_graph *g, const char *name, tri_shape shape) {
    return tri_state(g, name, TRI_BF16, shape, (tri_init){0});
}

/* A product, a convolution of one place each, and its derivative by the weight over k samples; a
 * depthwise one of k taps, and its derivative over k samples. */
enum way { PRODUCT, CONV, BY_WEIGHT, DEPTH, DEPTH_BY_WEIGHT };

static void check(enum way way, bool trans_a, bool trans_b, int64_t k, const char *isa) {
    const tri_shape conv = TRI_SHAPE(OTHERS, k, 1, 1), samples = TRI_SHAPE(k, OTHERS, 1, 1);
    tri_graph *g = tri_graph_new(1);
    tri_tensor *a, *b, *y;
    uint16_t got[OTHERS * OTHERS], want = k < MOST ? 0 : 0x8000;
    if (way == PRODUCT) {
        a = factor(g, "a", trans_a ? TRI_SHAPE(k, OTHERS) : TRI_SHAPE(OTHERS, k));
        b = factor(g, "b", trans_b ? TRI_SHAPE(OTHERS, k) : TRI_SHAPE(k, OTHERS));
        y = tri_matmul(a, b, .trans_a = trans_a, .trans_b = trans_b);
    } else if (way == DEPTH) {
        a = factor(g, "a", TRI_SHAPE(1, OTHERS, 1, k));
        b = factor(g, "b", TRI_SHAPE(OTHERS, 1, 1, k));
        y = tri_conv2d(a, b, .groups = OTHERS);
    } else if (way == DEPTH_BY_WEIGHT) {
        a = factor(g, "a", samples), b = factor(g, "b", samples);
        tri_tensor *w = factor(g, "w", TRI_SHAPE(OTHERS, 1, 1, 1)), *in[] = {a, b, w};
        y = APPLY_LIKE(tri_conv2d(b, w, .groups = OTHERS)->node, "conv2d_dw", in);
    } else {
        a = factor(g, "a", way == CONV ? conv : samples);
        b = factor(g, "b", way == CONV ? conv : samples);
        tri_tensor *w = factor(g, "w", TRI_SHAPE(OTHERS, OTHERS, 1, 1)), *in[] = {a, b, w};
        y = tri_conv2d(way == CONV ? a : b, way == CONV ? b : w);
        if (way == BY_WEIGHT) y = APPLY_LIKE(y->node, "conv2d_dw", in);
    }
    tri_output(y, "y");
    setenv("TRIREME_ISA", isa, 1);
    tri_run *run = tri_open(g, &(tri_options){.forward = true, .device = "cpu"});
    unsetenv("TRIREME_ISA");
    if (!run) fail_msg("%s", tri_message());
    const bool by_weight = way == BY_WEIGHT || way == DEPTH_BY_WEIGHT;
    const bool outer_a = by_weight || trans_a, outer_b = by_weight || !trans_b;
    const int count = way < DEPTH ? OTHERS * OTHERS : OTHERS;
    write_factor(run, "a", k, outer_a ? OTHERS : 1, true);
    write_factor(run, "b", k, outer_b ? OTHERS : 1, false);
    if (tri_forward(run) || tri_read(run, "y", got, (size_t)count * sizeof *got))
        fail_msg("%s", tri_message());
    for (int i = 0; i < count; i++)
        if (got[i] != want)
            fail_msg("way %d%s%s of %lld terms, %s: %#x, not %#x", way, trans_a ? " trans_a" : "",
                     trans_b ? " trans_b" : "", (long long)k, isa, got[i], want);
    assert_int_equal(tri_close(run), TRI_OK);
}

static void missing_terms(void **state) {
    (void)state;
    for (size_t i = 0; i < ISAS; i++) {
        setenv("TRIREME_ISA", isa_names[i], 1);
        const tri_status missing = dev_open(dev_find("cpu"));
        unsetenv("TRIREME_ISA");
        for (int64_t k = 2 * GROUP + 1; !missing && k <= MOST; k++) {
            for (int t = 0; t < 4; t++) check(PRODUCT, t & 1, t & 2, k, isa_names[i]);
            check(CONV, false, true, k, isa_names[i]);
            check(BY_WEIGHT, true, false, k, isa_names[i]);
            check(DEPTH, false, true, k, isa_names[i]);
            check(DEPTH_BY_WEIGHT, true, false, k, isa_names[i]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(missing_terms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
