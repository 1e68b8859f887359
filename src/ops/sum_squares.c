/* SPDX-License-Identifier: Apache-2.0
 * sum_squares: the sum of the squares of all elements of all inputs, an f32 scalar. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    for (int i = 0; i < n->n_in; i++)
        if (!op_need_float(n, i)) return 0;
    out[0] = (tri_spec){TRI_F32, TRI_SCALAR};
    return 1;
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *twice = tri_scale(dy[0], 2);
    for (int i = 0; i < n->n_in; i++)
        dx[i] = tri_mul(n->in[i], tri_cast(twice, in_spec(n, i)->type));
}

/* Only a single input may be split: with several, each part would count the other inputs again. */
static void factors(const tri_node *n, char *text, size_t bytes) {
    op_letter_factors(n, n->n_in == 1 ? 0 : ~0u, text, bytes);
}

const tri_op op_sum_squares = {
    .name = "sum_squares",
    .inputs = 1,
    .inputs_max = -1,
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .examples = EXAMPLES("f32[2,3]", "f32[2,3], f32[4], f32[]", "bf16[5]", "f32[3], bf16[2,2]"),
};

tri_tensor *tri_global_norm(tri_tensor *const *xs, int n) {
    if (n <= 0) return NULL;
    tri_tensor *sum = graph_apply(tri_graph_of(xs[0]), "sum_squares", n, xs, 0, NULL);
    return APPLY("sqrt", INPUTS(sum), AI("norm", 1));
}
