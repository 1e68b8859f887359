/* SPDX-License-Identifier: Apache-2.0
 * view: elements of a parameter or state from element `first` on, where the store has them. Passes
 * alone create this node. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    out[0] = (tri_spec){(tri_type)tri_attr_int(n, "type"), tri_attr_list(n, "shape")};
    return 1;
}

const tri_op op_view = {
    .name = "view",
    .attributes = "name:text first:int type:type shape:ints",
    .infer = infer,
    .gradient = tri_grad_none,
    .examples = EXAMPLES("{name=\"w\", first=2, type=f32, shape=[2]}"),
};
