/* SPDX-License-Identifier: Apache-2.0
 * given: a tensor that another phase of the step computed. `of` is its number in the graph of the
 * whole batch. For a sum over the lanes, `top` says which part of it (plan/lane_tree.h). Only
 * passes create this node. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    out[0] = (tri_spec){(tri_type)tri_attr_int(n, "type"), tri_attr_list(n, "shape")};
    return 1;
}

const tri_op op_given = {
    .name = "given",
    .attributes = "of:int type:type shape:ints top:int=0",
    .infer = infer,
    .gradient = tri_grad_none,
    .examples = EXAMPLES("{of=3, type=f32, shape=[2]}"),
};
