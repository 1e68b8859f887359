/* SPDX-License-Identifier: Apache-2.0
 * fill_like: a tensor of one number, with the shape and type of another, whose data is not read. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    return op_like_input(n, out) && op_need_exact(n, tri_attr_float(n, "value"), out[0].type);
}

const tri_op op_fill_like = {
    .name = "fill_like",
    .inputs = 1,
    .attributes = "value:float=0",
    .infer = infer,
    .gradient = tri_grad_none,
    .factors = "...->...",
    .precision = TRI_PRECISION_ANY,
    .examples = EXAMPLES("f32[2,3] {value=1.5}", "i64[4]@0:3"),
    .shape_only = 1u << 0,
};
