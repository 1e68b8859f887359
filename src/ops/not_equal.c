/* SPDX-License-Identifier: Apache-2.0
 * not_equal: a != b, elementwise with broadcasting; bool. */
#include "ops/op.h"

static int leaves_out(const tri_node *n, double value) {
    const tri_node *b = n->in[1]->node;
    return node_is(b, "constant") && tri_attr_float(b, "value") == value ? 0 : -1;
}

const tri_op op_not_equal = {
    .name = "not_equal",
    .inputs = 2,
    .infer = op_compare,
    .gradient = tri_grad_none,
    .factors = "...,...->...",
    .precision = TRI_PRECISION_FOLLOW,
    .leaves_out = leaves_out,
    .examples = EXAMPLES("f32[2,3], f32[2,3]", "i32[2,9]@0:4, i32[9]@0:4",
                         "i64[2,1,3]@-2:3, i64[4,1]@-2:3", "f32[], f32[3]",
                         "u8[9]@0:4, u8[1]@0:4", "bf16[4], bf16[4]"),
};

tri_tensor *tri_not_equal(tri_tensor *a, tri_tensor *b) { return op_binary("not_equal", a, b); }
