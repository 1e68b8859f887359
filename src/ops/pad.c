/* SPDX-License-Identifier: Apache-2.0
 * pad: adds before[i] and after[i] elements of `value` around dimension i of x. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    tri_shape before = tri_attr_list(n, "before"), after = tri_attr_list(n, "after");
    out[0] = *in_spec(n, 0);
    tri_shape *y = &out[0].shape;
    if (before.rank != y->rank || after.rank != y->rank)
        return tri_op_error(n, "before and after need one length for each of the %d dimension(s)",
                            y->rank);
    for (int i = 0; i < y->rank; i++) {
        if (before.dim[i] < 0 || after.dim[i] < 0)
            return tri_op_error(n, "dimension %d: lengths below 0; tri_slice cuts", i);
        if (__builtin_add_overflow(y->dim[i], before.dim[i], &y->dim[i]) ||
            __builtin_add_overflow(y->dim[i], after.dim[i], &y->dim[i]))
            return tri_op_error(n, "dimension %d: no tensor is so long", i);
    }
    return op_need_exact(n, tri_attr_float(n, "value"), out[0].type);
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_shape before = tri_attr_list(n, "before");
    const tri_shape *x = in_shape(n, 0), *y = out_shape(n, 0);
    dx[0] = dy[0];
    for (int i = 0; i < x->rank; i++)
        if (x->dim[i] != y->dim[i])
            dx[0] = tri_slice(dx[0], i, before.dim[i], before.dim[i] + x->dim[i]);
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    const tri_shape *x = in_shape(n, 0), *y = out_shape(n, 0);
    unsigned padded = 0;
    for (int i = 0; i < x->rank; i++) padded |= (unsigned)(x->dim[i] != y->dim[i]) << i;
    op_letter_factors(n, padded, text, bytes);
}

const tri_op op_pad = {
    .name = "pad",
    .inputs = 1,
    .attributes = "before:ints after:ints value:float=0",
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .values = TRI_VALUES_MOVED,
    .precision = TRI_PRECISION_ANY,
    .examples = EXAMPLES("f32[2,3] {before=[0,1], after=[0,2]}",
                         "f32[2,3,1] {before=[1,0,2], after=[0,0,1], value=-1.5}",
                         "f32[2] {before=[0], after=[0]}", "f32[] {before=[], after=[]}",
                         "i64[3]@-9:9 {before=[2], after=[1], value=7}",
                         "bf16[2,2] {before=[1,1], after=[1,1]}"),
};

tri_tensor *tri_pad(tri_tensor *x, tri_shape before, tri_shape after, double value) {
    return APPLY("pad", INPUTS(x), AL("before", before), AL("after", after), AF("value", value));
}
