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
    {"conv2d", dnnl_glue_run, cpu_dnnl_supports, prepare_y, dnnl_glue_release},
    {"conv2d_dx", dnnl_glue_run, cpu_dnnl_supports, prepare_dx, dnnl_glue_release},
    {"conv2d_dw", dnnl_glue_run, cpu_dnnl_supports, prepare_dw, dnnl_glue_release},
    {0},
};
