/* SPDX-License-Identifier: Apache-2.0
 * Convolution and its derivatives, by oneDNN. */
#include "dev/cpu/cpu.h"
#include "dev/cpu/dnnl_glue.h"

static tri_status prepare(const tri_node *n, enum dnnl_convolution kind, void **state) {
    struct window w;
    CHECK(window_of(n, &w));
    return dnnl_glue_convolution(n, kind, &w, state);
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

const struct dev_row cpu_conv[] = {
    {.op = "conv2d", .run = dnnl_glue_run, .supports = cpu_dnnl_supports, .prepare = prepare_y,
     .release = dnnl_glue_release},
    {.op = "conv2d_dx", .run = dnnl_glue_run, .supports = cpu_dnnl_supports, .prepare = prepare_dx,
     .release = dnnl_glue_release},
    {.op = "conv2d_dw", .run = dnnl_glue_run, .supports = cpu_dnnl_supports, .prepare = prepare_dw,
     .release = dnnl_glue_release},
    {0},
};
