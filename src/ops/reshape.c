/* SPDX-License-Identifier: Apache-2.0
 * reshape: the same elements in another shape. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    out[0] = (tri_spec){in_spec(n, 0)->type, tri_attr_list(n, "shape")};
    int64_t have = tri_shape_count(in_shape(n, 0)), want = tri_shape_count(&out[0].shape);
    char shape[SPEC_TEXT];
    return have == want || tri_op_error(n, "%lld elements cannot become %s, which has %lld",
                                        (long long)have, base_spec_text(&out[0], shape),
                                        (long long)want);
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    dx[0] = tri_reshape(dy[0], *in_shape(n, 0));
}

/* Walks both shapes from the left and takes the shortest runs of dimensions with equal products. A
 * run of one dimension on each side is one factor. A run of one dimension on one side has a factor
 * per dimension of the other side: [n, s, d] -> [n*s, d] is "abc->(ab)c". Other runs are not
 * split. */
static void factors(const tri_node *n, char *text, size_t bytes) {
    const tri_shape *x = in_shape(n, 0), *y = out_shape(n, 0);
    char side[2][4 * TRI_MAX_RANK + 4], *p[2] = {side[0], side[1]}, letter = 'a';
    for (int i = 0, k = 0; i < x->rank || k < y->rank;) {
        int i0 = i, k0 = k;
        int64_t a = i < x->rank ? x->dim[i++] : 1, b = k < y->rank ? y->dim[k++] : 1;
        while (a != b)
            if (a < b)
                a *= x->dim[i++];
            else
                b *= y->dim[k++];
        int run[2] = {i - i0, k - k0};
        for (int s = 0; s < 2; s++) {
            char l = run[0] > 1 && run[1] > 1 ? (char)(letter - 'a' + 'A') : letter;
            int parts = run[1 - s] > 1 && run[s] == 1 ? run[1 - s] : 1;
            for (int r = 0; r < run[s]; r++) {
                if (parts > 1) *p[s]++ = '(';
                for (int q = 0; q < parts; q++) *p[s]++ = run[1 - s] ? l++ : '1';
                if (parts > 1) *p[s]++ = ')';
            }
        }
        letter = (char)(letter + (run[0] > run[1] ? run[0] : run[1]));
    }
    *p[0] = *p[1] = 0;
    snprintf(text, bytes, "%s->%s", side[0], side[1]);
}

const tri_op op_reshape = {
    .name = "reshape",
    .inputs = 1,
    .attributes = "shape:shape",
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .linear = TRI_LINEAR_JOINTLY,
    .values = TRI_VALUES_SAME,
    .precision = TRI_PRECISION_ANY,
    .examples = EXAMPLES("f32[2,3,4] {shape=[6,4]}", "f32[2,6] {shape=[2,3,2]}",
                         "f32[4,6] {shape=[3,8]}", "i32[4]@0:9 {shape=[2,2]}", "f32[1] {shape=[]}"),
};

tri_tensor *tri_reshape(tri_tensor *x, tri_shape shape) {
    tri_shape from = tri_shape_of(x);
    int64_t known = 1;
    int open = -1;
    for (int i = 0; i < shape.rank && i < TRI_MAX_RANK; i++) {
        if (shape.dim[i] == -1 && open >= 0 && x)
            graph_mistake(x->node->graph, "tri_reshape: dimensions %d and %d are both -1; one can "
                          "be", open, i);
        else if (shape.dim[i] == -1)
            open = i;
        else if (__builtin_mul_overflow(known, shape.dim[i], &known))
            known = 0;
    }
    if (open >= 0) shape.dim[open] = known > 0 ? tri_shape_count(&from) / known : 0;
    return APPLY("reshape", INPUTS(x), AL("shape", shape));
}

tri_tensor *tri_flatten(tri_tensor *x, int from_axis) {
    tri_shape shape = tri_shape_of(x);
    if (from_axis < 0) from_axis += shape.rank;
    if (x && (from_axis < 0 || from_axis >= shape.rank)) {
        graph_mistake(x->node->graph, "tri_flatten: %s has %d dimension(s); %d is not one",
                      tri_name_of(x), shape.rank, from_axis);
        return x->node->graph->poison;
    }
    shape.rank = from_axis + 1;
    if (x) shape.dim[from_axis] = -1;
    return tri_reshape(x, shape);
}
