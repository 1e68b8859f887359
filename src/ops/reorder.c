/* SPDX-License-Identifier: Apache-2.0
 * reorder: the same tensor in another format, given by the blocks of its input and output
 * (tri_tensor.block). Only the pass `format` creates this node. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    if (in_shape(n, 0)->rank < 3)
        return tri_op_error(n, "the tensor must have at least 3 dimensions: channels in blocks are "
                               "its dimension 1");
    out[0] = *in_spec(n, 0);
    return 1;
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    (void)n;
    dx[0] = dy[0];
}

/* Channels are not split: parts would have to consist of whole blocks. */
static void factors(const tri_node *n, char *text, size_t bytes) {
    char x[TRI_MAX_RANK + 1];
    op_letters(x, in_shape(n, 0)->rank, 2);
    snprintf(text, bytes, "%s->%s", x, x);
}

const tri_op op_reorder = {
    .name = "reorder",
    .inputs = 1,
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .names = "a:batch b:features c:height d:width",
    .linear = TRI_LINEAR_JOINTLY,
    .examples = EXAMPLES("f32[2,4,3,5]", "bf16[2,6,4]"),
};
