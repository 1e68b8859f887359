/* SPDX-License-Identifier: Apache-2.0
 * Convolution and its derivatives, by oneDNN. */
#include "dev/cpu/cpu.h"
#include "dev/cpu/dnnl_glue.h"

static tri_status prepare(const tri_node *n, enum dnnl_convolution kind, void **state) {
    struct window w;
    CHECK(window_of(n, &w));
    return dnnl_glue_convolution(n, kind, &w, (struct dnnl_job **)state);
}

static tri_status prepare_y(const tri_node *n, void **state) {
    return prepare(n, CONVOLUTION, state);
}
static tri_status prepare_dx(const tri_node *n, void **state) {
    return prepare(n, CONVOLUTION_DX, state);
}
static tri_status prepare_dw(const tri_node *n, void **state) {
    return prepare(n, CONVOLUTION_DW, state);
}

static void run(const tri_call *c) { dnnl_glue_run(c->state, c); }
static void release(void *state) { dnnl_glue_release(state); }

static void plan(const tri_node *n, struct kernel *k) {
    (void)n;
    k->scratch = dnnl_glue_scratch(k->state);
}

#define ROW(name, how)                                                                      \
    {.op = name, .run = run, .supports = cpu_dnnl_supports, .prepare = how,                 \
     .release = release, .plan = plan},

const struct dev_row cpu_conv[] = {
    ROW("conv2d", prepare_y) ROW("conv2d_dx", prepare_dx) ROW("conv2d_dw", prepare_dw)
    {0},
};
