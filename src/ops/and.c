/* SPDX-License-Identifier: Apache-2.0
 * and: a && b for bools, elementwise with broadcasting. */
#include "ops/op.h"

const tri_op op_and = {
    .name = "and",
    .inputs = 2,
    .infer = op_logical,
    .gradient = tri_grad_none,
    .factors = "...,...->...",
    .examples = EXAMPLES("bool[2,3], bool[2,3]", "bool[2,3], bool[3]",
                         "bool[2,1,3], bool[4,1]", "bool[], bool[3]"),
};

tri_tensor *tri_and(tri_tensor *a, tri_tensor *b) { return op_binary("and", a, b); }
