/* SPDX-License-Identifier: Apache-2.0
 * constant: a scalar constant. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    out[0] = (tri_spec){(tri_type)tri_attr_int(n, "type"), TRI_SCALAR};
    return op_need_exact(n, tri_attr_float(n, "value"), out[0].type);
}

const tri_op op_constant = {
    .name = "constant",
    .attributes = "value:float type:type",
    .infer = infer,
    .gradient = tri_grad_none,
    .examples = EXAMPLES("{value=2.5, type=f32}"),
};

tri_tensor *tri_constant(tri_graph *g, double value, tri_type type) {
    return graph_apply(g, "constant", 0, NULL, 2,
                       (const tri_attr[]){AF("value", value), AI("type", type)});
}
