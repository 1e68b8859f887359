/* SPDX-License-Identifier: Apache-2.0
 * arange: the place in the batch of each row of x, whose data is not read. Dimension 0 of x has
 * `each` rows for a sample. A part of the rows begins at row `first`. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    const tri_shape *x = in_shape(n, 0);
    int64_t each = tri_attr_int(n, "each");
    if (!x->rank || each < 1)
        return tri_op_error(n, "the input needs a dimension 0, of the samples: each is %lld",
                            (long long)each);
    out[0] = (tri_spec){TRI_I64, TRI_SHAPE(x->dim[0])};
    return 1;
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    char x[TRI_MAX_RANK + 1];
    op_letters(x, in_shape(n, 0)->rank, ~1u); /* a part would be no partial sum */
    snprintf(text, bytes, "%s->a", x);
}

static void run(const tri_call *c) {
    int64_t *y = c->out[0], first = tri_attr_int(c->node, "first");
    first += c->sample * tri_attr_int(c->node, "each");
    for (int64_t i = 0; i < out_shape(c->node, 0)->dim[0]; i++) y[i] = first + i;
}

const tri_op op_arange = {
    .name = "arange",
    .inputs = 1,
    .attributes = "each:int=1 first:int=0",
    .infer = infer,
    .gradient = tri_grad_none,
    .factor_fn = factors,
    .names = "a:batch",
    .follows = "first=begin:a",
    .kernel = run,
    .shape_only = 1u << 0,
    .random = true,
    .examples = EXAMPLES("f32[4,3]", "i64[6]@0:9 {each=2, first=3}"),
};

tri_tensor *tri_arange(tri_tensor *x) {
    if (!x) return NULL;
    int64_t batch = x->node->graph->batch, rows = tri_ndim(x) ? tri_dim(x, 0) : 0;
    if (!rows || rows % batch)
        graph_mistake(x->node->graph, "%s: dimension 0 must be the samples, and is no multiple of "
                      "the batch, %lld", tri_name_of(x), (long long)batch);
    return APPLY("arange", INPUTS(x), AI("each", rows / batch));
}

tri_tensor *tri_eye(tri_tensor *x) {
    tri_tensor *i = tri_arange(x);
    return tri_cast(tri_equal(tri_reshape(i, TRI_SHAPE(-1, 1)), i), TRI_F32);
}
