/* SPDX-License-Identifier: Apache-2.0
 * all_finite: whether no element of any input is infinite or NaN; one bool. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    for (int i = 0; i < n->n_in; i++)
        if (!op_need_float(n, i)) return 0;
    out[0] = (tri_spec){TRI_BOOL, TRI_SCALAR};
    return 1;
}

/* The dimensions of several inputs are not the same. */
static void factors(const tri_node *n, char *text, size_t bytes) {
    op_letter_factors(n, n->n_in == 1 ? 0 : ~0u, text, bytes);
}

const tri_op op_all_finite = {
    .name = "all_finite",
    .inputs = 1,
    .inputs_max = -1,
    .infer = infer,
    .gradient = tri_grad_none,
    .factor_fn = factors,
    .partial = TRI_PARTIAL_AND,
    .precision = TRI_PRECISION_ANY,
    .examples = EXAMPLES("f32[2,3]", "f32[2,3], f32[4], f32[]", "bf16[5]", "f16[2]"),
    .tests_finite = true,
};

tri_tensor *tri_all_finite(tri_tensor *const *xs, int n) {
    return n > 0 ? graph_apply(tri_graph_of(xs[0]), "all_finite", n, xs, 0, NULL) : NULL;
}
