/* SPDX-License-Identifier: Apache-2.0
 * not: !x for bools, elementwise. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    return op_need_type(n, 0, TRI_BOOL) && op_like_input(n, out);
}

const tri_op op_not = {
    .name = "not",
    .inputs = 1,
    .infer = infer,
    .gradient = tri_grad_none,
    .factors = "...->...",
    .examples = EXAMPLES("bool[3,5]", "bool[]"),
};

tri_tensor *tri_not(tri_tensor *x) { return op_unary("not", x); }
