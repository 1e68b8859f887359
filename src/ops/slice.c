/* SPDX-License-Identifier: Apache-2.0
 * slice: the elements [begin, end) along one axis. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    int axis;
    int64_t begin = tri_attr_int(n, "begin"), end = tri_attr_int(n, "end");
    if (!op_axis(n, "axis", 0, &axis)) return 0;
    int64_t length = in_shape(n, 0)->dim[axis];
    if (begin < 0 || begin >= end || end > length)
        return tri_op_error(n, "[%lld, %lld) is not a part of dimension %d, which has %lld "
                            "place(s)", (long long)begin, (long long)end, axis, (long long)length);
    out[0] = *in_spec(n, 0);
    out[0].shape.dim[axis] = end - begin;
    return 1;
}

static int64_t piece(const tri_node *n) {
    const tri_shape *x = in_shape(n, 0);
    int64_t inner = 1;
    int axis;
    CHECK(op_axis(n, "axis", 0, &axis));
    for (int i = 0; i < axis; i++)
        if (x->dim[i] != 1) return -1;
    for (int i = axis + 1; i < x->rank; i++) inner *= x->dim[i];
    return tri_attr_int(n, "begin") * inner;
}

/* Pads dy with zeros to the shape of x. */
static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    int axis;
    CHECK(op_axis(n, "axis", 0, &axis));
    tri_shape before = {.rank = in_shape(n, 0)->rank}, after = before;
    before.dim[axis] = tri_attr_int(n, "begin");
    after.dim[axis] = in_shape(n, 0)->dim[axis] - tri_attr_int(n, "end");
    dx[0] = tri_pad(dy[0], before, after, 0);
}

const tri_op op_slice = {
    .name = "slice",
    .inputs = 1,
    .attributes = "axis:int begin:int end:int",
    .infer = infer,
    .gradient = gradient,
    .factor_fn = op_axis_factors,
    .linear = TRI_LINEAR_JOINTLY,
    .values = TRI_VALUES_MOVED,
    .piece = piece,
    .precision = TRI_PRECISION_ANY,
    .examples = EXAMPLES("f32[4,5] {axis=1, begin=1, end=3}", "f32[4,5] {axis=0, begin=0, end=4}",
                         "f32[3,4,5] {axis=-2, begin=3, end=4}", "f32[1] {axis=0, begin=0, end=1}",
                         "i64[5]@-9:9 {axis=0, begin=2, end=5}",
                         "bf16[2,5] {axis=1, begin=0, end=2}"),
};

tri_tensor *tri_slice(tri_tensor *x, int axis, int64_t begin, int64_t end) {
    return APPLY("slice", INPUTS(x), AI("axis", axis), AI("begin", begin), AI("end", end));
}
