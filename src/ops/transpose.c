/* SPDX-License-Identifier: Apache-2.0
 * transpose: dimension i of the result is dimension order[i] of x. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    tri_shape order = tri_attr_list(n, "order");
    const tri_shape *x = in_shape(n, 0);
    unsigned seen = 0;
    out[0] = *in_spec(n, 0);
    for (int i = 0; i < order.rank && i < x->rank; i++) {
        int64_t from = order.dim[i];
        if (from < 0 || from >= x->rank) break;
        seen |= 1u << from;
        out[0].shape.dim[i] = x->dim[from];
    }
    return (order.rank == x->rank && seen == (1u << x->rank) - 1) ||
           tri_op_error(n, "order must name each of the %d dimension(s) once", x->rank);
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_shape order = tri_attr_list(n, "order"), inverse = order;
    for (int i = 0; i < order.rank; i++) inverse.dim[order.dim[i]] = i;
    dx[0] = tri_transpose(dy[0], inverse);
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    tri_shape order = tri_attr_list(n, "order");
    char from[TRI_MAX_RANK + 1], to[TRI_MAX_RANK + 1] = {0};
    op_letters(from, order.rank, 0);
    for (int i = 0; i < order.rank; i++) to[i] = from[order.dim[i]];
    snprintf(text, bytes, "%s->%s", from, to);
}

const tri_op op_transpose = {
    .name = "transpose",
    .inputs = 1,
    .attributes = "order:ints",
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .linear = TRI_LINEAR_JOINTLY,
    .values = TRI_VALUES_MOVED,
    .precision = TRI_PRECISION_ANY,
    .examples = EXAMPLES("f32[2,3] {order=[1,0]}", "f32[2,3,4] {order=[2,0,1]}",
                         "f32[2,3,1,4] {order=[0,2,1,3]}", "f32[5] {order=[0]}",
                         "f32[] {order=[]}", "i64[2,3]@-9:9 {order=[1,0]}",
                         "bf16[2,3] {order=[1,0]}"),
};

tri_tensor *tri_transpose(tri_tensor *x, tri_shape order) {
    for (int i = 0; i < order.rank; i++)
        if (order.dim[i] < 0) order.dim[i] += tri_ndim(x);
    return APPLY("transpose", INPUTS(x), AL("order", order));
}
